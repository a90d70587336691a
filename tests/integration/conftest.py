"""One warm Spark session, for the tests of the programs that Spark runs; a world of fakes, for the order of things."""

import os
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from engine.job import SparkJob
from engine.spark.configuration import properties
from engine.spark.java import find_java
from lakehouse.nessie.operations import no_change_operation
from lakehouse.open_catalog import open_catalog
from sluice.settings import read_settings
from tests.harness.workflow import Scene, World
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish

BRANCH = "wap/warm-tests"


@pytest.fixture(scope="package")
def spark(stack: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    settings = read_settings(stack)
    catalog = open_catalog(settings)
    catalog.create_branch(BRANCH, catalog.initialize_main())
    changes = [no_change_operation(), *catalog.put_namespaces(BRANCH, ["i.x"])]
    catalog.commit(BRANCH, catalog.head(BRANCH), "Begin the tests", changes)
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
    catalog.delete_branch(BRANCH)


@pytest.fixture(scope="session")
async def skipping(home: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WorkflowEnvironment]:
    """Temporal's time-skipping server, from the jars of the set-up."""
    wrapper = tmp_path_factory.mktemp("server") / "test-server"
    java, jars = find_java() / "bin" / "java", home / "jars" / "timeskip" / "*"
    wrapper.write_text(f'#!/bin/sh\nexec "{java}" -cp "{jars}" io.temporal.testserver.TestServer "$@"\n')
    wrapper.chmod(0o755)
    async with await WorkflowEnvironment.start_time_skipping(
        data_converter=pydantic_data_converter, test_server_existing_path=str(wrapper)
    ) as environment:
        yield environment


@pytest.fixture
async def scene(skipping: WorkflowEnvironment) -> AsyncIterator[Scene]:
    """A run to be, and the worker that hosts it."""
    scene = Scene(skipping, World())
    async with Worker(
        skipping.client,
        task_queue=scene.queue,
        workflows=[WriteAuditPublish],
        workflow_runner=sandbox(),
        activities=scene.world.activities(),
        max_heartbeat_throttle_interval=timedelta(milliseconds=100),
    ):
        yield scene
