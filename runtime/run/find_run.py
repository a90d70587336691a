"""Find runs, and read their status, request and result from Temporal, with or without a worker."""

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args

from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from runtime.worker_answer import waiting_for_worker
from sluice.ambiguous_names import describe_several
from sluice.contracts.run import RUN_WORKFLOW, STATUS_QUERY, Outcome, RunResult, RunStatus
from sluice.errors import InvalidPipeline
from sluice.identifiers import suggested_run, suggestion
from sluice.times import format_time
from workflows.search_attributes import RESULT_MEMO

_WORKFLOW_TYPE = f'WorkflowType = "{RUN_WORKFLOW}"'
_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
_AFTER_PIPELINE = re.compile(r"-[0-9a-f]{12}(-[a-z]+)?$")
"""End of a workflow id, after the name of the pipeline."""
_UNQUOTABLE = re.compile(r"[\"'\\\x00-\x1f]")
RUNNING = "running"
OUTCOMES = get_args(Outcome)
_ANSWER_WITHIN = timedelta(seconds=10)
"""Time that a worker has to report the status of a run. Temporal alone would wait for 30 s."""

Handle = WorkflowHandle[Any, RunResult]


@dataclass(frozen=True)
class RunLookup:
    """A run with its description by Temporal."""

    handle: Handle
    description: WorkflowExecutionDescription

    @property
    def ended(self) -> bool:
        """True if the run has ended, with any outcome."""
        return self.description.status != WorkflowExecutionStatus.RUNNING


@dataclass(frozen=True)
class RunFilter:
    """Conditions that select the runs of a list. An empty field selects all."""

    pipeline: str = ""
    table: str = ""
    state: str = ""
    """An outcome, or `running`."""
    since: datetime | None = None
    """Runs that started at this time or later."""
    ended_since: datetime | None = None
    """Runs that ended at this time or later."""
    workflow_ids: tuple[str, ...] = ()
    before: datetime | None = None
    """Runs that started before this time."""

    def __post_init__(self) -> None:
        """Check the state and the names.

        Raises:
            InvalidPipeline: the state does not exist, or a name has a character that no name has.
        """
        if self.state not in ("", RUNNING, *OUTCOMES):
            known = [RUNNING, *OUTCOMES]
            hint = suggestion(self.state, known) or f"; there are {', '.join(known)}"
            raise InvalidPipeline(f"--state: no run is {self.state!r}{hint}")
        for option, name in (("--pipeline", self.pipeline), ("--table", self.table)):
            if _UNQUOTABLE.search(name):
                raise InvalidPipeline(f"{option}: {name[:100]!r} has a quote or a backslash, which no such name has")

    @property
    def query(self) -> str:
        """The query in Temporal's visibility language."""
        parts = [
            _WORKFLOW_TYPE,
            f'SluicePipeline = "{self.pipeline}"' if self.pipeline else "",
            f'SluiceTable = "{self.table}"' if self.table else "",
            f'SluiceOutcome = "{self.state}"' if self.state in OUTCOMES else "",
            'ExecutionStatus = "Running"' if self.state == RUNNING else "",
            f'StartTime >= "{self.since.isoformat()}"' if self.since else "",
            f'StartTime < "{self.before.isoformat()}"' if self.before else "",
            f'CloseTime >= "{self.ended_since.isoformat()}" AND ExecutionStatus != "Running"'
            if self.ended_since
            else "",
            f"WorkflowId IN ({', '.join(map(json.dumps, self.workflow_ids))})" if self.workflow_ids else "",
        ]
        return " AND ".join(filter(None, parts))


ALL_RUNS = RunFilter()
_MOST_LISTED = 1000
"""Maximum number of runs read to find those of a pipeline."""


async def find_run(client: Client, named: str) -> RunLookup:
    """Find a run by its workflow id, its run id, or its pipeline's name, which means the pipeline's latest run.

    Runs that were not to publish count only if there are no others.

    Raises:
        InvalidPipeline: there is no such run.
    """
    if not _NAME.fullmatch(named):
        raise InvalidPipeline(f"{named!r} is not the name of a run: `list` shows the names")
    run = await describe_run(client, named, None)
    if run is not None and run.description.workflow_type != RUN_WORKFLOW:
        raise InvalidPipeline(
            f"{named!r} is not a run, but a {run.description.workflow_type} workflow: `list` shows runs"
        )
    if run is None:
        query = f'{_WORKFLOW_TYPE} AND (RunId = "{named}" OR WorkflowId STARTS_WITH "{named}-")'
        latest: WorkflowExecution | None = None
        async for execution in client.list_workflows(query, limit=_MOST_LISTED):
            if execution.run_id == named or _is_run_of(named, execution.id):
                latest = execution
                break
            if latest is None and _is_check_of(named, execution.id):
                latest = execution
        run = await describe_run(client, latest.id, latest.run_id) if latest else None
    if run is None:
        raise InvalidPipeline(f"there is no run {named!r}{await _suggested(client, named)}: `list` shows all runs")
    return run


async def find_run_under_way(client: Client, named: str, action: str) -> RunLookup:
    """Find a run that has not ended. A pipeline's name means its one run that is under way.

    Args:
        action: the verb for what a person wants to do with the run, for the message if it has ended.

    Raises:
        InvalidPipeline: there is no such run, it has ended, or several are under way.
    """
    latest = await find_run(client, named)
    is_exact = named in (latest.handle.id, latest.handle.run_id)
    run = latest if is_exact else await _only_run_under_way(client, named) or latest
    if run.ended:
        raise InvalidPipeline(f"{run.handle.id} has ended: there is nothing to {action}")
    return run


async def _only_run_under_way(client: Client, pipeline: str) -> RunLookup | None:
    """Return the run of a pipeline that is under way, or None if all have ended.

    Raises:
        InvalidPipeline: several are under way.
    """
    query = f'{_WORKFLOW_TYPE} AND ExecutionStatus = "Running" AND WorkflowId STARTS_WITH "{pipeline}-"'
    running = [each async for each in client.list_workflows(query, limit=_MOST_LISTED) if _is_run_of(pipeline, each.id)]
    if len(running) > 1:
        running.sort(key=lambda each: each.start_time, reverse=True)
        lines = [f"{each.id}  started {format_time(each.start_time)}" for each in running]
        raise InvalidPipeline(describe_several(pipeline, "runs that are under way", lines))
    return await describe_run(client, running[0].id, running[0].run_id) if running else None


async def _suggested(client: Client, named: str) -> str:
    """Return a suggestion for a name that no run has, from the latest runs."""
    latest = await list_runs(client, _MOST_LISTED)
    ids = [id for each in latest for id in (each.id, each.run_id)]
    return suggested_run(named, [_AFTER_PIPELINE.sub("", each.id) for each in latest], ids)


def _is_run_of(pipeline: str, workflow_id: str) -> bool:
    return re.fullmatch(re.escape(pipeline) + "-[0-9a-f]{12}", workflow_id) is not None


def _is_check_of(pipeline: str, workflow_id: str) -> bool:
    """Return True if a workflow is a run of a pipeline with `--no-publish`."""
    return workflow_id.endswith("-check") and _is_run_of(pipeline, workflow_id.removesuffix("-check"))


async def describe_run(client: Client, workflow_id: str, run_id: str | None) -> RunLookup | None:
    """Return the run with a workflow id and a run id, or the latest without one; None if Temporal has none."""
    description = await describe_workflow(client.get_workflow_handle(workflow_id, run_id=run_id))
    if description is None:
        return None
    pinned = client.get_workflow_handle(workflow_id, run_id=description.run_id, result_type=RunResult)
    return RunLookup(pinned, description)


async def describe_workflow(handle: WorkflowHandle[Any, Any]) -> WorkflowExecutionDescription | None:
    """Return the description of a workflow; None if Temporal has no such workflow."""
    try:
        return await handle.describe()
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
            return None
        raise


async def list_runs(client: Client, limit: int, wanted: RunFilter = ALL_RUNS) -> list[WorkflowExecution]:
    """Return the latest runs that match a filter, newest first."""
    return [execution async for execution in client.list_workflows(wanted.query, limit=limit)]


def find_handle(client: Client, run: WorkflowExecution) -> Handle:
    """Return the handle of a listed run."""
    return client.get_workflow_handle(run.id, run_id=run.run_id, result_type=RunResult)


async def query_status(handle: Handle) -> RunStatus | None:
    """Query the status of a run; None if no worker answers the query."""
    try:
        with waiting_for_worker():
            status: RunStatus = await handle.query(STATUS_QUERY, result_type=RunStatus, rpc_timeout=_ANSWER_WITHIN)
            return status
    except (WorkflowQueryFailedError, RPCError):
        return None


async def read_result(client: Client, run: WorkflowExecution) -> RunResult | None:
    """Return the result of an ended run: its return value, the details of its failure, or its memo."""
    try:
        return await find_handle(client, run).result(follow_runs=False)
    except WorkflowFailureError as failure:
        cause = failure.cause
        if isinstance(cause, ApplicationError) and cause.type == "RunFailed" and cause.details:
            return RunResult.model_validate(cause.details[0])
        kept = (await run.memo()).get(RESULT_MEMO)
        if kept:
            return RunResult.model_validate(kept)
        outcome = "cancelled" if run.status == WorkflowExecutionStatus.CANCELED else "failed"
        why = str(cause) if run.status == WorkflowExecutionStatus.FAILED else f"the run was {failure.cause!s}"
        return RunResult(
            run_id=run.run_id or "", workflow_id=run.id, pipeline=run.id.rsplit("-", 1)[0],
            outcome=outcome, reason=why, cause="error",
        )  # fmt: skip
