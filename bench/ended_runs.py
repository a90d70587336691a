"""Many runs that have ended, as Temporal lists and keeps them, without their work: thousands in a minute."""

import asyncio
import secrets

from temporalio import workflow
from temporalio.client import Client
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from sluice.contracts.run import RUN_WORKFLOW, STATUS_QUERY, RunResult, RunStatus
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.contracts.table_changes import TableChange
from sluice.pipeline.model import Pipeline
from workflows.search_attributes import OUTCOME, PIPELINE, SUMMARY_MEMO, TABLE

_QUEUE = "ended-runs"
_PIPELINES = 50
_AT_ONCE = 64
_EACH_QUARANTINED = 20
"""One run in so many is quarantined."""


@workflow.defn(name=RUN_WORKFLOW)
class EndedRun:
    """A run that ends at once. Its folder names its outcome."""

    @workflow.init
    def __init__(self, request: RunRequest) -> None:
        info, is_published = workflow.info(), request.folder == "published"
        change = TableChange(operation="append", added_rows=5, total_rows=5)
        self._result = RunResult(
            run_id=info.run_id,
            workflow_id=info.workflow_id,
            pipeline=request.pipeline.name,
            outcome="published" if is_published else "quarantined",
            cause=None if is_published else "audit",
            reason="" if is_published else "the audit failed: not_null(id) of m.many_0: 3 of 1,000 rows",
            branch=None if is_published else f"quarantine/{info.workflow_id}/{info.run_id}",
            main_after=info.run_id.replace("-", "") if is_published else None,
            tables=dict.fromkeys(request.pipeline.tables, change),
        )

    @workflow.run
    async def run(self, _: RunRequest) -> RunResult:
        """Name the outcome for lists, and end."""
        workflow.upsert_search_attributes([OUTCOME.value_set(str(self._result.outcome))])
        return self._result

    @workflow.query(name=STATUS_QUERY)
    def status(self) -> RunStatus:
        """Return the last status."""
        return RunStatus(stage="ended", events=[], result=self._result)


async def add_ended_runs(client: Client, number: int, table: str) -> None:
    """Let Temporal have a number of further runs of 50 pipelines into a table, which have ended."""
    worker = Worker(
        client,
        task_queue=_QUEUE,
        workflows=[EndedRun],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_cached_workflows=_AT_ONCE,
    )
    room = asyncio.Semaphore(_AT_ONCE)

    async def add(each: int) -> None:
        name = f"busy-{each % _PIPELINES}"
        pipeline = Pipeline.model_validate({"name": name, "write": {"job": "job.py"}, "tables": {table: {}}})
        outcome = "published" if each % _EACH_QUARANTINED else "quarantined"
        request = RunRequest(pipeline=pipeline, input=RunInput(digest=""), starter="bench", folder=outcome)
        known = TypedSearchAttributes([SearchAttributePair(PIPELINE, name), SearchAttributePair(TABLE, [table])])
        async with room:
            await client.execute_workflow(
                EndedRun.run,
                request,
                id=f"{name}-{secrets.token_hex(6)}",
                task_queue=_QUEUE,
                memo={SUMMARY_MEMO: f"append 1 file to {table}"},
                search_attributes=known,
            )

    async with worker:
        await asyncio.gather(*(add(each) for each in range(number)))
