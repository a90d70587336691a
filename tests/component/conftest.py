"""Fixtures with one Spark session, shared by the tests of Spark's programs and of the scan engines."""

import os
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from engine.job import SparkJob
from engine.spark.class_data_archive import archive_option, find_archive
from engine.spark.configuration import properties
from engine.spark.java import find_java
from lakehouse.open_catalog import open_catalog
from sluice.settings import read_settings
from tests.harness.audited_table import Table
from tests.harness.glue_server import GlueServer
from tests.harness.ingester import Ingester
from tests.harness.lake import LakeReader
from tests.harness.main_tables import MainTables
from tests.harness.memory_system import MemorySystem, memory_system
from tests.harness.postgres_server import PostgresServer
from tests.harness.rest_catalog import RestCatalogServer
from tests.harness.warm_branch import BRANCH
from workflows.arrivals import zone_listings


@pytest.fixture(scope="session")
def glue_of_session() -> Iterator[GlueServer]:
    server = GlueServer()
    yield server
    server.stop()


@pytest.fixture
def glue_server(glue_of_session: GlueServer) -> GlueServer:
    """An empty Glue Data Catalog."""
    glue_of_session.reset()
    return glue_of_session


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server."""
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def memory(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemorySystem]:
    """A system without Spark and Nessie. Each sequence of commands clears its catalog."""
    with memory_system(home / "bin" / "temporal", tmp_path_factory.mktemp("memory")) as system:
        yield system


@pytest.fixture
def immediate_listings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have zones list their files at once when notified: their clock is the test's."""
    monkeypatch.setattr(zone_listings, "_SOON", 0.0)
    monkeypatch.setattr(zone_listings, "_EVERY", 0.0)


@pytest.fixture(scope="package")
def spark(stack: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    settings = read_settings(stack)
    catalog = open_catalog(settings)
    catalog.create_branch(BRANCH, catalog.initialize_main())
    catalog.commit_tables(BRANCH, catalog.head(BRANCH), "Begin the tests", create_namespaces_for=["i.x"])
    bound = catalog.spark_properties(settings.catalog.catalog_name, BRANCH)
    job = SparkJob(Path(), tmp_path_factory.mktemp("spark"), BRANCH, catalog=bound, run_id="tests", attempt=1)
    java = find_java()
    os.environ["JAVA_HOME"] = str(java)
    archive = find_archive(settings.storage, java)
    options = f"{os.environ['SPARK_SUBMIT_OPTS']} {archive_option(archive) if archive else ''}"
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    conf: dict[str, bool | float | int | str | None] = {
        **properties(settings.spark_jobs, job),
        **local,
    }
    with mock.patch.dict(os.environ, SPARK_SUBMIT_OPTS=options, TZ="UTC"):
        session = SparkSession.builder.config(map=conf).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    catalog.delete_branch(BRANCH)


@pytest.fixture
def job(spark: SparkSession, lake: LakeReader, tmp_path: Path, request: pytest.FixtureRequest) -> Ingester:
    """The built-in job on a table named after the test."""
    plain = "".join(character if character.isalnum() else "_" for character in request.node.name)
    return Ingester(spark, lake, f"i.{plain}", tmp_path)


@pytest.fixture
def table(spark: SparkSession, stack: dict[str, str], request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """An audited table named after the test, the same for all its parameters."""
    return Table(spark, open_catalog(read_settings(stack)), f"i.{request.node.name.split('[')[0]}", tmp_path)


@pytest.fixture
def server() -> Iterator[RestCatalogServer]:
    """An empty REST catalog, as a target of registrations."""
    server = RestCatalogServer()
    yield server
    server.close()


@pytest.fixture
def main(tmp_path: Path) -> MainTables:
    """Tables on main, which targets register."""
    return MainTables(tmp_path)
