"""The backfill workflow on a real Temporal server, with fake runs that end as the test decides."""

import asyncio
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker
from temporalio.workflow import ParentClosePolicy

from activities.errors import ErrorMapping
from activities.run.cancel_started_runs import CancelStartedRunsActivity
from activities.run.find_ended_workflows import FindEndedWorkflowsActivity
from activities.run.find_run_end import FindRunEndActivity
from activities.run.running_workflows import RunningWorkflows
from sluice.contracts.backfill import (
    BackfillChange,
    BackfillInput,
    BackfillState,
    BackfillStatus,
    JointPublish,
)
from sluice.contracts.run import RunResult
from sluice.contracts.starting import RUN_ENDED_SIGNAL, EndedRun, PipelineText, StartPipelineInput
from sluice.identifiers import backfill_id
from sluice.settings import Settings
from tests.harness.waiting import in_time, until
from tests.harness.zone_workflow import is_known
from workflows.backfills.backfill import Backfill
from workflows.sandbox import sandbox

AT_ONCE, HELD, SLOW_TO_CANCEL, WITH_RUN = "at once", "held", "slow to cancel", "with a run"
REFUSED = "refused: the check has an unheard key"
"""Text of a pipeline that the worker of the fake starts refuses."""
SETTINGS = Settings.of(sluice_installation="tests")
OPEN: dict[str, int] = {}
"""Number of open fake runs, by task queue."""
MOST: dict[str, int] = {}
"""Maximum number of fake runs that were open at once, by task queue."""
STARTS: dict[str, list[str]] = {}
"""Keys of the starts, by task queue."""
SINCE: dict[str, list[str]] = {}
"""Time at which each start's run was requested, by task queue."""


@workflow.defn(name="StartPipeline", sandboxed=False)
class FakeStart:
    """A fake start whose run ends at once, or when it gets the signal `end`."""

    def __init__(self) -> None:
        self._end: EndedRun | None = None

    @workflow.run
    async def run(self, input: StartPipelineInput) -> EndedRun:
        queue = workflow.info().task_queue
        self._count(queue, input.key, 1, input.since)
        if input.pipeline.text == REFUSED:
            raise ApplicationError(REFUSED, type="RefusedRequest", non_retryable=True)
        try:
            if input.pipeline.text == AT_ONCE:
                self._end = EndedRun(outcome="published", rows_added=1)
            if input.pipeline.text == WITH_RUN:
                await workflow.start_child_workflow(
                    "WriteAuditPublish",
                    id=f"{workflow.info().workflow_id}-run",
                    parent_close_policy=ParentClosePolicy.ABANDON,
                )
            await workflow.wait_condition(lambda: self._end is not None)
        except asyncio.CancelledError:
            if input.pipeline.text == SLOW_TO_CANCEL:
                await workflow.wait_condition(lambda: self._end is not None)
            self._end = EndedRun(outcome="cancelled", cause="cancelled")
        assert self._end
        self._count(queue, "", -1)
        ended = self._end.model_copy(update={"key": input.key, "started_by": workflow.info().workflow_id})
        if input.report_to:
            await workflow.get_external_workflow_handle(input.report_to).signal(RUN_ENDED_SIGNAL, ended)
        return ended

    @workflow.signal
    def end(self, ended: EndedRun) -> None:
        self._end = ended

    def _count(self, queue: str, key: str, change: int, since: str = "") -> None:
        if workflow.unsafe.is_replaying():
            return
        OPEN[queue] = OPEN.get(queue, 0) + change
        MOST[queue] = max(MOST.get(queue, 0), OPEN[queue])
        if key:
            STARTS.setdefault(queue, []).append(key)
            SINCE.setdefault(queue, []).append(since)


@workflow.defn(name="WriteAuditPublish", sandboxed=False)
class FakeRun:
    """A fake run that goes on until it is cancelled or gets the signal `publish`."""

    def __init__(self) -> None:
        self._is_published = False

    @workflow.run
    async def run(self) -> RunResult:
        await workflow.wait_condition(lambda: self._is_published)
        info = workflow.info()
        return RunResult(run_id=info.run_id, workflow_id=info.workflow_id, pipeline="p", outcome="published")

    @workflow.signal
    def publish(self) -> None:
        self._is_published = True


class Backfills:
    """Backfills of one pipeline, whose fake runs the test ends."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.queue, self.name = str(uuid.uuid4()), f"p{uuid.uuid4().hex[:8]}"
        self.id = backfill_id(SETTINGS.installation.sluice_installation, self.name)

    def worker(self, *further: Callable[..., Any]) -> Worker:
        """Return a worker with fake runs and with further activities."""
        running = RunningWorkflows(self.client, asyncio.get_running_loop())
        return Worker(
            self.client,
            task_queue=self.queue,
            workflows=[Backfill, FakeStart, FakeRun],
            interceptors=[ErrorMapping()],
            activities=[
                *further,
                FindRunEndActivity(self.client).find_run_end,
                CancelStartedRunsActivity(self.client).cancel_started_runs,
                FindEndedWorkflowsActivity(running).find_ended_workflows,
            ],
            activity_executor=ThreadPoolExecutor(4),
            workflow_runner=sandbox(),
        )

    async def start(
        self,
        count: int,
        text: str = HELD,
        starts_per_run: int = 200,
        ask_again: float = 600,
        together: JointPublish | None = None,
        again: bool = False,
        **more: Any,
    ) -> WorkflowHandle[Backfill, BackfillStatus]:
        state = BackfillState(partitions=[f"p{number}" for number in range(count)], **more)
        limits = {"starts_per_run": starts_per_run, "ask_again": ask_again}
        given = BackfillInput(
            pipeline=pipeline(text),
            name="p",
            starter="tester",
            again=again,
            progress=state,
            together=together,
            **limits,
        )
        return await self.client.start_workflow(Backfill.run, given, id=self.id, task_queue=self.queue)

    async def status(self) -> BackfillStatus:
        return await self.handle().query(Backfill.status)

    def handle(self) -> WorkflowHandle[Backfill, BackfillStatus]:
        return self.client.get_workflow_handle_for(Backfill.run, self.id)

    async def running(self) -> list[str]:
        return list((await self.status()).children)

    async def wait(self, reached: Callable[[BackfillStatus], bool]) -> BackfillStatus:
        status = await self.status()

        async def is_reached() -> bool:
            nonlocal status
            status = await self.status()
            return reached(status)

        await until(is_reached, lambda: f"not reached: {status}")
        return status

    async def end(self, partition: str, outcome: Any = "published", cause: Any = None) -> None:
        child = await self.child(partition)
        await child.signal("end", EndedRun(outcome=outcome, cause=cause))
        await self.wait(lambda status: partition not in status.children)

    async def child(self, partition: str) -> WorkflowHandle[Any, Any]:
        """Return the child workflow of a partition once it exists.

        The backfill counts a partition as running before its child has started.
        """
        handle = self.client.get_workflow_handle((await self.status()).children[partition])
        await until_it_runs(handle)
        return handle

    async def change(self, action: Any, **more: Any) -> BackfillStatus:
        return await self.handle().execute_update(Backfill.change, BackfillChange(action=action, by="ada", **more))


async def until_cancel_requested(child: WorkflowHandle[Any, Any]) -> None:
    """Wait until a cancelled backfill has requested the cancellation of its child."""

    async def is_requested() -> bool:
        events = [event.WhichOneof("attributes") async for event in child.fetch_history_events()]
        return "workflow_execution_cancel_requested_event_attributes" in events

    await until(is_requested, lambda: "it was not asked to end")


async def cancel_and_terminate(handle: WorkflowHandle[Any, Any], child: WorkflowHandle[Any, Any]) -> None:
    """Cancel a backfill, terminate its child before it reacts, and wait for the end of the backfill."""
    await child.query("__stack_trace")
    await handle.cancel()
    await until_cancel_requested(child)
    await child.terminate("killed")
    with pytest.raises(WorkflowFailureError):
        await in_time(handle.result())


async def until_it_runs(handle: WorkflowHandle[Any, Any]) -> None:
    async def runs() -> bool:
        return await is_known(handle) and (await handle.describe()).status == WorkflowExecutionStatus.RUNNING

    await until(runs, lambda: f"{handle.id} was not started")


def pipeline(text: str) -> PipelineText:
    return PipelineText(name="p.yml", text=text, folder="/")
