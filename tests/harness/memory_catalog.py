"""A catalog in memory, for tests only: the port `lakehouse.catalog.BranchCatalog` without a server.

It passes `tests/component/catalog_contract/`, as every implementation must.
"""

import copy
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from threading import RLock

from lakehouse.catalog import BranchInfo, CommitInfo, NamespaceDiff, TableCommit, TableDiff, TableVersion
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.errors import CatalogChanged, CatalogRefused, NoSuchBranch, ServiceUnavailable
from sluice.identifiers import namespaces_of
from sluice.publishing.capabilities import CatalogCapabilities

_ROOT = "0" * 64
"""The root hash, before all commits."""
CAPABILITIES = CatalogCapabilities(
    many_tables=True,
    new_tables=True,
    fencing_by_deletion=True,
    main_permissions=False,
    commit_properties=True,
    repeated_publish="merge parent",
    commit_timeout=0.0,
)


@dataclass(frozen=True)
class _Commit:
    info: CommitInfo
    tables: Mapping[str, TableVersion]
    """Every table at this commit."""
    namespaces: Mapping[tuple[str, ...], Mapping[str, str]] = field(default_factory=dict)
    """The properties of every namespace."""


@dataclass
class MemoryCatalog:
    """Branches and commits in dictionaries, under one lock."""

    main: str = "main"
    capabilities: CatalogCapabilities = CAPABILITIES
    _identity: str = field(default_factory=lambda: uuid.uuid4().hex)
    _lock: RLock = field(default_factory=RLock, repr=False)

    def __post_init__(self) -> None:
        """Begin with an empty main."""
        root = CommitInfo(_ROOT, "", "", datetime.now(timezone.utc))
        self._commits = {_ROOT: _Commit(root, {})}
        self._branches = {self.main: _ROOT}

    def clear(self) -> None:
        """Delete everything, and get another identity."""
        with self._lock:
            self._identity = uuid.uuid4().hex
            self.__post_init__()

    def publishing_to(self, branch: str) -> "MemoryCatalog":
        """Return this catalog for runs that publish to another branch than main."""
        other = copy.copy(self)
        other.main = branch
        return other

    def reset_main(self, head: str) -> None:
        """Set main to an earlier head, as a catalog restored from a backup has it."""
        with self._lock:
            self._branches[self.main] = head

    def identity(self) -> str:
        """Return the identity of this catalog's content, which no other catalog has."""
        return self._identity

    def check_identity(self, expected: str) -> None:
        """Verify that the catalog has this identity."""
        if expected != self._identity:
            raise CatalogChanged("the catalog in memory is another than when the run began")

    def probe(self) -> str:
        """Return no finding: a commit is one step of this process."""
        return ""

    def initialize_main(self) -> str:
        """Give an empty main its first commit; return its head."""
        with self._lock:
            head = self._branches[self.main]
            return self._commit(self.main, "Begin the lake", {}, {}) if head == _ROOT else head

    def head(self, branch: str) -> str:
        """Return the head of a branch."""
        with self._lock:
            if branch not in self._branches:
                raise NoSuchBranch(f"the branch {branch} does not exist")
            return self._branches[branch]

    def find_head(self, branch: str) -> str | None:
        """Return the head of a branch, or None if the branch does not exist."""
        return self._branches.get(branch)

    def list_branches(self, prefix: str = "") -> list[BranchInfo]:
        """Return every branch whose name begins with `prefix`."""
        with self._lock:
            heads = {name: self._commits[head].info for name, head in self._branches.items()}
            named = {name: info for name, info in heads.items() if name.startswith(prefix)}
        return [BranchInfo(name, info.hash, info.committed_at, info.properties) for name, info in named.items()]

    def create_branch(self, name: str, base: str) -> None:
        """Create a branch of main at the hash `base`. A repeat changes nothing."""
        with self._lock:
            if base not in self._commits or self._branches.setdefault(name, base) != base:
                raise CatalogRefused(f"{name} cannot be created at {base}")

    def create_orphan_branch(self, name: str) -> str:
        """Create a branch at the root of all history, if it does not exist; return its head."""
        with self._lock:
            return self._branches.setdefault(name, _ROOT)

    def copy_branch(self, name: str, of: str, head: str) -> None:
        """Create the branch `name` at the hash `head` of the branch `of`. A repeat changes nothing."""
        with self._lock:
            if of not in self._branches and name not in self._branches:
                raise NoSuchBranch(f"the branch {of} does not exist")
            self.create_branch(name, head)

    def delete_branch(self, name: str) -> None:
        """Delete a branch. It may be deleted already."""
        with self._lock:
            self._branches.pop(name, None)

    def delete_branch_at(self, name: str, head: str) -> None:
        """Delete a branch only if it is still at the hash `head`."""
        with self._lock:
            if self._branches.get(name) == head:
                del self._branches[name]

    def fork_point(self, branch: str) -> str:
        """Return the newest hash that a branch shares with main."""
        with self._lock:
            return self._fork_point(self.head(branch))

    def table_version(self, branch: str, name: str, at: str | None = None) -> TableVersion | None:
        """Return the version of a table on a branch, at its head or a given hash, or None if it does not exist."""
        with self._lock:
            if branch not in self._branches:
                return None
            return self._commits[at or self._branches[branch]].tables.get(name)

    def list_tables(self, branch: str, at: str) -> list[str]:
        """Return the sorted names of the tables of a branch at a hash."""
        with self._lock:
            return sorted(self._commits[at].tables)

    def diff(self, base: str, branch: str, head: str) -> list[TableDiff]:
        """Return the tables that differ between the hash `base` and a branch at `head`."""
        with self._lock:
            self.head(branch)
            return self._diff(base, head)

    def diff_namespaces(self, base: str, branch: str, head: str) -> list[NamespaceDiff]:
        """Return the namespaces that differ between the hash `base` and a branch at `head`."""
        with self._lock:
            self.head(branch)
            before, after = self._commits[base].namespaces, self._commits[head].namespaces
            keys = sorted({*before, *after})
            return [NamespaceDiff(k, before.get(k), after.get(k)) for k in keys if before.get(k) != after.get(k)]

    def set_namespace(self, branch: str, elements: tuple[str, ...], properties: Mapping[str, str] | None) -> str:
        """Create, change or drop a namespace, as a job could; return the new head."""
        with self._lock:
            return self._commit(branch, "namespace", {}, {}, namespaces={elements: properties})

    def commit_tables(
        self,
        branch: str,
        head: str,
        message: str,
        tables: Sequence[TableCommit] = (),
        properties: Mapping[str, str] | None = None,
        create_namespaces_for: Collection[str] = (),
    ) -> str:
        """Commit new versions of tables on a branch, all or none, with their namespaces; return the new head."""
        with self._lock:
            present = self._commits[self.head(branch)].tables
            if head not in self._ancestors(self.head(branch)):
                raise NoSuchBranch(f"the branch {branch} was replaced: its history lacks {head}")
            expected = self._commits[head].tables
            if any(present.get(table.name) != expected.get(table.name) for table in tables):
                raise ServiceUnavailable(f"{branch} moved meanwhile")
            changed = {table.name: table.version for table in tables}
            created = [*create_namespaces_for, *(table.name for table in tables if table.version)]
            wanted = {namespace for name in created for namespace in namespaces_of(name)}
            missing: dict[tuple[str, ...], dict[str, str]] = {
                each: {} for each in wanted - self._commits[self.head(branch)].namespaces.keys()
            }
            return self._commit(branch, message, changed, properties or {}, namespaces=missing)

    def find_conflicts(self, branch: str, head: str) -> list[str]:
        """Return the tables of the branch that main changed too since the branch began."""
        with self._lock:
            self.head(branch)
            fork = self._fork_point(head)
            by_main = {diff.name for diff in self._diff(fork, self._branches[self.main])}
            return [diff.name for diff in self._diff(fork, head) if diff.name in by_main]

    def publish(
        self, branch: BranchRef, head: str, author: str, message: str, properties: Mapping[str, str]
    ) -> Publication:
        """Merge exactly the hash `head` of a branch into main, by one commit with these properties."""
        with self._lock:
            self.head(branch.name)
            if earlier := self.find_publication(head, branch.base):
                return earlier
            before = self._branches[self.main]
            diffs = self._diff(branch.base, head)
            held = self._commits[before].tables
            conflicts = [diff.name for diff in diffs if held.get(diff.name) != diff.before]
            if conflicts:
                return Publication(merged=False, conflicts=conflicts)
            tables = {diff.name: diff.after for diff in diffs}
            namespaces = {each.elements: each.after for each in self.diff_namespaces(branch.base, branch.name, head)}
            after = self._commit(self.main, message, tables, properties, head, namespaces)
            return Publication(merged=True, main_before=before, main_after=after)

    def find_publication(self, head: str, since: str) -> Publication | None:
        """Return the merge of the hash `head` into main after the hash `since`, or None."""
        for commit in self.history(self.main):
            if commit.merged == head:
                return Publication(merged=True, main_before=commit.parent, main_after=commit.hash)
            if commit.hash == since:
                return None
        return None

    def find_published(self, properties: Mapping[str, str], since: str = "") -> CommitInfo | None:
        """Return the newest commit on main after the hash `since` that has all of these properties, or None."""
        for commit in self.history(self.main):
            if commit.hash == since:
                return None
            if properties.items() <= commit.properties.items():
                return commit
        return None

    def list_published(self, properties: Mapping[str, str], after: datetime) -> Iterator[CommitInfo]:
        """Yield the commits on main after a time that have all of these properties, newest first."""
        for commit in self.history(self.main):
            if commit.committed_at <= after:
                return
            if properties.items() <= commit.properties.items():
                yield commit

    def history(self, branch: str) -> Iterator[CommitInfo]:
        """Yield the commits of a branch, newest first."""
        with self._lock:
            hashes = [each for each in self._ancestors(self.head(branch)) if each != _ROOT]
        for each in hashes:
            yield self._commits[each].info

    def spark_properties(
        self, spark_catalog: str, branch: str, at: str | None = None, folder: Path | None = None
    ) -> dict[str, str]:
        """Return properties that name a branch. No Spark can reach the catalog in this process."""
        prefix = f"spark.sql.catalog.{spark_catalog}"
        return {f"{prefix}.ref": branch} | ({f"{prefix}.ref.hash": at} if at else {})

    def audited_catalog(self, spark_catalog: str, branch: str, head: str, folder: Path) -> tuple[str, dict[str, str]]:
        """Return the catalog of the branch."""
        return spark_catalog, {}

    def record_job(self, branch: str, spark_catalog: str, folder: Path) -> None:
        """Do nothing: a job would commit to the branch itself."""

    def explain_absence(self, lines: Iterable[str]) -> str | None:
        """Return None: a catalog in this process is always available."""
        return None

    def explain_refused_write(self, lines: Iterable[str]) -> str | None:
        """Return None: this catalog refuses no job."""
        return None

    def _commit(
        self,
        branch: str,
        message: str,
        changed: Mapping[str, TableVersion | None],
        properties: Mapping[str, str],
        merged: str = "",
        namespaces: Mapping[tuple[str, ...], Mapping[str, str] | None] | None = None,
    ) -> str:
        parent = self._branches[branch]
        present = {**self._commits[parent].namespaces, **(namespaces or {})}
        tables = {**self._commits[parent].tables, **changed}
        now = datetime.now(timezone.utc)
        info = CommitInfo(uuid.uuid4().hex * 2, parent, message, now, dict(properties), merged)
        held = {name: version for name, version in tables.items() if version is not None}
        kept = {elements: each for elements, each in present.items() if each is not None}
        self._commits[info.hash] = _Commit(info, held, kept)
        self._branches[branch] = info.hash
        return info.hash

    def _ancestors(self, head: str) -> list[str]:
        """Return a hash and its ancestors by the first parent, newest first."""
        hashes = [head]
        while parent := self._commits[hashes[-1]].info.parent:
            hashes.append(parent)
        return hashes

    def _fork_point(self, head: str) -> str:
        on_main = {part for each in self._ancestors(self._branches[self.main]) for part in (each, self._merged(each))}
        return next(each for each in self._ancestors(head) if each in on_main)

    def _merged(self, commit: str) -> str:
        return self._commits[commit].info.merged

    def _diff(self, base: str, head: str) -> list[TableDiff]:
        if not {base, head} <= self._commits.keys():
            raise CatalogRefused(f"no commit {base} or {head}")
        before, after = self._commits[base].tables, self._commits[head].tables
        names = sorted({*before, *after})
        return [TableDiff(n, before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)]
