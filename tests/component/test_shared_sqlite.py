"""A JDBC catalog on SQLite that Spark and PyIceberg share, as the catalog of the local stack assumes."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

WRITES = 6
ROW = pa.table({"id": pa.array([1], pa.int32())})


class SharedCatalog:
    """One database, opened by PyIceberg and by a Spark session. Each waits for the other's locks."""

    def __init__(self, folder: Path, spark: SparkSession, name: str) -> None:
        self.name, self._folder = name, folder
        self.pyiceberg = self.open()
        with sqlite3.connect(folder / "catalog.db") as database:
            database.execute("PRAGMA journal_mode=WAL")  # stored in the file
        self.spark = spark.newSession()
        prefix = f"spark.sql.catalog.{name}"
        self.spark.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        self.spark.conf.set(f"{prefix}.type", "jdbc")
        self.spark.conf.set(f"{prefix}.uri", f"jdbc:sqlite:{folder}/catalog.db?busy_timeout=60000")
        self.spark.conf.set(f"{prefix}.warehouse", f"file:{folder}/warehouse")
        self.spark.conf.set(f"{prefix}.cache-enabled", "false")

    def open(self, name: str = "") -> SqlCatalog:
        """Open the database by PyIceberg, under this catalog name or another."""
        uri = f"sqlite:///{self._folder}/catalog.db?timeout=60"
        return SqlCatalog(name or self.name, uri=uri, warehouse=f"file:{self._folder}/warehouse")


@pytest.fixture
def shared(tmp_path: Path, spark: SparkSession) -> SharedCatalog:
    return SharedCatalog(tmp_path, spark, f"shared_{tmp_path.name}")


def test_both_see_what_the_other_makes(shared: SharedCatalog) -> None:
    shared.spark.sql(f"CREATE NAMESPACE {shared.name}.a")
    shared.spark.sql(f"CREATE NAMESPACE {shared.name}.a.b")
    shared.spark.sql(f"CREATE TABLE {shared.name}.a.b.one USING iceberg AS SELECT 7 AS id")
    assert shared.pyiceberg.list_namespaces("a") == [("a", "b")]
    assert shared.pyiceberg.load_table("a.b.one").scan().to_arrow().to_pydict() == {"id": [7]}
    shared.pyiceberg.create_table("a.two", ROW.schema).append(ROW)
    assert [row.id for row in shared.spark.table(f"{shared.name}.a.two").collect()] == [1]


def test_the_name_of_the_catalog_is_part_of_every_key(shared: SharedCatalog) -> None:
    """Under another name, the same database is an empty catalog, without any message."""
    shared.pyiceberg.create_namespace("a")
    assert shared.open("other").list_namespaces() == []


def test_writers_of_both_kinds_at_once_lose_nothing(shared: SharedCatalog) -> None:
    shared.pyiceberg.create_namespace("a")
    shared.pyiceberg.create_table("a.t", ROW.schema, properties={"commit.retry.num-retries": "100"})

    def by_pyiceberg(_: int) -> None:
        catalog = shared.open()
        for _ in range(WRITES):
            catalog.load_table("a.t").append(ROW)

    def by_spark(_: int) -> None:
        for _ in range(WRITES):
            shared.spark.sql(f"INSERT INTO {shared.name}.a.t VALUES (2)")

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(write, n) for n in range(2) for write in (by_pyiceberg, by_spark)]:
            each.result()
    table = shared.pyiceberg.load_table("a.t")
    assert len(table.scan().to_arrow()) == len(table.metadata.snapshots) == 4 * WRITES
