"""Sluice's catalog over an Iceberg catalog, an independent reader of it, and the jobs of its runs."""

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from lakehouse.iceberg_catalog import publication
from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.publication import Publisher
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef

SCHEMA = pa.schema([("id", pa.int32())])


def ids(*numbers: int) -> pa.Table:
    """Return rows with these ids."""
    return pa.table({"id": pa.array(numbers, pa.int32())})


class IcebergLake:
    """A lake in a namespace of its own. `reader` is plain PyIceberg, without Sluice."""

    def __init__(self, catalog: IcebergCatalog, reader: Catalog, *tables: str) -> None:
        self.catalog, self.reader, self.namespace = catalog, reader, f"n{uuid.uuid4().hex[:8]}"
        reader.create_namespace(self.namespace)
        for name in tables:
            reader.create_table(self.name(name), SCHEMA, properties={"commit.retry.num-retries": "100"})
            self.append(name, 1)
            self.append(name, 2)
        catalog.initialize_main()

    def name(self, table: str) -> str:
        """Return the full name of a table."""
        return f"{self.namespace}.{table}"

    def table(self, table: str) -> Table:
        """Return a table as other programs see it."""
        return self.reader.load_table(self.name(table))

    def append(self, table: str, *numbers: int) -> None:
        """Append rows to a table's main, as another program does."""
        self.table(table).append(ids(*numbers))

    def rows(self, table: str) -> list[int]:
        """Return the sorted ids on a table's main."""
        return sorted(self.table(table).scan().to_arrow()["id"].to_pylist())

    def snapshot(self, table: str) -> int | None:
        """Return the current snapshot of a table's main."""
        snapshot = self.table(table).current_snapshot()
        return snapshot.snapshot_id if snapshot else None

    def locations(self) -> dict[str, str]:
        """Return the metadata file of each table."""
        names = [name for _, name in self.reader.list_tables(self.namespace)]
        return {name: self.table(name).metadata_location for name in sorted(names)}

    def branch(self) -> BranchRef:
        """Create a branch at the head of main."""
        base = self.catalog.head("main")
        branch = BranchRef(name=f"wap/x/{uuid.uuid4().hex[:8]}/a1", base=base, catalog_id=self.catalog.identity())
        self.catalog.create_branch(branch.name, base)
        return branch

    def publish(self, branch: BranchRef, head: str = "", catalog: IcebergCatalog | None = None) -> Publication:
        """Publish a branch at a hash, by default its head."""
        catalog = catalog or self.catalog
        return catalog.publish(branch, head or catalog.head(branch.name), "ana", "publish", {"run": branch.name})


def before_moving(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Have `meanwhile` run once, after a publication became pending and before main of a table moves.

    Another process may do anything there, and only the process of the publication knows when it is there.
    """
    move, done = Publisher._move, threading.Event()

    def late(self: Publisher, *arguments: Any) -> None:
        if not done.is_set():
            done.set()
            meanwhile()
        move(self, *arguments)

    monkeypatch.setattr(Publisher, "_move", late)


def abandon_publications(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count each pending publication as abandoned at once; otherwise that takes a minute."""
    monkeypatch.setattr(publication, "_ABANDONED", timedelta(0))


class WriterJob:
    """A job that PyIceberg runs on a branch, in the catalog that a Spark job would get."""

    def __init__(self, lake: IcebergLake, folder: Path, branch: BranchRef | None = None) -> None:
        self.lake, self.branch = lake, branch or lake.branch()
        self.name, self.folder = f"job{uuid.uuid4().hex[:8]}", folder / uuid.uuid4().hex[:8]
        self.folder.mkdir(parents=True)
        self.properties = lake.catalog.spark_properties(self.name, self.branch.name, folder=self.folder)

    def open(self) -> Catalog:
        """Open the job's catalog by PyIceberg."""
        prefix = f"spark.sql.catalog.{self.name}"
        file = self.properties[f"{prefix}.uri"].removeprefix("jdbc:sqlite:").partition("?")[0]
        return SqlCatalog(self.name, uri=f"sqlite:///{file}", warehouse=self.properties[f"{prefix}.warehouse"])

    def append(self, table: str, *numbers: int) -> None:
        """Append rows to a table."""
        self.open().load_table(self.lake.name(table)).append(ids(*numbers))

    def record(self) -> str:
        """Record the writes of the job; return the branch's head."""
        self.lake.catalog.record_job(self.branch.name, self.name, self.folder)
        return self.lake.catalog.head(self.branch.name)


class SparkWriterJob(WriterJob):
    """A job that Spark runs on a branch."""

    def __init__(self, lake: IcebergLake, folder: Path, spark: SparkSession) -> None:
        super().__init__(lake, folder)
        self.session = spark.newSession()
        for key, value in self.properties.items():
            self.session.conf.set(key, value)

    def sql(self, *statements: str) -> None:
        """Run statements. {t} stands for the table `t`, {c} for the catalog and {n} for the namespace."""
        for statement in statements:
            named = statement.replace("{t}", "{c}.{n}.t").replace("{c}", self.name).replace("{n}", self.lake.namespace)
            self.session.sql(named).collect()
