"""Commit to the tables of a JDBC catalog by one transaction of its database."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.io import load_file_io
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table.update import update_table_metadata

from lakehouse.iceberg.commit import next_metadata_location
from lakehouse.iceberg_catalog.databases import database_problem
from lakehouse.iceberg_catalog.transactions import (
    CatalogTable,
    CommitConflict,
    TableChange,
    check_requirements,
    delete_old_metadata,
)
from sluice.errors import ServiceUnavailable
from sluice.publishing.capabilities import Guarantee

_OVERTAKEN = ("40001", "40P01")
"""SQLSTATE codes of a transaction that lost to others: a failed serialization, and a deadlock."""


@dataclass(frozen=True)
class SqlCommitter:
    """Committer that uses one transaction of a JDBC catalog's database, which is always atomic.

    Every table is a row with the path of its metadata file. A commit is a compare-and-swap of that path, and a database
    performs several of them in one transaction. Source: Iceberg's specification of the JDBC catalog.
    """

    catalog: Any
    """A `pyiceberg.catalog.sql.SqlCatalog`; its module is imported where it is used."""
    guarantee: Guarantee = "atomic"

    def commit(self, changes: Sequence[TableChange]) -> None:
        """Write the new metadata files, and point all tables to them at once."""
        from sqlalchemy.exc import OperationalError  # noqa: PLC0415

        staged = [(change, self._stage(change)) for change in changes]
        try:
            self._move(staged)
        except CommitConflict:
            self._discard(staged)
            raise
        except OperationalError as error:
            if getattr(error.orig, "sqlstate", None) in _OVERTAKEN:
                self._discard(staged)
                raise CommitConflict(str(error.orig)) from error
            raise ServiceUnavailable(database_problem(str(error.orig))) from error
        for change in changes:
            delete_old_metadata(self.catalog, change)

    def _move(self, staged: Sequence[tuple[TableChange, str]]) -> None:
        """Point all tables to their new files, in the same order in all processes: they lock each other's rows."""
        with self.catalog.engine.begin() as connection:
            for change, location in sorted(staged, key=lambda each: each[0].table.identifier):
                if location == change.table.location:
                    continue
                if connection.execute(self._statement(change.table, location)).rowcount != 1:
                    raise CommitConflict(f"{change.table.name} was changed meanwhile")

    def _stage(self, change: TableChange) -> str:
        table = change.table
        check_requirements(change)
        metadata = update_table_metadata(table.metadata, change.updates, metadata_location=table.location)
        if metadata == table.metadata:
            return table.location
        location = next_metadata_location(metadata, table.location)
        io = load_file_io(dict(self.catalog.properties), location)
        ToOutputFile.table_metadata(metadata, io.new_output(location))
        return location

    def _statement(self, table: CatalogTable, location: str) -> Any:
        from pyiceberg.catalog.sql import IcebergTables  # noqa: PLC0415
        from sqlalchemy import update  # noqa: PLC0415

        return (
            update(IcebergTables)
            .where(
                IcebergTables.catalog_name == self.catalog.name,
                IcebergTables.table_namespace == ".".join(table.identifier[:-1]),
                IcebergTables.table_name == table.identifier[-1],
                IcebergTables.metadata_location == table.location,
            )
            .values(metadata_location=location, previous_metadata_location=table.location)
        )

    def _discard(self, staged: Sequence[tuple[TableChange, str]]) -> None:
        """Delete metadata files that no table points to."""
        for change, location in staged:
            if location != change.table.location:
                with contextlib.suppress(OSError):
                    load_file_io(dict(self.catalog.properties), location).delete(location)
