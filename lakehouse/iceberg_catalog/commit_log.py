"""The commit log: what Iceberg's table branches do not have, branches and commits over all tables of a catalog.

An Iceberg catalog knows branches of one table each. The log says which snapshots of which tables belong together: its
commits form a graph, as those of a versioned catalog do. `log_table` keeps it in the catalog.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

from pydantic import Field

from lakehouse.catalog import BranchInfo, CommitInfo
from sluice.base_model import Model
from sluice.errors import CatalogRefused, NoSuchBranch

MAIN = "main"
"""The branch that readers of an Iceberg table read."""
PENDING = "sluice/pending/"
"""How references to publications begin that may not have been finished."""
ROOT_REF = "sluice/root"
HALF = "sluice/half/"
"""How references to publications begin of which some tables are on main, and the others can never be."""
_HIDDEN = (PENDING, HALF, ROOT_REF)


class LoggedVersion(Model):
    """A version of a table, as a commit records it."""

    uuid: str
    """The table's UUID."""
    snapshot_id: int
    layout: str
    """A digest of its columns, partitions, order and properties."""
    location: str
    """A metadata file that holds the snapshot."""

    def is_same(self, other: "LoggedVersion | None") -> bool:
        """Return whether readers see the same in both: whatever else changed in the metadata of the table."""
        if other is None:
            return False
        return (self.uuid, self.snapshot_id, self.layout) == (other.uuid, other.snapshot_id, other.layout)


class LogCommit(Model):
    """One commit of the log: what it changed, and why."""

    parent: str = ""
    merged: str = ""
    """The hash of a branch that it merged."""
    author: str = ""
    message: str = ""
    at: datetime
    properties: dict[str, str] = Field(default_factory=dict)
    tables: dict[str, LoggedVersion | None] = Field(default_factory=dict)
    """The tables that it changed; None for one that it removed."""
    namespaces: dict[str, dict[str, str] | None] = Field(default_factory=dict)
    """The namespaces that it created, by their joined names."""

    @cached_property
    def hash(self) -> str:
        """What identifies the commit, its history, and the exact snapshot of each table in it.

        A field that has its default is left out, so that a field of a later release changes no earlier hash.
        """
        content = json.dumps(self.model_dump(mode="json", exclude_defaults=True), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def snapshot_id(self) -> int:
        """The id of the snapshot that keeps it in the log's table."""
        return int(self.hash[:15], 16)

    def changed(self, **fields: Any) -> "LogCommit":
        """Return another commit, with some fields changed. A copy by pydantic would keep the hash of this one."""
        return LogCommit(**{**{name: getattr(self, name) for name in LogCommit.model_fields}, **fields})

    def info(self) -> CommitInfo:
        """Return the commit as the port has it."""
        return CommitInfo(self.hash, self.parent, self.message, self.at, self.properties, self.merged)


def now() -> datetime:
    """Return the time of a commit that is made now."""
    return datetime.now(timezone.utc)


@dataclass(frozen=True)
class CommitLog:
    """The log as it was read: commits by their hashes, and branches with their heads."""

    branches: Mapping[str, str]
    commits: Mapping[str, LogCommit]
    _tables: dict[str, dict[str, LoggedVersion]] = field(default_factory=dict, repr=False)

    def head(self, branch: str) -> str:
        """Return the head of a branch.

        Raises:
            NoSuchBranch: there is none of this name.
        """
        if branch not in self.branches:
            raise NoSuchBranch(f"the branch {branch} is gone")
        return self.branches[branch]

    def commit(self, hash: str) -> LogCommit:
        """Return the commit of a hash.

        Raises:
            CatalogRefused: there is none.
        """
        if hash not in self.commits:
            raise CatalogRefused(f"the commit log has no commit {hash[:12]}")
        return self.commits[hash]

    def ancestors(self, hash: str) -> Iterator[LogCommit]:
        """Yield the commit of a hash and those before it, the newest first."""
        while hash:
            commit = self.commit(hash)
            yield commit
            hash = commit.parent

    def tables(self, hash: str) -> Mapping[str, LoggedVersion]:
        """Return the versions of all tables at a hash."""
        missing: list[LogCommit] = []
        for commit in self.ancestors(hash):
            if commit.hash in self._tables:
                break
            missing.append(commit)
        for commit in reversed(missing):
            held = {**self._tables.get(commit.parent, {}), **commit.tables}
            self._tables[commit.hash] = {name: version for name, version in held.items() if version is not None}
        return self._tables[hash]

    def namespaces(self, hash: str) -> dict[str, dict[str, str]]:
        """Return the namespaces that commits up to a hash created."""
        held: dict[str, dict[str, str] | None] = {}
        for commit in reversed(list(self.ancestors(hash))):
            held.update(commit.namespaces)
        return {name: properties for name, properties in held.items() if properties is not None}

    def changes(self, base: str, head: str) -> dict[str, tuple[LoggedVersion | None, LoggedVersion | None]]:
        """Return the versions before and after of each table that differs between two hashes."""
        before, after = self.tables(base), self.tables(head)
        pairs = {name: (before.get(name), after.get(name)) for name in sorted({*before, *after})}
        return {name: (a, b) for name, (a, b) in pairs.items() if is_other(a, b)}

    def fork_point(self, head: str) -> str:
        """Return the newest hash that the history of `head` has in common with main."""
        on_main = {each for commit in self.ancestors(self.head(MAIN)) for each in (commit.hash, commit.merged)}
        return next(commit.hash for commit in self.ancestors(head) if commit.hash in on_main)

    def publication_of(self, head: str, since: str) -> LogCommit | None:
        """Return the commit on main, after the hash `since`, that merged a hash."""
        for commit in self.ancestors(self.head(MAIN)):
            if commit.merged == head:
                return commit
            if commit.hash == since:
                return None
        return None

    def branch_infos(self, prefix: str) -> list[BranchInfo]:
        """Return the branches whose name begins with a prefix, but those that the log needs for itself."""
        named = {name: head for name, head in self.branches.items() if name.startswith(prefix)}
        shown = {name: self.commit(head) for name, head in named.items() if not name.startswith(_HIDDEN)}
        return [BranchInfo(name, each.hash, each.at, each.properties) for name, each in shown.items()]

    def pending(self) -> list[LogCommit]:
        """Return the publications that may not have been finished."""
        return [self.commit(head) for name, head in self.branches.items() if name.startswith(PENDING)]

    def pending_of(self, head: str) -> LogCommit | None:
        """Return the pending publication of a hash, if there is one."""
        pending = self.branches.get(pending_ref(head))
        return self.commit(pending) if pending else None

    def half_of(self, head: str) -> LogCommit | None:
        """Return the publication of a hash that ended half done, if there is one."""
        half = self.branches.get(half_ref(head))
        return self.commit(half) if half else None

    def unreachable(self, without: str, before: datetime) -> list[LogCommit]:
        """Return the commits that no branch but `without` needs, and that are older than a time."""
        needed = {
            commit.hash for name, head in self.branches.items() if name != without for commit in self.ancestors(head)
        }
        return [commit for commit in self.commits.values() if commit.hash not in needed and commit.at < before]


def is_other(one: LoggedVersion | None, other: LoggedVersion | None) -> bool:
    """Return whether two versions of a table differ; None stands for no table."""
    return other is not None if one is None else not one.is_same(other)


def pending_ref(head: str) -> str:
    """Return the reference under which the publication of a hash is kept until it is finished."""
    return PENDING + head[:24]


def half_ref(head: str) -> str:
    """Return the reference under which the publication of a hash is kept that ended half done."""
    return HALF + head[:24]
