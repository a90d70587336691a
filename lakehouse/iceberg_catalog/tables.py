"""Read and create the tables of an Iceberg catalog with PyIceberg."""

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io import load_file_io
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata

from lakehouse.iceberg_catalog.conditional_loads import ConditionalLoads
from lakehouse.iceberg_catalog.log_commits import MAIN
from lakehouse.iceberg_catalog.metadata_changes import CREATED, write_without_snapshots
from lakehouse.iceberg_catalog.transactions import CatalogTable, CommitConflict
from sluice.errors import CatalogRefused, ServiceUnavailable
from sluice.identifiers import joined_name, name_elements, namespaces_of
from sluice.publishing.commit_properties import RUN_ID

RESERVED = "sluice"
"""Namespace of Sluice's own tables. No branch shows it."""
_AT_ONCE = 8
_LOOKS = 20
_PAUSE = 0.05


class CatalogTables:
    """Reader of a catalog's tables and namespaces.

    Requires a PyIceberg catalog.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.read_metadata = lru_cache(maxsize=2_000)(self._read_metadata)
        """Cached reader of metadata files, which never change."""
        self._load = ConditionalLoads(catalog).load if isinstance(catalog, RestCatalog) else self._load_by_pyiceberg

    def load(self, name: str) -> CatalogTable | None:
        """Return the present state of a table, or None if there is none."""
        return self.load_identifier(tuple(name_elements(name)))

    def load_identifier(self, identifier: tuple[str, ...]) -> CatalogTable | None:
        """Return the present state of the table with an identifier, or None if there is none."""
        if hasattr(self.catalog, "engine"):
            return self._load_from_database(identifier)
        for _ in range(_LOOKS):
            try:
                return self._load(identifier)
            except (NoSuchIcebergTableError, NoSuchPropertyException) as error:
                name = joined_name(identifier)
                raise CatalogRefused(
                    f"the catalog has {name}, but not as an Iceberg table: drop or rename it"
                ) from error
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
            except FileNotFoundError:  # Glue named a metadata file that was replaced and deleted meanwhile
                time.sleep(_PAUSE)
        raise _without_metadata(identifier)

    def _load_by_pyiceberg(self, identifier: tuple[str, ...]) -> CatalogTable:
        table = self.catalog.load_table(identifier)
        return CatalogTable(identifier, table.metadata, table.metadata_location)

    def _load_from_database(self, identifier: tuple[str, ...]) -> CatalogTable | None:
        """Return a table of a JDBC catalog. Retry if its metadata file was replaced and deleted meanwhile."""
        for _ in range(_LOOKS):
            location = dict(self._locations()).get(identifier)
            if location is None:
                return None
            try:
                return CatalogTable(identifier, self.read_metadata(location), location)
            except FileNotFoundError:
                time.sleep(_PAUSE)
        raise _without_metadata(identifier)

    def load_all(self) -> dict[str, CatalogTable]:
        """Return every table of the catalog by its name, except Sluice's own."""
        if hasattr(self.catalog, "engine"):
            read: Iterator[CatalogTable | None] = (
                self._read_or_load(identifier, location)
                for identifier, location in self._locations()
                if identifier[0] != RESERVED
            )
        else:
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                read = iter(list(threads.map(self.load_identifier, self._identifiers())))
        return {table.name: table for table in read if table is not None}

    def _read_or_load(self, identifier: tuple[str, ...], location: str) -> CatalogTable | None:
        with suppress(FileNotFoundError):
            return CatalogTable(identifier, self.read_metadata(location), location)
        return self.load_identifier(identifier)

    @property
    def io(self) -> dict[str, Any]:
        """Iceberg's properties for file access."""
        return dict(self.catalog.properties)

    def load_or_create(self, name: str, metadata: TableMetadata) -> CatalogTable:
        """Return the present state of a table. A missing table is created from metadata, without a snapshot.

        The new table replaces an earlier one of its name if no branch contains rows of that one.

        Raises:
            CommitConflict: another table of this name has a snapshot on main.
            CatalogRefused: another table of this name has branches or tags, or another program created it.
            ServiceUnavailable: another program dropped or created the table meanwhile.
        """
        present = self.load(name)
        if present is not None and present.uuid == str(metadata.table_uuid):
            return present
        if present is not None:
            if present.ref(MAIN) is not None:
                raise CommitConflict(f"the table {name} was created by another program meanwhile")
            if present.metadata.refs:
                raise CatalogRefused(
                    f"{name} in the catalog is another table than the one that the run wrote: its main is empty, but "
                    f"it has {', '.join(sorted(present.metadata.refs))}. Drop it, or write to it instead of creating it"
                )
            if not is_of_sluice(present):
                raise CatalogRefused(
                    f"{name} was created by another program, and has no rows: Sluice treats it as missing and would "
                    "replace it. Write a first snapshot to it, even an empty one, or drop it"
                )
            with suppress(NoSuchTableError):
                self.catalog.drop_table(present.identifier)
        self.create_namespaces(namespaces_of(name))
        identifier = tuple(name_elements(name))
        with suppress(TableAlreadyExistsError):
            self.catalog.register_table(identifier, write_without_snapshots(metadata, self.io))
        table = self.load(name)
        if table is None or table.uuid != str(metadata.table_uuid):
            raise ServiceUnavailable(f"the table {name} was dropped or created by another program meanwhile")
        return table

    def create_namespaces(self, namespaces: Iterable[tuple[str, ...]]) -> None:
        """Create missing namespaces, outer ones first."""
        for elements in sorted(namespaces, key=len):
            self.create_namespace(elements)

    def create_namespace(self, elements: tuple[str, ...]) -> None:
        """Create a namespace if it is missing. Another process may do so at the same time."""
        try:
            self.catalog.create_namespace(elements)
        except NamespaceAlreadyExistsError:
            return
        except Exception as error:
            if type(error).__name__ != "IntegrityError":  # SQLAlchemy's error for a row that exists already
                raise

    def _identifiers(self, parent: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
        """Return the identifiers of all tables in the namespaces below a namespace."""
        identifiers: list[tuple[str, ...]] = []
        for namespace in self.catalog.list_namespaces(parent):
            if namespace == (RESERVED,) or len(namespace) <= len(parent):
                continue
            identifiers += self.catalog.list_tables(namespace)
            identifiers += self._identifiers(namespace)
        return identifiers

    def _locations(self) -> list[tuple[tuple[str, ...], str]]:
        """Return the metadata file of each table, by one query of a JDBC catalog's database."""
        from pyiceberg.catalog.sql import IcebergTables  # noqa: PLC0415
        from sqlalchemy import select  # noqa: PLC0415

        columns = (IcebergTables.table_namespace, IcebergTables.table_name, IcebergTables.metadata_location)
        query = select(*columns).where(IcebergTables.catalog_name == self.catalog.name)
        engine: Any = self.catalog.engine  # type: ignore[attr-defined]
        with engine.connect() as connection:
            return [
                ((*namespace.split("."), name), location)
                for namespace, name, location in connection.execute(query)
                if location
            ]

    def _read_metadata(self, location: str) -> TableMetadata:
        io = load_file_io(dict(self.catalog.properties), location)
        return FromInputFile.table_metadata(io.new_input(location))


def _without_metadata(identifier: tuple[str, ...]) -> CatalogRefused:
    name = joined_name(identifier)
    return CatalogRefused(
        f"the metadata file that the catalog names for {name} is not there, so no run can publish: register the "
        "table with an existing file, or drop it"
    )


def is_of_sluice(table: CatalogTable) -> bool:
    """Return True if runs published to a table, or if it was created for a publish."""
    summaries = (each.summary for each in table.metadata.snapshots)
    marked = any(each is not None and RUN_ID in each.additional_properties for each in summaries)
    return marked or CREATED in table.metadata.properties
