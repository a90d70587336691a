"""A client of Temporal in memory with a run that waits for approval and one that has ended, for requests to the API."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from sluice.approval.decisions import ApprovalRecord, Decision
from sluice.contracts.lake_queries import QueryRows, QueryTablesInput
from sluice.contracts.run import WAITING, RunResult, RunStatus
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.contracts.table_changes import TableChange
from sluice.contracts.table_diffs import DiffSide, DiffTablesInput, DiffTablesResult
from sluice.errors import InvalidPipeline, NoSuchBranch
from sluice.pipeline.model import Pipeline
from tests.harness.lake_client import LakeClient

WAITS, ENDED = "p-0123456789ab", "p-ba9876543210"
"""Workflow ids of the run that waits and of the one that has ended."""
HEAD = "ab" * 32
_CONDITION = r'(?:\w+ (?:=|!=|>=|STARTS_WITH) "[^"\\]*"|\(RunId = "[\w-]+" OR WorkflowId STARTS_WITH "[\w-]+"\))'
_QUERY = re.compile(rf"{_CONDITION}(?: AND {_CONDITION})*")
"""A query of Temporal's visibility in which no value of a request has become a part of the language."""


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

    def list_workflows(self, query: str, **_: Any) -> AsyncIterator[SimpleNamespace]:
        assert _QUERY.fullmatch(query), query

        async def listed() -> AsyncIterator[SimpleNamespace]:
            for name in (WAITS, ENDED):
                yield _described(name)

        return listed()

    def get_workflow_handle(self, workflow_id: str, run_id: str | None = None, **_: object) -> SimpleNamespace:
        """Return the handle of one of the two runs, or of a run that does not exist."""

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
        """Return the query itself, as a row for each of its parts."""
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
