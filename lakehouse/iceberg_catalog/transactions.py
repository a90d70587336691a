"""Commits to Iceberg tables: several in one transaction where the catalog can, and what it guarantees."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import requests
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchTableError,
)
from pyiceberg.io import load_file_io
from pyiceberg.table import CommitTableRequest, Table, TableIdentifier
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from sluice.errors import ServiceUnavailable
from sluice.identifiers import joined_name
from sluice.publishing.capabilities import Guarantee

_TOKEN_EXPIRED = (401, 419)
"""What a REST server answers where a token is not valid any more."""


class CommitConflict(Exception):
    """Raised inside this package when a requirement does not hold: nothing was changed."""


@dataclass(frozen=True)
class CatalogTable:
    """A table as the catalog has it."""

    identifier: tuple[str, ...]
    metadata: TableMetadata
    location: str
    """The metadata file."""

    @property
    def name(self) -> str:
        """Its name, as pipelines have it."""
        return joined_name(self.identifier)

    @property
    def uuid(self) -> str:
        """What distinguishes it from another table of this name, before or after it."""
        return str(self.metadata.table_uuid)

    def ref(self, name: str) -> int | None:
        """Return the snapshot that a branch of it points to, or None."""
        reference = self.metadata.refs.get(name)
        is_branch = reference is not None and reference.snapshot_ref_type == SnapshotRefType.BRANCH
        return reference.snapshot_id if reference and is_branch else None

    def has_ancestor(self, snapshot: int | None, ancestor: int) -> bool:
        """Return whether a snapshot is another one, or descends from it, as far back as snapshots are kept."""
        while snapshot is not None and snapshot != ancestor:
            present = self.metadata.snapshot_by_id(snapshot)
            snapshot = present.parent_snapshot_id if present else None
        return snapshot == ancestor


@dataclass(frozen=True)
class TableChange:
    """What a commit does to one table, and what must hold for that."""

    table: CatalogTable
    requirements: tuple[TableRequirement, ...]
    updates: tuple[TableUpdate, ...]


class Committer(Protocol):
    """Commits changes to tables."""

    @property
    def guarantee(self) -> Guarantee:
        """What holds for several changes: see `docs/catalogs.md`."""

    def commit(self, changes: Sequence[TableChange]) -> None:
        """Commit changes, all or none as far as the guarantee goes.

        Raises:
            CommitConflict: a requirement does not hold. Nothing was changed, unless tables are committed one by one.
            ServiceUnavailable: whether it was committed is not known.
        """


@dataclass(frozen=True)
class RestCommitter:
    """Commits by the transaction endpoint of Iceberg's REST protocol.

    The protocol asks for one commit over all tables, and a server validates all requirements first. Whether it is one
    after a crash in the middle depends on the server: only one that is known for it is declared atomic.
    """

    catalog: RestCatalog
    guarantee: Guarantee = "checked"

    def commit(self, changes: Sequence[TableChange]) -> None:
        """Send one request for all tables.

        One table is committed by the endpoint for it: of a transaction that another commit overtakes, Iceberg's
        reference server says that it was done.
        """
        if len(changes) == 1:
            SingleCommitter(self.catalog).commit(changes)
            return
        body = {"table-changes": [json.loads(_request(change).model_dump_json()) for change in changes]}
        try:
            answer = self._post(body)
            if answer.status_code in _TOKEN_EXPIRED:  # nothing was done
                self.catalog._refresh_token()
                answer = self._post(body)
        except (requests.ConnectionError, requests.Timeout) as error:
            raise ServiceUnavailable("the catalog did not answer a commit") from error
        if answer.ok:
            return
        message = answer.text[:500]
        if answer.status_code in (404, 409) or (answer.status_code == 400 and "sequence number" in message):
            raise CommitConflict(message)
        if answer.status_code >= 500 or answer.status_code == 429:
            raise ServiceUnavailable(f"the catalog answers {answer.status_code} to a commit: {message}")
        refused = ForbiddenError if answer.status_code in (*_TOKEN_EXPIRED, 403) else BadRequestError
        raise refused(f"{answer.status_code} to a commit: {message}")

    def _post(self, body: dict[str, Any]) -> requests.Response:
        return self.catalog._session.post(self.catalog.url("transactions/commit"), json=body, timeout=60)


@dataclass(frozen=True)
class SingleCommitter:
    """Commits one table after the other, for catalogs that have no endpoint for several.

    Each commit is a compare-and-swap: a REST server does it, and Glue by the version that PyIceberg names of the table.
    """

    catalog: Catalog
    guarantee: Guarantee = "one by one"

    def commit(self, changes: Sequence[TableChange]) -> None:
        """Commit each change in its turn; end at the first that is refused."""
        for change in changes:
            check_requirements(change)
            table = change.table
            io = load_file_io(dict(self.catalog.properties), table.location)
            try:
                self.catalog.commit_table(
                    Table(table.identifier, table.metadata, table.location, io, self.catalog),
                    change.requirements,
                    change.updates,
                )
            except (CommitFailedException, NoSuchTableError) as error:
                raise CommitConflict(str(error)) from error
            except BadRequestError as error:
                if "sequence number" in str(error):
                    raise CommitConflict(str(error)) from error
                raise
            except CommitStateUnknownException as error:
                raise ServiceUnavailable(f"whether {table.name} was committed is not known: {error}") from error
            if not isinstance(self.catalog, RestCatalog):  # whose server does it
                delete_old_metadata(self.catalog, change)


def set_branch(name: str, snapshot_id: int, kept: SnapshotRef | None = None) -> SetSnapshotRefUpdate:
    """Return the update that sets a branch of a table to a snapshot.

    Args:
        kept: the branch as it is, whose retention stays.
    """
    retention = ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms")
    return SetSnapshotRefUpdate(
        ref_name=name,
        type="branch",
        snapshot_id=snapshot_id,
        **{each: getattr(kept, each, None) for each in retention},
    )


def last_sequence_number(metadata: TableMetadata) -> int:
    """Return the highest sequence number that a table gave; 0 for a table of format 1, which has none."""
    return int(getattr(metadata, "last_sequence_number", 0))


def check_requirements(change: TableChange) -> None:
    """Make sure that the table is as a change requires it.

    PyIceberg's own check refuses every branch but main of a table without a snapshot.

    Raises:
        CommitConflict: it is not.
    """
    for requirement in change.requirements:
        if isinstance(requirement, AssertRefSnapshotId):
            present = change.table.ref(requirement.ref)
            if present != requirement.snapshot_id:
                raise CommitConflict(
                    f"{change.table.name}: {requirement.ref} is at {present}, not at {requirement.snapshot_id}"
                )
            continue
        try:
            requirement.validate(change.table.metadata)
        except CommitFailedException as error:
            raise CommitConflict(f"{change.table.name}: {error}") from error


def delete_old_metadata(catalog: Catalog, change: TableChange) -> None:
    """Delete the metadata files of before the last few, where the table asks for it, as the commit log does."""
    before, properties = change.table.metadata, change.table.metadata.properties
    if properties.get("write.metadata.delete-after-commit.enabled") != "true":
        return
    kept = int(properties.get("write.metadata.previous-versions-max", "100"))
    io = load_file_io(dict(catalog.properties), change.table.location)
    for old in before.metadata_log[: max(0, len(before.metadata_log) + 1 - kept)]:
        with contextlib.suppress(OSError):
            io.delete(old.metadata_file)


def _request(change: TableChange) -> CommitTableRequest:
    *namespace, name = change.table.identifier
    identifier = TableIdentifier(namespace=tuple(namespace), name=name)
    return CommitTableRequest(identifier=identifier, requirements=change.requirements, updates=change.updates)
