"""The catalogs that the tests of the contract open, and a lake in which each test has names of its own.

To test a new implementation, add a line to `IMPLEMENTATIONS`: a function from the fixtures of a test to an open
catalog. If it declares `main_permissions`, also add a line to `WRITERS`: the same catalog, opened with the identity of
a writer. A test of a capability is skipped if the catalog declares that it lacks the capability.
"""

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from lakehouse.catalog import BranchCatalog, TableCommit, TableVersion
from lakehouse.iceberg_catalog.connect import open_iceberg
from lakehouse.open_catalog import open_catalog
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.settings import read_settings
from tests.harness.glue_server import GlueServer
from tests.harness.iceberg_rest import IcebergRestServer
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.postgres_server import PostgresServer
from tests.harness.table_versions import PathVersions, SnapshotVersions

IMPLEMENTATIONS: dict[str, Callable[[pytest.FixtureRequest], BranchCatalog]] = {
    "memory": lambda _: MemoryCatalog(),
    "nessie": lambda request: open_catalog(read_settings(request.getfixturevalue("stack"))),
    "iceberg-sql": lambda request: open_sql_catalog(request.getfixturevalue("tmp_path")),
    "iceberg-rest": lambda request: open_rest_catalog(request.getfixturevalue("iceberg_rest")),
    "iceberg-postgres": lambda request: open_postgres_catalog(
        request.getfixturevalue("postgres_server"), request.getfixturevalue("tmp_path")
    ),
    "iceberg-glue": lambda request: open_glue_catalog(
        request.getfixturevalue("glue_server"), request.getfixturevalue("tmp_path")
    ),
}
WRITERS: dict[str, Callable[[pytest.FixtureRequest], BranchCatalog]] = {
    "nessie": lambda request: open_catalog(
        read_settings({**request.getfixturevalue("stack"), "NESSIE_PUBLISHER_TOKEN_FILE": ""})
    ),
}
"""The same catalogs, opened without the publisher's identity."""


def open_sql_catalog(folder: Path) -> BranchCatalog:
    """Open a JDBC catalog on an SQLite file."""
    return open_iceberg("lake", "sql", f"sqlite:///{folder}/catalog.db", folder.as_uri(), {})


def open_rest_catalog(server: IcebergRestServer) -> BranchCatalog:
    """Open the catalog of Iceberg's REST reference server."""
    return open_iceberg("lake", "rest", server.uri, server.warehouse.as_uri(), {})


def open_postgres_catalog(server: PostgresServer, folder: Path) -> BranchCatalog:
    """Open a JDBC catalog in a PostgreSQL database of its own."""
    return open_iceberg("lake", "sql", server.create_database(), folder.as_uri(), {})


def open_glue_catalog(server: GlueServer, folder: Path) -> BranchCatalog:
    """Open a Glue Data Catalog."""
    return open_iceberg("lake", "glue", "", folder.as_uri(), server.properties)


class Lake:
    """A catalog in which each test has names of its own, so that tests can share a server."""

    def __init__(self, catalog: BranchCatalog, versions: PathVersions | SnapshotVersions) -> None:
        self.catalog, self._key, self._versions = catalog, uuid.uuid4().hex[:12], versions
        self._opened: list[str] = []
        self._another: TableVersion | None = None
        catalog.initialize_main()
        self.publish(*self.open("namespace"))  # so that no two branches of a test create it
        self.base = catalog.head(catalog.main)

    def table(self, name: str = "one") -> str:
        """Return the name of a table of this test."""
        return f"n{self._key}.{name}"

    def version(self, number: int, table: str = "one") -> TableVersion:
        """Return a version of a table."""
        return self._versions.version(self.table(table), number)

    def in_the_same_file(self) -> TableVersion:
        """Return a version with another snapshot in the metadata file of version 1."""
        return self._versions.in_the_same_file(self.table())

    def another_table(self) -> TableVersion:
        """Return a version of another table of the same name."""
        self._another = self._another or self._versions.of_another_table(self.table())
        return self._another

    def put(self, number: int, table: str = "one") -> TableCommit:
        """Return the change that sets a table to a version."""
        return TableCommit(self.table(table), self.version(number, table))

    def drop(self, table: str = "one") -> TableCommit:
        """Return the change that drops a table."""
        return TableCommit(self.table(table), None)

    def name(self, name: str = "a1") -> str:
        """Return the name of a branch of this test."""
        self._opened.append(f"wap/contract/{self._key}/{name}")
        return self._opened[-1]

    def open(self, name: str = "a1", *tables: TableCommit, base: str = "") -> tuple[BranchRef, str]:
        """Create a branch of main with a first commit; return it and its head."""
        base = base or self.catalog.head(self.catalog.main)
        branch = BranchRef(name=self.name(name), base=base, catalog_id=self.catalog.identity())
        self.catalog.create_branch(branch.name, base)
        namespaces = [self.table()]
        head = self.catalog.commit_tables(branch.name, base, "open", tables, {"made-by": name}, namespaces)
        return branch, head

    def publish(self, branch: BranchRef, head: str, **properties: str) -> Publication:
        """Publish a hash of a branch."""
        return self.catalog.publish(branch, head, "ana", "publish", properties)

    def published(self, name: str, *tables: TableCommit, **properties: str) -> Publication:
        """Publish versions of tables from a branch of their own."""
        branch, head = self.open(name, *tables)
        publication = self.publish(branch, head, **properties)
        assert publication.merged
        return publication

    def on_main(self, table: str = "one") -> TableVersion | None:
        """Return the version of a table that readers see."""
        return self.catalog.table_version(self.catalog.main, self.table(table))

    def close(self) -> None:
        """Delete the branches of this test."""
        for name in self._opened:
            self.catalog.delete_branch(name)


SLOW = ("iceberg-rest", "iceberg-postgres", "iceberg-glue")


def require(lake: Lake, capability: str) -> None:
    if not getattr(lake.catalog.capabilities, capability):
        pytest.skip(f"the catalog declares no {capability}")
