"""Commits of the log, and names of the references that the log uses internally."""

import hashlib
import json
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

from pydantic import Field

from lakehouse.catalog import CommitInfo
from sluice.base_model import StrictModel

MAIN = "main"
"""Branch that readers of an Iceberg table read."""
PENDING = "sluice/pending/"
"""Prefix of references to publications that may be unfinished."""
ROOT_REF = "sluice/root"
HALF = "sluice/half/"
"""Prefix of references to publications that ended half done: some tables are on main, the others can never be."""
HIDDEN = (PENDING, HALF, ROOT_REF)
"""References that are not branches of runs."""
PAGE = 8
"""Maximum number of commits on a page of the log."""


class LoggedVersion(StrictModel):
    """A version of a table, as a commit records it."""

    uuid: str
    """UUID of the table."""
    snapshot_id: int
    layout: str
    """Digest of its columns, partitions, order and properties."""
    location: str
    """A metadata file that contains the snapshot."""

    def is_same(self, other: "LoggedVersion | None") -> bool:
        """Return True if readers see the same in both, even if other metadata of the table changed."""
        if other is None:
            return False
        return (self.uuid, self.snapshot_id, self.layout) == (other.uuid, other.snapshot_id, other.layout)


class LogCommit(StrictModel):
    """One commit of the log: its changes and their reason."""

    parent: str = ""
    number: int = 0
    """Number of commits before it."""
    fork: str = ""
    """Commit of main from which its branch was created; empty for a commit of main, or one that is to become one."""
    merged: str = ""
    """Hash of the branch that the commit merged."""
    author: str = ""
    message: str = ""
    at: datetime
    properties: dict[str, str] = Field(default_factory=dict)
    tables: dict[str, LoggedVersion | None] = Field(default_factory=dict)
    """Tables that it changed; None for a removed table."""
    namespaces: dict[str, dict[str, str] | None] = Field(default_factory=dict)
    """Namespaces that it created, by their joined names."""

    @cached_property
    def hash(self) -> str:
        """Hash that identifies the commit, its history, and the exact snapshot of each table.

        A field with its default value is left out, so that a field of a later release changes no earlier hash.
        """
        content = json.dumps(self.model_dump(mode="json", exclude_defaults=True), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def is_first_of_page(self) -> bool:
        """True if the commit begins a page of the log."""
        return self.number % PAGE == 0

    def changed(self, **fields: Any) -> "LogCommit":
        """Return a copy with some fields changed. A copy by pydantic would keep the hash of this commit."""
        return LogCommit(**{**{name: getattr(self, name) for name in LogCommit.model_fields}, **fields})

    def info(self) -> CommitInfo:
        """Return the commit as a value of the port."""
        return CommitInfo(self.hash, self.parent, self.message, self.at, self.properties, self.merged)


def now() -> datetime:
    """Return the time for a commit made now."""
    return datetime.now(timezone.utc)


class LogState(StrictModel):
    """The tables and namespaces after a commit."""

    tables: dict[str, LoggedVersion] = Field(default_factory=dict)
    namespaces: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Namespaces that commits created, with their properties, by their joined names."""

    def after(self, commit: LogCommit) -> "LogState":
        """Return the state after one more commit."""
        tables, namespaces = {**self.tables, **commit.tables}, {**self.namespaces, **commit.namespaces}
        return LogState(
            tables={name: version for name, version in tables.items() if version is not None},
            namespaces={name: properties for name, properties in namespaces.items() if properties is not None},
        )


def versions_differ(one: LoggedVersion | None, other: LoggedVersion | None) -> bool:
    """Return True if two versions of a table differ. None stands for no table."""
    return other is not None if one is None else not one.is_same(other)


def pending_ref(head: str) -> str:
    """Return the reference that points to the publication of a hash until it is finished."""
    return PENDING + head[:24]


def half_ref(head: str) -> str:
    """Return the reference that points to the publication of a hash that ended half done."""
    return HALF + head[:24]
