"""The workflow that starts a run without a person, waits for its end, and reports the result.

A schedule, a landing zone or a backfill starts one such workflow for each run that it wants, and so does a program by
the API of the page. The workflow id of the run itself consists of its pipeline and its input, so a run that a person
started with the same input is not started a second time.
"""

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.exceptions import ChildWorkflowError, FailureError, WorkflowAlreadyStartedError
from temporalio.workflow import ChildWorkflowCancellationType, ChildWorkflowHandle, ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.run import RunResult
    from sluice.contracts.run_request import RunRequest
    from sluice.contracts.starting import (
        RUN_ENDED_SIGNAL,
        EndedRun,
        FindRunEndInput,
        PreparedRun,
        StartPipelineInput,
    )
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import is_cancelled, raise_if_cancelled, root_cause, run_shielded
    from workflows.run.started_runs import cancel_and_wait, wait_for_end
    from workflows.search_attributes import LONGEST_SUMMARY, PIPELINE, SUMMARY_MEMO, TABLE, indexed_tables


@workflow.defn(name="StartPipeline")
class StartPipeline:
    """One run of a pipeline file, started for a schedule, a landing zone, a backfill or a program."""

    @workflow.init
    def __init__(self, input: StartPipelineInput) -> None:
        self._input = input
        self._calls = ActivityCalls()

    @workflow.run
    async def run(self, input: StartPipelineInput) -> EndedRun:
        """Start the run, wait for its end, and report it to the workflow that requested the run."""
        try:
            ended = await self._start_and_wait()
        except (FailureError, asyncio.CancelledError) as error:
            if is_cancelled(error):
                own_id, since = workflow.info().workflow_id, self._input.since
                ended = await run_shielded(cancel_and_wait(self._calls, own_id, since))
                ended = await run_shielded(self._report(ended))
                if ended.outcome == "cancelled":
                    raise
                return ended
            ended = EndedRun(outcome="failed", cause="error", reason=root_cause(error)[1][:1000])
        return await self._report(ended)

    async def _start_and_wait(self) -> EndedRun:
        prepared = await self._calls.prepare_run(self._input)
        if prepared.request is None:
            cause = "input_changed" if prepared.is_input_changed else None
            return EndedRun(outcome="refused", cause=cause, reason=prepared.problem)
        request = prepared.request.model_copy(update={"asked_by": self._input.asked_by})
        while True:
            if earlier := await self._find_own_run(prepared.workflow_id):
                return earlier
            raise_if_cancelled()  # an activity that completes during a cancellation does not raise it
            try:
                run = await _start_run(prepared, request)
                break
            except WorkflowAlreadyStartedError:  # wait for its end; then this run loads what main lacks
                await wait_for_end(self._calls, FindRunEndInput(workflow_id=prepared.workflow_id), self._input)
        try:
            await run
        except ChildWorkflowError:  # it failed or was cancelled; `find_run_end` returns more details
            raise_if_cancelled()
        query = FindRunEndInput(workflow_id=prepared.workflow_id, run_id=run.first_execution_run_id or "")
        end = await self._calls.find_run_end(query)
        assert end.ended, "a child workflow that ended has a result"
        return end.ended

    async def _find_own_run(self, workflow_id: str) -> EndedRun | None:
        """Return the result of the run that an earlier start of this workflow began for the same request, if any."""
        if not self._input.since:
            return None
        end = await self._calls.find_run_end(FindRunEndInput(workflow_id=workflow_id))
        is_own = end.ended and end.ended.started_by == workflow.info().workflow_id
        return end.ended if is_own and end.is_after(self._input.since) else None

    async def _report(self, ended: EndedRun) -> EndedRun:
        """Signal the result to the workflow that requested the run, unless that has ended. Return the result."""
        ended = ended.model_copy(update={"key": self._input.key, "started_by": workflow.info().workflow_id})
        if not self._input.report_to:
            return ended
        try:
            await workflow.get_external_workflow_handle(self._input.report_to).signal(RUN_ENDED_SIGNAL, ended)
        except FailureError as error:
            workflow.logger.warning("the end was not reported to %s: %s", self._input.report_to, root_cause(error)[1])
        return ended


async def _start_run(prepared: PreparedRun, request: RunRequest) -> ChildWorkflowHandle[Any, RunResult]:
    """Start the run with the same search attributes and memo as if a person had started it."""
    pipeline = request.pipeline
    attributes = TypedSearchAttributes(
        [SearchAttributePair(PIPELINE, pipeline.name), SearchAttributePair(TABLE, indexed_tables(pipeline.tables))]
    )
    return await workflow.start_child_workflow(
        "WriteAuditPublish",
        request,
        id=prepared.workflow_id,
        result_type=RunResult,
        parent_close_policy=ParentClosePolicy.ABANDON,
        cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        search_attributes=attributes if request.search_attributes else None,
        memo={SUMMARY_MEMO: prepared.summary},
        static_summary=f"{pipeline.name}: {prepared.summary}"[:LONGEST_SUMMARY],
        static_details=pipeline.description or None,
    )
