"""One warm Spark session on a branch of its own, for the tests of the programs that Spark runs."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.configuration import properties
from engine.java import find_java
from engine.job import SparkJob
from lakehouse.opening import open_catalogue
from lakehouse.operations import mark
from sluice.settings import read_settings

BRANCH = "wap/warm-tests"


@pytest.fixture(scope="package")
def spark(stack: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    settings = read_settings(stack)
    catalogue = open_catalogue(settings)
    catalogue.create_branch(BRANCH, catalogue.main_head())
    changes = [mark(), *catalogue.put_namespaces(BRANCH, ["i.x"])]
    catalogue.commit(BRANCH, catalogue.head(BRANCH), "Begin the tests", changes)
    job = SparkJob(Path(), tmp_path_factory.mktemp("spark"), BRANCH, run_id="tests", attempt=1)
    os.environ["JAVA_HOME"] = str(find_java())
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    conf: dict[str, bool | float | int | str | None] = {
        **properties(settings, job),
        **local,
    }
    session = SparkSession.builder.config(map=conf).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    catalogue.delete_branch(BRANCH)
