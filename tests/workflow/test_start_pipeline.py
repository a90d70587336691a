"""Runs without a person at the start: their own identity, the wait for their end, and the report to the requester."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.errors import ErrorMapping
from activities.run.cancel_started_runs import CancelStartedRunsActivity
from activities.run.find_run_end import FindRunEndActivity
from activities.run.prepare_run import PrepareRunActivity
from lakehouse.arrivals.batch_store import BatchStore
from lakehouse.source_files import find_files
from sluice.approval.required import RequiredApproval
from sluice.contracts.arrivals import ArrivedFile
from sluice.contracts.publish import RequireApprovalInput
from sluice.contracts.references import BranchRef
from sluice.contracts.starting import RUN_ENDED_SIGNAL, EndedRun, PipelineText, PreparedRun, StartPipelineInput
from sluice.contracts.write import OpenBranchInput
from sluice.pipeline.source import Source
from sluice.settings import Settings
from tests.harness.waiting import in_time, until
from tests.harness.workflow import FakeActivities, fails_for_good, opened
from workflows.run.start_pipeline import StartPipeline
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish

FILE = """\
name: {name}
write:
  source: {{path: "{{{{ partition }}}}.csv"}}
tables: [t.x]
"""


@workflow.defn(name="Requester", sandboxed=False)
class Requester:
    """A workflow that requested runs."""

    def __init__(self) -> None:
        self._ended: list[EndedRun] = []

    @workflow.run
    async def run(self, expected: int) -> list[EndedRun]:
        await workflow.wait_condition(lambda: len(self._ended) == expected)
        return self._ended

    @workflow.signal(name=RUN_ENDED_SIGNAL)
    def run_ended(self, ended: EndedRun) -> None:
        self._ended.append(ended)


class Starts:
    """A harness that starts runs of one pipeline file."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.name, self.queue = f"p-{uuid.uuid4().hex[:8]}", str(uuid.uuid4())
        self.fakes = FakeActivities()
        self.batches = BatchStore((folder / "lake").as_uri(), {})
        self.preparing, self.may_prepare = asyncio.Event(), asyncio.Event()
        for partition in ("2018-01", "held"):
            (folder / f"{partition}.csv").write_text("id\n1\n")

    async def start(
        self, partition: str = "2018-01", workflow_id: str = "", **more: Any
    ) -> WorkflowHandle[StartPipeline, EndedRun]:
        text = PipelineText(name="p.yml", text=FILE.format(name=self.name), folder=str(self.folder))
        values = {"partition": partition}
        given = StartPipelineInput(pipeline=text, starter="backfill c", values=values, key=partition, **more)
        return await self.client.start_workflow(
            StartPipeline.run, given, id=workflow_id or f"start-{uuid.uuid4()}", task_queue=self.queue
        )

    def held(self, real: PrepareRunActivity) -> Any:
        """Return the real activity, changed to wait for `may_prepare` before it completes for the partition `held`."""

        @activity.defn(name="prepare_run")
        async def prepare_run(input: StartPipelineInput) -> PreparedRun:
            prepared = await real.prepare_run(input)
            if input.key == "held":
                self.preparing.set()
                with suppress(asyncio.CancelledError):
                    await self.may_prepare.wait()
            return prepared

        return prepare_run

    async def ends_of_runs(self) -> list[str]:
        """Return the final status of each run of the pipeline in Temporal."""
        query = f'WorkflowId STARTS_WITH "{self.name}-"'
        return [each.status.name async for each in self.client.list_workflows(query) if each.status]


@pytest.fixture
async def starts(client: Client, tmp_path: Path) -> AsyncIterator[Starts]:
    starts = Starts(client, tmp_path)
    settings = Settings.of(sluice_task_queue=starts.queue, sluice_open_timeout=1)
    of_runs = starts.fakes.activities()
    control = Worker(
        client,
        task_queue=starts.queue,
        workflows=[StartPipeline, WriteAuditPublish, Requester],
        workflow_runner=sandbox(),
        interceptors=[ErrorMapping()],
        activities=[
            *of_runs,
            starts.held(PrepareRunActivity(client, settings, starts.batches)),
            FindRunEndActivity(client).find_run_end,
            CancelStartedRunsActivity(client).cancel_started_runs,
        ],
        max_heartbeat_throttle_interval=timedelta(milliseconds=100),
    )
    async with (
        control,
        Worker(client, task_queue=settings.installation.spark_queue, interceptors=[ErrorMapping()], activities=of_runs),
    ):
        yield starts


async def test_the_run_has_its_own_identity_and_its_end_is_reported(starts: Starts) -> None:
    requester = await starts.client.start_workflow(
        Requester.run, 1, id=f"requester-{starts.name}", task_queue=starts.queue
    )
    ended = await (await starts.start(report_to=requester.id)).result()
    assert (ended.key, ended.outcome, ended.is_done) == ("2018-01", "published", True)
    assert ended.workflow_id.startswith(f"{starts.name}-") and ended.run_id
    assert await requester.result() == [ended]
    again = await (await starts.start()).result()
    assert again.workflow_id == ended.workflow_id and again.run_id != ended.run_id


async def test_two_starts_of_one_input_are_two_runs_one_after_the_other(starts: Starts) -> None:
    entered, may_go_on = asyncio.Event(), asyncio.Event()
    starts.fakes.overrides["can_notify"] = _held(entered, may_go_on)
    first = await starts.start()
    await in_time(entered.wait())
    second = await starts.start()
    await asyncio.sleep(1)
    assert starts.fakes.calls.count("open_branch") == 1
    may_go_on.set()
    ended = [await first.result(), await second.result()]
    assert [each.outcome for each in ended] == ["published", "published"]
    assert ended[0].run_id != ended[1].run_id and ended[0].workflow_id == ended[1].workflow_id
    assert starts.fakes.calls.count("open_branch") == 2


async def test_a_start_that_was_ended_by_force_does_not_run_again_what_it_began(starts: Starts) -> None:
    """With `again`, main cannot show that the run loaded its files: they would be on main twice."""
    asked: dict[str, Any] = {"workflow_id": f"start-{starts.name}", "since": _now(), "again": True}
    entered, may_go_on = asyncio.Event(), asyncio.Event()
    starts.fakes.overrides["can_notify"] = _held(entered, may_go_on)
    first = await starts.start(**asked)
    await in_time(entered.wait())
    await first.terminate("killed")
    second = await starts.start(**asked)
    await asyncio.sleep(1)
    may_go_on.set()
    ended = await second.result()
    assert (ended.outcome, ended.started_by, starts.fakes.calls.count("open_branch")) == ("published", second.id, 1)
    late = await (await starts.start(**asked)).result()
    assert (late.run_id, starts.fakes.calls.count("open_branch")) == (ended.run_id, 1), "it ended before this start"


async def test_a_run_that_is_asked_for_later_or_by_another_start_is_a_run_of_its_own(starts: Starts) -> None:
    before, workflow_id = _now(), f"start-{starts.name}"
    first = await (await starts.start(workflow_id=workflow_id, since=before, again=True)).result()
    retried = await (await starts.start(workflow_id=workflow_id, since=_now(), again=True)).result()
    by_another = await (await starts.start(since=before, again=True)).result()
    assert len({first.run_id, retried.run_id, by_another.run_id}) == 3
    assert {each.outcome for each in (first, retried, by_another)} == {"published"}


def _now() -> str:
    return datetime.now(timezone.utc).isoformat()


def _held(entered: asyncio.Event, may_go_on: asyncio.Event) -> Any:
    async def held(_: Any, __: int) -> bool:
        entered.set()
        await may_go_on.wait()
        return False

    return held


async def test_a_run_that_nobody_started_by_hand_waits_for_the_catalog(starts: Starts) -> None:
    async def away(input: OpenBranchInput, number: int) -> BranchRef:
        if number <= 6:
            raise ApplicationError("Nessie does not answer", type="ServiceUnavailable")
        return opened(input.run_ref.branch)

    starts.fakes.overrides["open_branch"] = away
    ended = await (await starts.start()).result()
    assert ended.outcome == "published", "a person's run gives up after SLUICE_OPEN_TIMEOUT, here a second"


async def test_what_is_not_valid_is_refused_and_starts_no_run(starts: Starts) -> None:
    ended = await (await starts.start("2018-02")).result()
    assert (ended.outcome, ended.key) == ("refused", "2018-02")
    assert "there are no files at" in ended.reason and "2018-02.csv" in ended.reason
    assert starts.fakes.calls == [] and ended.cause is None


async def test_a_file_that_is_half_of_what_its_batch_lists_has_changed(starts: Starts) -> None:
    """The error of its format is about content that the producer has not written yet."""
    file = starts.folder / "a.parquet"
    file.write_text("PAR1 odd PAR1")
    (listed,) = find_files(Source(path=str(file)))
    arrived = ArrivedFile(path=listed.path, size=listed.size, identity=listed.identity)
    batch = starts.batches.write("p", [arrived])
    file.write_text("PAR1 half of it")
    ended = await (await starts.start(files=[str(file)], expected=batch.location)).result()
    assert (ended.outcome, ended.cause, "not a complete parquet file" in ended.reason) == (
        "refused",
        "input_changed",
        True,
    )
    ended = await (await starts.start(files=[str(file)])).result()
    assert (ended.outcome, ended.cause) == ("refused", None), "nothing says that it was another one"


async def test_a_file_that_was_overwritten_after_it_settled_is_not_loaded(starts: Starts) -> None:
    """Its present content may be incomplete, and has to settle."""
    file = starts.folder / "a.csv"
    file.write_text("id\n1\n")
    (listed,) = find_files(Source(path=str(file)))
    arrived = ArrivedFile(path=listed.path, size=listed.size, identity=listed.identity)
    batch = starts.batches.write("p", [arrived])
    file.write_text("id\n2\n")
    ended = await (await starts.start(files=[str(file)], expected=batch.location)).result()
    assert (ended.outcome, ended.cause, starts.fakes.calls) == ("refused", "input_changed", [])
    file.write_text("id\n1\n")
    ended = await (await starts.start(files=[str(file)], expected=batch.location)).result()
    assert ended.outcome == "published"


async def test_a_run_that_fails_is_an_end_and_no_error(starts: Starts) -> None:
    starts.fakes.overrides["open_branch"] = fails_for_good
    ended = await (await starts.start()).result()
    assert (ended.outcome, ended.reason, ended.is_done) == ("failed", "it is wrong", False)


async def test_four_eyes_exclude_the_person_who_asked_for_the_run(starts: Starts) -> None:
    """The starter is the backfill, which is not the name of a person."""
    excluded: list[str] = []

    async def require(input: RequireApprovalInput, _: int) -> RequiredApproval:
        excluded.append(input.terms.starter)
        return RequiredApproval()

    starts.fakes.overrides["require_approval"] = require
    await (await starts.start(asked_by="ada")).result()
    await (await starts.start()).result()
    assert excluded == ["ada", "backfill c"]


def _waits(entered: asyncio.Event) -> Any:
    """Return a fake activity that runs until it is cancelled."""

    async def waits(_: Any, __: int) -> Any:
        entered.set()
        while True:
            activity.heartbeat()
            await asyncio.sleep(0.1)

    return waits


async def test_a_cancel_reaches_the_run(starts: Starts) -> None:
    entered = asyncio.Event()
    starts.fakes.overrides["select_input"] = _waits(entered)
    handle = await starts.start()
    await in_time(entered.wait())
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert await starts.ends_of_runs() == ["CANCELED"]
    assert "discard_branch" in starts.fakes.calls


async def test_a_cancel_while_the_input_is_looked_at_starts_no_run(starts: Starts) -> None:
    """The activity notices a cancel by a heartbeat. If it completes before, the cancel must not be lost."""
    handle = await starts.start("held")
    await in_time(starts.preparing.wait())
    await handle.cancel()
    await asyncio.sleep(1)
    starts.may_prepare.set()
    with pytest.raises(WorkflowFailureError):
        await in_time(handle.result())
    assert await starts.ends_of_runs() == [] and starts.fakes.calls == []


async def test_a_cancel_reaches_the_run_that_an_earlier_start_began(starts: Starts) -> None:
    """It would publish after the backfill that requested it was cancelled."""
    asked: dict[str, Any] = {"workflow_id": f"start-{starts.name}", "since": _now(), "again": True}
    entered = asyncio.Event()
    starts.fakes.overrides["select_input"] = _waits(entered)
    first = await starts.start(**asked)
    await in_time(entered.wait())
    await first.terminate("killed")
    second = await starts.start(**asked)

    async def waits_for_the_run() -> bool:
        events = [event async for event in second.fetch_history_events()]
        return any(event.HasField("start_child_workflow_execution_failed_event_attributes") for event in events)

    await until(waits_for_the_run)
    await second.cancel()
    with pytest.raises(WorkflowFailureError):
        await in_time(second.result())
    assert await starts.ends_of_runs() == ["CANCELED"]
