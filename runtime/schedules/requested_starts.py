"""Start a deployed pipeline now for a program, once for each key, and report the start.

The key is a part of the workflow id, and Temporal starts an id once. A repeated request finds the first start, also
after its end, until Temporal deletes ended workflows.
"""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from runtime.arrivals.landing_zones import list_zones
from runtime.missing_worker import START_A_WORKER
from runtime.run.find_run import describe_run, describe_workflow, read_result
from runtime.schedules.deployed_schedules import deployed_schedules, find_deployed
from runtime.short_workflow import STARTED
from runtime.stuck_workflow import why_stuck
from sluice.contracts.schedules import StartScheduledInput
from sluice.contracts.starting import EndedRun, ReportedStart, StartPipelineInput
from sluice.errors import InvalidPipeline, NotDeployed, ServiceUnavailable
from sluice.identifiers import pipeline_name, start_id, start_key, suggestion
from sluice.pipeline.placeholders import time_values
from sluice.setting_groups import InstallationSettings
from workflows.run.start_pipeline import StartPipeline

_RUN_STARTED = EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED
_ID = re.compile(r"[A-Za-z0-9_.:+-]{1,500}")


@dataclass(frozen=True)
class StartLookup:
    """A start with its description by Temporal."""

    handle: WorkflowHandle[StartPipeline, EndedRun]
    description: WorkflowExecutionDescription

    @property
    def ended(self) -> bool:
        """True if the start has ended, in any way."""
        return self.description.status != WorkflowExecutionStatus.RUNNING


async def request_start(
    client: Client, settings: InstallationSettings, pipeline: str, key: str, starter: str
) -> StartLookup:
    """Start a deployed pipeline now, or find the start that an earlier request with this key made.

    Args:
        starter: the person whose program starts it.

    Raises:
        NotDeployed: the pipeline is not deployed.
        InvalidPipeline: the key is not valid, or files that arrive start the pipeline.
    """
    workflow_id = start_id(settings.sluice_installation, _name(pipeline), start_key(key))
    if earlier := await find_start(client, workflow_id):
        return earlier
    schedule, task_queue = await _deployed(client, settings, pipeline)
    with suppress(WorkflowAlreadyStartedError):  # by another request with this key
        await client.start_workflow(
            StartPipeline.run,
            _input(schedule, key, starter),
            id=workflow_id,
            task_queue=task_queue,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            static_summary=f"{pipeline} for {starter}",
        )
    started = await find_start(client, workflow_id)
    if started is None:
        raise ServiceUnavailable(f"Temporal does not have the start {workflow_id}: repeat the request")
    return started


async def find_start(client: Client, workflow_id: str) -> StartLookup | None:
    """Return a start by its id; None if Temporal has no such start."""
    if not _ID.fullmatch(workflow_id):
        return None
    handle = client.get_workflow_handle_for(StartPipeline.run, workflow_id)
    description = await describe_workflow(handle)
    if description is None or description.workflow_type != "StartPipeline":
        return None
    return StartLookup(handle, description)


async def wait_for_run(start: StartLookup, seconds: float) -> None:
    """Wait until the run of a start is known, or the start has ended, at most for a time."""
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(_find_run(start, wait=True), seconds)


async def report_start(client: Client, start: StartLookup) -> ReportedStart:
    """Return a start as programs read it. This needs no worker."""
    report = ReportedStart(id=start.handle.id)
    if start.description.status == WorkflowExecutionStatus.COMPLETED:
        ended = await start.handle.result()
        return report.model_copy(update=ended.model_dump(include={"workflow_id", "run_id", "outcome", "reason"}))
    workflow_id, run_id = await _find_run(start)
    report = report.model_copy(update={"workflow_id": workflow_id, "run_id": run_id})
    if start.ended:
        return await _without_result(client, start, report)
    return report if run_id else report.model_copy(update={"reason": await _why_no_run(start)})


def _name(pipeline: str) -> str:
    """Return a pipeline's name.

    Raises:
        NotDeployed: no pipeline can have it.
    """
    try:
        return pipeline_name(pipeline)
    except InvalidPipeline as error:
        raise NotDeployed(str(error)) from error


def _input(schedule: StartScheduledInput, key: str, starter: str) -> StartPipelineInput:
    """Return the input of a start. The first request with a key decides its time."""
    values = time_values(datetime.now(ZoneInfo(schedule.zone)))
    return StartPipelineInput(pipeline=schedule.pipeline, starter=starter, values=values, way="by hand", key=key)


async def _deployed(client: Client, settings: InstallationSettings, pipeline: str) -> tuple[StartScheduledInput, str]:
    """Return the deployed schedule of a pipeline, and its task queue."""
    if deployed := await find_deployed(client, settings, pipeline):
        return deployed
    if pipeline in await list_zones(client, settings):
        raise InvalidPipeline(
            f"files that arrive start the pipeline {pipeline!r}, so a request cannot start it. `arrivals {pipeline}` "
            "shows its files, and its option --load loads those that you name"
        )
    known = [given.name async for _, given in deployed_schedules(client, settings)]
    raise NotDeployed(
        f"the pipeline {pipeline!r} is not deployed{suggestion(pipeline, known)}: give its file a `schedule`, and "
        "apply it by `deploy`; `list --schedules` shows those that are deployed"
    )


async def _find_run(start: StartLookup, *, wait: bool = False) -> tuple[str, str]:
    """Return the workflow id and the run id of a start's run, both empty if the start has no run.

    Args:
        wait: True to wait for the run, or for the end of the start.
    """
    async for event in start.handle.fetch_history_events(wait_new_event=wait):
        if event.event_type == _RUN_STARTED:
            run = event.child_workflow_execution_started_event_attributes.workflow_execution
            return run.workflow_id, run.run_id
    return "", ""


async def _why_no_run(start: StartLookup) -> str:
    """Return the reason why a start that is under way has no run yet."""
    described = start.description
    if described.history_length < STARTED:
        return f"no worker has taken it from the task queue {described.task_queue!r}: {START_A_WORKER}"
    if why := await why_stuck(start.handle, described):
        return f"the worker cannot continue {start.handle.id}: {why}"
    return "a worker lists its input, or waits for the end of a run of the same input"


async def _without_result(client: Client, start: StartLookup, report: ReportedStart) -> ReportedStart:
    """Return the report of a start that was cancelled or terminated. Its run may go on."""
    run = await describe_run(client, report.workflow_id, report.run_id) if report.run_id else None
    if run and not run.ended:
        reason = f"the start was ended in Temporal, and its run goes on: read /api/runs/{report.run_id}"
        return report.model_copy(update={"reason": reason})
    if run and (result := await read_result(client, run.description)):
        return report.model_copy(update={"outcome": result.outcome, "reason": result.reason})
    is_cancelled = start.description.status == WorkflowExecutionStatus.CANCELED
    reason = "the start was ended in Temporal before it began a run"
    return report.model_copy(update={"outcome": "cancelled" if is_cancelled else "failed", "reason": reason})
