"""Jobs wait for Spark in Temporal's queue: restarts of workers lose nothing there, and the queue is fair to pipelines.

The server is real, with fakes in place of the activities.
"""

import asyncio
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, cast

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from engine.spark.engine import SubmitEngine
from lakehouse.open_catalog import open_catalog
from runtime.run.job_progress import read_progress
from sluice.contracts.progress import ON_SPARK
from sluice.contracts.run import RunResult
from sluice.contracts.run_request import Policy, RunInput, RunRequest
from sluice.contracts.write import JobReport
from sluice.pipeline.model import Pipeline
from sluice.settings import Settings
from tests.harness.workflow import FakeActivities
from worker import make_worker, make_workers
from workflows.write_audit_publish import WriteAuditPublish


class Queue:
    """A task queue with a worker for control, and with workers for Spark, two slots each, that come and go."""

    def __init__(self, client: Client, write: Callable[[Any, int], Any]) -> None:
        self.client, self.name = client, f"waiting-{uuid.uuid4()}"
        self._settings = Settings.of(sluice_task_queue=self.name, spark_slots=2, sluice_shutdown_timeout=0)
        fakes = FakeActivities()
        fakes.overrides["write_table"] = write
        both = {activity._Definition.must_from_callable(each).name: each for each in fakes.activities()}
        self._spark = [each for name, each in both.items() if name in ON_SPARK]
        self._control = [each for name, each in both.items() if name not in ON_SPARK]

    def control(self) -> Worker:
        """Return the worker for control."""
        return make_worker(self.client, self._settings, self.name, self._control, [WriteAuditPublish])

    def spark(self) -> Worker:
        """Return a worker for Spark."""
        settings = self._settings
        return make_worker(
            self.client, settings, settings.installation.spark_queue, self._spark, [], settings.spark.slots
        )

    async def start(self, name: str, number: int) -> Any:
        """Start a run of a pipeline whose job may fail only once."""
        stated = {"name": name, "write": {"job": "job.py", "attempts": 1}, "tables": {"t.x": {}}}
        request = RunRequest(
            pipeline=Pipeline.model_validate(stated),
            input=RunInput(digest=str(number)),
            starter="tester",
            policy=Policy(heartbeat_timeout=5),
        )
        workflow_id = f"{name}-{number}-{self.name}"
        return await self.client.start_workflow(WriteAuditPublish.run, request, id=workflow_id, task_queue=self.name)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_ten_rolling_restarts_under_a_queue_of_a_hundred_runs_cost_no_run(client: Client) -> None:
    at_once: list[int] = []
    running = 0

    async def write(_: Any, __: int) -> JobReport:
        nonlocal running
        running += 1
        at_once.append(running)
        try:
            for _ in range(5):
                activity.heartbeat()
                await asyncio.sleep(0.1)
        finally:
            running -= 1
        return JobReport()

    queue = Queue(client, write)
    async with queue.control():
        runs = [await queue.start("many", number) for number in range(100)]
        for _ in range(10):
            async with queue.spark():
                await asyncio.sleep(2)
        async with queue.spark():
            results: list[RunResult] = await asyncio.gather(*(run.result() for run in runs))
    assert {result.outcome for result in results} == {"published"}
    lost = sum(result.lost_attempts for result in results)
    assert lost <= 2 * 10, "only what runs in a slot is lost with its worker"
    assert all(result.attempts == result.lost_attempts + 1 for result in results)
    assert max(at_once) == 2


async def test_a_pipeline_of_one_run_does_not_wait_behind_one_of_many(client: Client) -> None:
    order: list[str] = []

    async def write(input: Any, __: int) -> JobReport:
        order.append(input.run_ref.pipeline)
        await asyncio.sleep(0.05)
        return JobReport()

    queue = Queue(client, write)
    async with queue.control():
        runs = [await queue.start("many", number) for number in range(30)]
        while not all([(await run.query(WriteAuditPublish.status)).stage == "writing" for run in runs]):
            await asyncio.sleep(0.1)
        runs.append(await queue.start("one", 0))
        while (await runs[-1].query(WriteAuditPublish.status)).stage != "writing":
            await asyncio.sleep(0.1)
        assert await read_progress(await runs[-1].describe()) == "waiting for a free slot on a Spark worker"
        async with queue.spark():
            await asyncio.gather(*(run.result() for run in runs))
    assert order.index("one") < 5, "the local server has one partition, in which turns are exact"


async def test_what_each_worker_takes(client: Client) -> None:
    """A process for both roles runs Spark activities only from Spark's queue, which has its slots."""
    settings = Settings.of(nessie_uri="http://127.0.0.1:1/api/v2", spark_slots=3, sluice_task_queue="q")
    taken = {}
    async with AsyncExitStack():
        for worker in make_workers(client, settings, SubmitEngine(settings.spark_jobs), open_catalog(settings)):
            config = worker.config()
            names = {activity._Definition.must_from_callable(each).name for each in config["activities"]}
            taken[config["task_queue"]] = (names & ON_SPARK, config["max_concurrent_activities"])
            polls = config["max_concurrent_activity_task_polls"]
            assert polls is not None and polls <= cast(int, config["max_concurrent_activities"])
            threads = cast(Any, config["activity_executor"])._max_workers
            local = config["max_concurrent_local_activities"]
            assert threads >= cast(int, config["max_concurrent_activities"]) + cast(int, local)
            assert config["max_heartbeat_throttle_interval"] == timedelta(seconds=1)
    assert taken == {"q": (set(), 50), "q-spark": (ON_SPARK, 3)}
