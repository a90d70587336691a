"""Workers whose release cannot continue the landing zones and backfills of a test: their histories do not replay."""

from typing import Any

from temporalio import workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from runtime.stuck_workflow import StuckWorkflow, find_stuck
from tests.harness.backfill_workflow import FakeRun, FakeStart
from tests.harness.waiting import until

DOES_NOT_REPLAY = "Nondeterminism"
"""Part of the reason that this worker cannot continue a workflow."""


@workflow.defn(name="Backfill", sandboxed=False)
class OtherBackfill:
    """A backfill whose first step is another one."""

    @workflow.run
    async def run(self, _: dict[str, Any]) -> None:
        await workflow.sleep(1)


@workflow.defn(name="LandingZone", sandboxed=False)
class OtherLandingZone:
    """A landing zone whose first step is another one."""

    @workflow.run
    async def run(self, _: dict[str, Any]) -> None:
        await workflow.sleep(1)


def other_release(client: Client, queue: str, *more: Any, **options: Any) -> Worker:
    """Return a worker that cannot continue landing zones and backfills, and whose fake runs go on."""
    workflows = [OtherBackfill, OtherLandingZone, FakeStart, FakeRun, *more]
    return Worker(client, task_queue=queue, workflows=workflows, **options)


async def until_stuck(handle: WorkflowHandle[Any, Any], *, cancelled: bool = False) -> StuckWorkflow:
    """Wait until the worker has failed to continue a workflow; with `cancelled`, after a request to cancel it."""
    answers: list[StuckWorkflow] = []

    async def is_stuck() -> bool:
        stuck = await find_stuck(handle, await handle.describe())
        if stuck and (stuck.is_cancel_requested or not cancelled):
            answers.append(stuck)
        return bool(answers)

    await until(is_stuck, lambda: f"{handle.id} is not stuck")
    return answers[0]
