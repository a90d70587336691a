"""The commits of the log, and the names of the references that the log has for itself."""

import hashlib
import json
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

from pydantic import Field

from lakehouse.catalog import CommitInfo
from sluice.base_model import Model

MAIN = "main"
"""The branch that readers of an Iceberg table read."""
PENDING = "sluice/pending/"
"""How references to publications begin that may not have been finished."""
ROOT_REF = "sluice/root"
HALF = "sluice/half/"
"""How references to publications begin of which some tables are on main, and the others can never be."""
HIDDEN = (PENDING, HALF, ROOT_REF)
"""The references that are no branches of runs."""
PAGE = 8
"""How many commits a page of the log holds at most."""


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
    number: int = 0
    """How many commits are before it."""
    fork: str = ""
    """The commit of main that its branch began at; empty for a commit of main itself, or one that is to become so."""
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
    def is_first_of_page(self) -> bool:
        """Whether a page of the log begins with it."""
        return self.number % PAGE == 0

    def changed(self, **fields: Any) -> "LogCommit":
        """Return another commit, with some fields changed. A copy by pydantic would keep the hash of this one."""
        return LogCommit(**{**{name: getattr(self, name) for name in LogCommit.model_fields}, **fields})

    def info(self) -> CommitInfo:
        """Return the commit as the port has it."""
        return CommitInfo(self.hash, self.parent, self.message, self.at, self.properties, self.merged)


def now() -> datetime:
    """Return the time of a commit that is made now."""
    return datetime.now(timezone.utc)


class LogState(Model):
    """The tables and namespaces after a commit."""

    tables: dict[str, LoggedVersion] = Field(default_factory=dict)
    namespaces: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Those that commits created, with their properties, by their joined names."""

    def after(self, commit: LogCommit) -> "LogState":
        """Return the state after one more commit."""
        tables, namespaces = {**self.tables, **commit.tables}, {**self.namespaces, **commit.namespaces}
        return LogState(
            tables={name: version for name, version in tables.items() if version is not None},
            namespaces={name: properties for name, properties in namespaces.items() if properties is not None},
        )


def is_other(one: LoggedVersion | None, other: LoggedVersion | None) -> bool:
    """Return whether two versions of a table differ; None stands for no table."""
    return other is not None if one is None else not one.is_same(other)


def pending_ref(head: str) -> str:
    """Return the reference under which the publication of a hash is kept until it is finished."""
    return PENDING + head[:24]


def half_ref(head: str) -> str:
    """Return the reference under which the publication of a hash is kept that ended half done."""
    return HALF + head[:24]
