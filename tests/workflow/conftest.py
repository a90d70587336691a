"""Temporal's time-skipping server, and a worker whose activities are fakes."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from engine.spark.java import find_java
from tests.harness.workflow import Scene, World
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish


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
