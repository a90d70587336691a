"""Commits to Iceberg tables: several in one transaction if the catalog supports it, each with its guarantee."""

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
"""Statuses of a REST server for an expired token."""


class CommitConflict(Exception):
    """Raised inside this package when a requirement is not met. Nothing was changed."""


@dataclass(frozen=True)
class CatalogTable:
    """A table in the catalog."""

    identifier: tuple[str, ...]
    metadata: TableMetadata
    location: str
    """Path of the metadata file."""

    @property
    def name(self) -> str:
        """Name of the table, as pipelines write it."""
        return joined_name(self.identifier)

    @property
    def uuid(self) -> str:
        """UUID that distinguishes the table from an earlier or later one of its name."""
        return str(self.metadata.table_uuid)

    def ref(self, name: str) -> int | None:
        """Return the snapshot that a branch of the table points to, or None."""
        reference = self.metadata.refs.get(name)
        is_branch = reference is not None and reference.snapshot_ref_type == SnapshotRefType.BRANCH
        return reference.snapshot_id if reference and is_branch else None

    def has_ancestor(self, snapshot: int | None, ancestor: int) -> bool:
        """Return True if a snapshot equals or descends from another one, as far as snapshots are kept."""
        while snapshot is not None and snapshot != ancestor:
            present = self.metadata.snapshot_by_id(snapshot)
            snapshot = present.parent_snapshot_id if present else None
        return snapshot == ancestor


@dataclass(frozen=True)
class TableChange:
    """Updates of one table in a commit, and their requirements."""

    table: CatalogTable
    requirements: tuple[TableRequirement, ...]
    updates: tuple[TableUpdate, ...]


class Committer(Protocol):
    """Interface for commits of changes to tables."""

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee for several changes: see `docs/catalogs.md`."""

    def commit(self, changes: Sequence[TableChange]) -> None:
        """Commit changes, all or none as far as the guarantee goes.

        Raises:
            CommitConflict: a requirement is not met. Nothing was changed, unless tables are committed one by one.
            ServiceUnavailable: it is unknown if the changes were committed.
        """


@dataclass(frozen=True)
class RestCommitter:
    """Committer that uses the transaction endpoint of Iceberg's REST protocol.

    The protocol requires one commit over all tables, and a server validates all requirements first. Atomicity after a
    crash in the middle depends on the server, so only a server known for it is declared atomic.
    """

    catalog: RestCatalog
    guarantee: Guarantee = "checked"

    def commit(self, changes: Sequence[TableChange]) -> None:
        """Send one request for all tables.

        A single table is committed by its own endpoint: Iceberg's reference server reports success for a transaction
        that another commit overtook.
        """
        if len(changes) == 1:
            SingleCommitter(self.catalog).commit(changes)
            return
        body = {"table-changes": [json.loads(_request(change).model_dump_json()) for change in changes]}
        try:
            answer = self._post(body)
            if answer.status_code in _TOKEN_EXPIRED:  # nothing was committed
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
    """Committer of one table after the other, for catalogs without an endpoint for several.

    Each commit is a compare-and-swap: by the REST server, or in Glue by the table version that PyIceberg names.
    """

    catalog: Catalog
    guarantee: Guarantee = "one by one"

    def commit(self, changes: Sequence[TableChange]) -> None:
        """Commit the changes in order; stop at the first one that is refused."""
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
                raise ServiceUnavailable(f"the catalog did not confirm the commit of {table.name}: {error}") from error
            if not isinstance(self.catalog, RestCatalog):  # a REST server deletes them itself
                delete_old_metadata(self.catalog, change)


def set_branch(name: str, snapshot_id: int, kept: SnapshotRef | None = None) -> SetSnapshotRefUpdate:
    """Return the update that sets a branch of a table to a snapshot.

    Args:
        kept: the present branch, whose retention settings stay.
    """
    retention = ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms")
    return SetSnapshotRefUpdate(
        ref_name=name,
        type="branch",
        snapshot_id=snapshot_id,
        **{each: getattr(kept, each, None) for each in retention},
    )


def last_sequence_number(metadata: TableMetadata) -> int:
    """Return the highest sequence number that a table assigned; 0 for a table of format 1, which has none."""
    return int(getattr(metadata, "last_sequence_number", 0))


def check_requirements(change: TableChange) -> None:
    """Verify that the table meets the requirements of a change.

    PyIceberg's own check refuses every branch except main of a table without a snapshot.

    Raises:
        CommitConflict: the table does not meet a requirement.
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
    """Delete metadata files beyond the number that the table keeps, if its properties enable that, as the log's do."""
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
