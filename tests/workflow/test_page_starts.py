"""Starts by the API on Temporal: one for each key, whatever ends or is repeated, and waits for the ends of runs."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.errors import ErrorMapping
from activities.run.cancel_started_runs import CancelStartedRunsActivity
from activities.run.find_run_end import FindRunEndActivity
from activities.run.prepare_run import PrepareRunActivity
from lakehouse.arrivals.batch_store import BatchStore
from runtime.run.run_request import read_request
from runtime.schedules.deployed_schedules import make_schedule
from sluice.contracts.arrivals import ZONE_MEMO, landing_zone_id
from sluice.contracts.schedules import StartScheduledInput
from sluice.contracts.starting import PipelineText
from sluice.contracts.write import JobReport
from sluice.identifiers import schedule_id
from sluice.pipeline.schedule import Schedule
from sluice.settings import Settings
from tests.harness.asgi import Answer
from tests.harness.page import browser
from tests.harness.waiting import in_time, until
from tests.harness.workflow import FakeActivities
from workflows.run.start_pipeline import StartPipeline
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish

FILE = """\
name: {name}
write:
  source: {{path: "{{{{ scheduled_for.year }}}}.csv"}}
tables: [t.x]
"""
TEXT = "the start was ended in Temporal"


class Deployed:
    """A deployed pipeline, whose schedule does not fire, and the page of an installation of its own."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.name, self.queue = f"p-{uuid.uuid4().hex[:8]}", str(uuid.uuid4())
        self.fakes = FakeActivities()
        self.entered, self.may_go_on = asyncio.Event(), asyncio.Event()
        self.may_go_on.set()
        self.fakes.overrides["write_table"] = self._hold
        self.page = browser(client, "ana", sluice_installation=self.name, sluice_worker_wait=5)

    async def deploy(self) -> None:
        stated = Schedule.model_validate({"cron": "0 0 29 2 *", "zone": "Pacific/Kiritimati"})
        text = PipelineText(name="p.yml", text=FILE.format(name=self.name), folder=str(self.folder))
        given = StartScheduledInput(installation=self.name, name=self.name, pipeline=text, zone=stated.zone)
        await self.client.create_schedule(self._schedule, make_schedule(stated, given, self.queue))

    async def undeploy(self) -> None:
        await self.client.get_schedule_handle(self._schedule).delete()

    def bring(self) -> None:
        """Write the files that the pipeline loads now."""
        for year in range(datetime.now().year - 1, datetime.now().year + 2):
            (self.folder / f"{year}.csv").write_text("id\n1\n")

    async def start(self, key: str = "k") -> Answer:
        path = f"/api/pipelines/{self.name}/runs"
        return await in_time(self.page.send("POST", path, headers={"idempotency-key": key}))

    async def read(self, start: Answer, wait: int = 0) -> dict[str, Any]:
        answer = await in_time(self.page.get(f"/api/starts/{start.json['id']}?wait={wait}"))
        assert answer.status == 200, answer.text
        read: dict[str, Any] = answer.json
        return read

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[None]:
        settings = Settings.of(sluice_task_queue=self.queue)
        of_runs = self.fakes.activities()
        activities: list[Any] = [
            *of_runs,
            PrepareRunActivity(self.client, settings, BatchStore("file:///nowhere", {})).prepare_run,
            FindRunEndActivity(self.client).find_run_end,
            CancelStartedRunsActivity(self.client).cancel_started_runs,
        ]
        options: dict[str, Any] = {"interceptors": [ErrorMapping()]}
        control = Worker(
            self.client, task_queue=self.queue, workflows=[StartPipeline, WriteAuditPublish],
            workflow_runner=sandbox(), activities=activities,
            max_heartbeat_throttle_interval=timedelta(milliseconds=100), **options,
        )  # fmt: skip
        spark = Worker(self.client, task_queue=settings.installation.spark_queue, activities=of_runs, **options)
        async with control, spark:
            yield

    @property
    def _schedule(self) -> str:
        return schedule_id(self.name, self.name)

    async def _hold(self, _: Any, __: int) -> JobReport:
        self.entered.set()
        await self.may_go_on.wait()
        return JobReport()


@pytest.fixture
async def alone(client: Client, tmp_path: Path) -> AsyncIterator[Deployed]:
    """A deployed pipeline without a worker."""
    deployed = Deployed(client, tmp_path)
    await deployed.deploy()
    yield deployed
    await deployed.undeploy()


@pytest.fixture
async def deployed(alone: Deployed) -> AsyncIterator[Deployed]:
    alone.bring()
    async with alone.worker():
        yield alone


async def test_one_key_is_one_start_at_once_and_after_the_end(deployed: Deployed) -> None:
    deployed.may_go_on.clear()
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    first, second = await asyncio.gather(deployed.start(), deployed.start())
    assert (first.status, second.status) == (202, 202) and first.json == second.json
    assert first.json["id"] == f"sluice-{deployed.name}-start:{deployed.name}:k"
    assert first.json["workflow_id"].startswith(f"{deployed.name}-") and first.json["outcome"] is None
    request = await read_request(deployed.client, first.json["workflow_id"], first.json["run_id"])
    assert request and request.starter.startswith("ana@") and request.input.files == 1
    assert before <= datetime.fromisoformat(request.order.partition) <= datetime.now(timezone.utc)
    await in_time(deployed.entered.wait())
    waiting = asyncio.create_task(deployed.read(first, 60))
    await asyncio.sleep(1)
    assert not waiting.done()
    deployed.may_go_on.set()
    ended = await waiting
    assert ended == {**first.json, "outcome": "published"}
    again = await deployed.start()
    assert (again.status, again.json) == (202, ended) and deployed.fakes.calls.count("open_branch") == 1
    other = await deployed.start("another")
    assert other.json["run_id"] != first.json["run_id"] and (await deployed.read(other, 60))["outcome"] == "published"
    assert deployed.fakes.calls.count("open_branch") == 2


async def test_another_key_while_the_run_is_under_way_is_another_start(deployed: Deployed) -> None:
    deployed.may_go_on.clear()
    first = await deployed.start("k")
    await in_time(deployed.entered.wait())
    second = await deployed.start("k2")
    report = await deployed.read(second, 1)
    assert (second.status, report["outcome"]) == (202, None)
    deployed.may_go_on.set()
    assert [(await deployed.read(each, 60))["outcome"] for each in (first, second)] == ["published"] * 2


async def test_a_start_without_a_worker_waits_for_one(alone: Deployed) -> None:
    alone.bring()
    started = await alone.start()
    assert (started.status, started.json["run_id"]) == (202, "")
    assert started.json["reason"] == (
        f"no worker has taken it from the task queue {alone.queue!r}: start one with `make up` or `python worker.py`"
    )
    assert (await alone.start()).json == started.json == await alone.read(started, 1)
    async with alone.worker():
        ended = await alone.read(started, 60)
    assert ended["outcome"] == "published" and ended["run_id"]
    assert (await alone.start()).json == ended, "this needs no worker"


async def test_a_start_that_is_refused_stays_refused_under_its_key(alone: Deployed) -> None:
    async with alone.worker():
        refused = await alone.start()
        assert refused.status == 409 and "Send another Idempotency-Key" in refused.json["error"]
        assert ".csv" in refused.json["error"], "the reason names the files that are missing"
        alone.bring()
        again = await alone.start()
        assert (again.status, again.json) == (409, refused.json)
        assert (await alone.start("k2")).status == 202
    start_id = f"sluice-{alone.name}-start:{alone.name}:k"
    assert (await alone.page.get(f"/api/starts/{start_id}")).json["outcome"] == "refused"


async def test_an_input_that_main_contains_is_a_run_that_is_skipped(deployed: Deployed) -> None:
    async def loaded(_: Any, __: int) -> Any:
        raise ApplicationError("main contains all files", type="AlreadyPublished", non_retryable=True)

    deployed.fakes.overrides["select_input"] = loaded
    started = await deployed.start()
    report = await deployed.read(started, 60)
    assert (started.status, report["outcome"], report["reason"]) == (202, "skipped", "main contains all files")
    assert (await deployed.start()).status == 202


async def test_a_key_finds_its_start_after_the_pipeline_is_no_longer_deployed(client: Client, tmp_path: Path) -> None:
    deployed = Deployed(client, tmp_path)
    assert (await deployed.start()).status == 404
    await deployed.deploy()
    deployed.bring()
    async with deployed.worker():
        started = await deployed.start()
        await deployed.undeploy()
        assert (await deployed.start("another")).status == 404
        assert (await deployed.read(started, 60))["outcome"] == "published"
    assert (await deployed.start()).status == 202


async def test_files_that_arrive_start_the_pipeline_of_a_landing_zone(client: Client, tmp_path: Path) -> None:
    deployed = Deployed(client, tmp_path)
    memo = {ZONE_MEMO: {"installation": deployed.name, "name": deployed.name}}
    zone = await client.start_workflow(
        "LandingZone", id=landing_zone_id(deployed.name, deployed.name), task_queue=deployed.queue, memo=memo
    )
    try:

        async def is_listed() -> bool:
            return (await deployed.start()).status == 409

        await until(is_listed)
        why = (await deployed.start()).json["error"]
        assert why.startswith(f"files that arrive start the pipeline {deployed.name!r}, so a request cannot")
    finally:
        await zone.terminate()


@pytest.mark.parametrize("how", ["cancel", "terminate"])
async def test_a_start_that_a_person_ends_reports_its_run(deployed: Deployed, how: str) -> None:
    deployed.may_go_on.clear()
    started = await deployed.start()
    await in_time(deployed.entered.wait())
    start = deployed.client.get_workflow_handle(started.json["id"])
    await (start.cancel() if how == "cancel" else start.terminate())
    if how == "terminate":
        report = await deployed.read(started, 60)
        assert report["outcome"] is None and report["reason"].startswith(f"{TEXT}, and its run goes on")
        assert report["run_id"] == started.json["run_id"]
    deployed.may_go_on.set()
    await in_time(deployed.page.get(f"/api/runs/{started.json['run_id']}?wait=60"))
    report = await deployed.read(started, 60)
    assert report["outcome"] == ("cancelled" if how == "cancel" else "published")
    assert (await deployed.start()).json == report


async def test_a_start_that_ended_before_its_run(alone: Deployed) -> None:
    started = await alone.start()
    await alone.client.get_workflow_handle(started.json["id"]).terminate()
    report = await alone.read(started, 60)
    assert (report["outcome"], report["reason"]) == ("failed", f"{TEXT} before it began a run")


async def test_a_wait_for_a_run_ends_with_the_run_or_with_the_time(deployed: Deployed) -> None:
    deployed.may_go_on.clear()
    started = await deployed.start()
    await in_time(deployed.entered.wait())
    path = f"/api/runs/{started.json['run_id']}"
    begun = time.monotonic()
    over = await in_time(deployed.page.get(f"{path}?wait=2"))
    assert (over.status, over.json["outcome"]) == (200, None) and over.json["stage"] != "ended"
    assert time.monotonic() - begun >= 2
    waiting = asyncio.create_task(deployed.page.get(f"{path}?wait=60"))
    leaves = asyncio.Event()
    leaving = asyncio.create_task(deployed.page.send("GET", f"{path}?wait=60", leaves=leaves))
    await asyncio.sleep(1)
    assert not waiting.done() and not leaving.done()
    leaves.set()
    await in_time(leaving)
    deployed.may_go_on.set()
    ended = await in_time(waiting)
    assert (ended.json["stage"], ended.json["outcome"]) == ("ended", "published")
    latest = await in_time(deployed.page.get(f"/api/runs/{deployed.name}?wait=60"))
    assert latest.json == ended.json
