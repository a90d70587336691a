"""A client of Temporal in memory for requests to the API.

It has a run that waits for approval, one that has ended, and the deployed pipeline of both.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import ScheduleActionStartWorkflow, WorkflowExecutionStatus
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from sluice.approval.decisions import ApprovalRecord, Decision
from sluice.contracts.lake_queries import QueryRows, QueryTablesInput
from sluice.contracts.run import WAITING, RunResult, RunStatus
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.contracts.schedules import StartScheduledInput
from sluice.contracts.starting import PipelineText, StartPipelineInput
from sluice.contracts.table_changes import TableChange
from sluice.contracts.table_diffs import DiffSide, DiffTablesInput, DiffTablesResult
from sluice.errors import InvalidPipeline, NoSuchBranch
from sluice.identifiers import schedule_id
from sluice.pipeline.model import Pipeline
from tests.harness.lake_client import LakeClient

WAITS, ENDED = "p-0123456789ab", "p-ba9876543210"
"""Workflow ids of the run that waits and of the one that has ended."""
HEAD = "ab" * 32
_CONDITION = r'(?:\w+ (?:=|!=|>=|STARTS_WITH) "[^"\\]*"|\(RunId = "[\w-]+" OR WorkflowId STARTS_WITH "[\w-]+"\))'
_QUERY = re.compile(rf"{_CONDITION}(?: AND {_CONDITION})*")
"""A query of Temporal's visibility. It does not match if a value in a request could change the query."""


class ApiClient(LakeClient):
    """A client of Temporal in memory. `decisions` has every decision that reached a run.

    A wait for the end of a run ends when `ends` is set; `waiting` is the number of waits under way.
    """

    namespace = "default"

    def __init__(self) -> None:
        pipeline = Pipeline.model_validate({"name": "p", "write": {"job": "job.py"}, "tables": {"t.x": {}}})
        request = RunRequest(pipeline=pipeline, input=RunInput(digest="d"), starter="ben")
        super().__init__({"diff_tables": self._diff, "query_tables": self._query}, request)
        self.decisions: list[Decision] = []
        self.ends = asyncio.Event()
        self.ends.set()
        self.waiting = 0
        self.starts: dict[str, StartPipelineInput] = {}
        """Starts of the deployed pipeline, by their ids."""

    async def start_workflow(self, run: Callable[..., Any], argument: Any, **given: object) -> SimpleNamespace:
        """Keep a start, and answer any other workflow. Temporal refuses an id that it has."""
        if not isinstance(argument, StartPipelineInput):
            return await super().start_workflow(run, argument, **given)
        workflow_id = str(given["id"])
        if workflow_id in self.starts:
            raise WorkflowAlreadyStartedError(workflow_id, "StartPipeline")
        self.starts[workflow_id] = argument
        return self.get_workflow_handle(workflow_id)

    def get_schedule_handle(self, name: str) -> SimpleNamespace:
        """Return the handle of the schedule of `p`, or of one that does not exist."""

        async def describe() -> SimpleNamespace:
            if name != schedule_id("test", "p"):
                raise RPCError("not found", RPCStatusCode.NOT_FOUND, b"")
            text = PipelineText(name="p.yml", text="name: p", folder="/")
            given = StartScheduledInput(installation="test", name="p", pipeline=text, zone="Pacific/Kiritimati")
            action = ScheduleActionStartWorkflow("StartScheduled", given, id=name, task_queue="of-the-schedule")
            action.args = await self.data_converter.encode([given])
            return SimpleNamespace(id=name, schedule=SimpleNamespace(action=action))

        return SimpleNamespace(describe=describe)

    async def list_schedules(self) -> AsyncIterator[SimpleNamespace]:
        async def listed() -> AsyncIterator[SimpleNamespace]:
            yield SimpleNamespace(id=schedule_id("test", "p"))

        return listed()

    def get_workflow_handle_for(self, _: object, workflow_id: str) -> SimpleNamespace:
        return self.get_workflow_handle(workflow_id)

    def list_workflows(self, query: str, **_: Any) -> AsyncIterator[SimpleNamespace]:
        assert _QUERY.fullmatch(query), query

        async def listed() -> AsyncIterator[SimpleNamespace]:
            for name in (WAITS, ENDED):
                yield _described(name)

        return listed()

    def get_workflow_handle(self, workflow_id: str, run_id: str | None = None, **_: object) -> SimpleNamespace:
        """Return the handle of a start, of one of the two runs, or of a run that does not exist."""
        if workflow_id in self.starts:
            return _handle_of_start(workflow_id)

        async def describe() -> SimpleNamespace:
            if workflow_id not in (WAITS, ENDED):
                raise RPCError("not found", RPCStatusCode.NOT_FOUND, b"")
            return _described(workflow_id)

        async def status(*_: object, **__: object) -> RunStatus:
            return RunStatus(stage=WAITING, events=[], result=_result(workflow_id, self.decisions))

        async def result(**_: object) -> RunResult:
            self.waiting += 1
            try:
                if workflow_id == WAITS:
                    await self.ends.wait()
            finally:
                self.waiting -= 1
            return _result(workflow_id, self.decisions)

        async def decide(_: object, decision: Decision) -> Decision:
            self.decisions.append(decision)
            return decision

        kept = super().get_workflow_handle(workflow_id)
        return SimpleNamespace(
            id=workflow_id, run_id=run_id, describe=describe, query=status, result=result, execute_update=decide,
            fetch_history_events=kept.fetch_history_events,
        )  # fmt: skip

    @staticmethod
    def _query(given: QueryTablesInput) -> QueryRows:
        """Return two rows: the parts of the query, and its reference in each column."""
        if given.ref not in ("", "main", f"run-of-{WAITS}"):
            raise NoSuchBranch(f"there is no branch {given.ref!r}")
        parts = given.sql.split(";")
        return QueryRows(columns=[f"c{number}" for number in range(len(parts))], rows=[parts, [given.ref] * len(parts)])

    @staticmethod
    def _diff(given: DiffTablesInput) -> DiffTablesResult:
        if given.table not in ("", "t.x") or given.key:
            raise InvalidPipeline(f"{given.table} {given.key} is not part of the diff")
        side = DiffSide(branch="main", hash="cd" * 20, description="main")
        return DiffTablesResult(before=side, after=side, tables=[])


def _handle_of_start(workflow_id: str) -> SimpleNamespace:
    """Return the handle of a start that is under way, and whose run is the one that waits."""

    async def describe() -> SimpleNamespace:
        described = _described(WAITS)
        described.workflow_type = "StartPipeline"
        return described

    async def result(**_: object) -> None:
        return None

    async def events(**_: object) -> AsyncIterator[HistoryEvent]:
        event = HistoryEvent(event_type=EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED)
        run = event.child_workflow_execution_started_event_attributes.workflow_execution
        run.workflow_id, run.run_id = WAITS, f"run-of-{WAITS}"
        yield event

    return SimpleNamespace(id=workflow_id, describe=describe, result=result, fetch_history_events=events)


def _described(workflow_id: str) -> SimpleNamespace:
    now = datetime.now(timezone.utc)
    waits = workflow_id == WAITS
    return SimpleNamespace(
        id=workflow_id,
        run_id=f"run-of-{workflow_id}",
        status=WorkflowExecutionStatus.RUNNING if waits else WorkflowExecutionStatus.COMPLETED,
        workflow_type="WriteAuditPublish",
        start_time=now,
        close_time=None if waits else now,
        search_attributes={},
        memo=_no_memo,
        raw_description=DescribeWorkflowExecutionResponse(),
        history_length=5,
    )


async def _no_memo() -> dict[str, Any]:
    return {}


def _result(workflow_id: str, decisions: list[Decision]) -> RunResult:
    waits = workflow_id == WAITS
    return RunResult(
        run_id=f"run-of-{workflow_id}",
        workflow_id=workflow_id,
        pipeline="p",
        branch="wap/p/r",
        audited_hash=HEAD,
        tables={"t.x": TableChange(operation="append", added_rows=1)},
        outcome=None if waits else "published",
        main_after=None if waits else "ef" * 20,
        approval=ApprovalRecord(required=2, decisions=decisions) if waits else None,
    )
