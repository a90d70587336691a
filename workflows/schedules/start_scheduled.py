"""The workflow that a schedule starts: it starts a run for the scheduled time, and returns how the run ended.

A schedule cannot start the run itself: it appends the time to the workflow id, and the workflow id of a run must
consist of its pipeline and input.
"""

from datetime import datetime

from temporalio import workflow
from temporalio.common import SearchAttributeKey
from temporalio.exceptions import ApplicationError, ChildWorkflowError, FailureError
from temporalio.workflow import ChildWorkflowCancellationType

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.schedules import (
        ENDED_MEMO,
        MISSED_MEMO,
        InspectScheduleInput,
        MissedStarts,
        PauseScheduleInput,
        ScheduledStart,
        ScheduleNotice,
        StartScheduledInput,
    )
    from sluice.contracts.starting import EndedRun, StartPipelineInput
    from sluice.identifiers import schedule_id
    from sluice.pipeline.placeholders import time_values
    from sluice.presentation.schedules import PAUSED_BECAUSE, describe_ended
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import is_cancelled, raise_if_cancelled, root_cause

_START_TIME = SearchAttributeKey.for_datetime("TemporalScheduledStartTime")
"""Temporal's search attribute with the scheduled time of the workflow."""
NOT_PUBLISHED = "NotPublished"
"""Type of the error that ends the workflow if its run was not published."""


@workflow.defn(name="StartScheduled")
class StartScheduled:
    """One start of a schedule."""

    @workflow.init
    def __init__(self, input: StartScheduledInput) -> None:
        self._input = input
        self._calls = ActivityCalls(pipeline=input.name)
        self._schedule = schedule_id(input.installation, input.name)

    @workflow.run
    async def run(self, input: StartScheduledInput) -> EndedRun:
        """Start the run for the scheduled time, wait for its end, and fail if it was not published."""
        start = await self._inspect()
        workflow.upsert_memo({MISSED_MEMO: start.missed.model_dump()})
        missed = start.missed.since(start.missed_before)
        if missed != MissedStarts():
            await self._notify(ScheduleNotice(pipeline=input.name, missed=missed))
        raise_if_cancelled()  # an activity that completes during a cancellation does not raise it
        ended = await self._run_pipeline(start)
        workflow.upsert_memo({ENDED_MEMO: ended.model_dump(mode="json")})
        if ended.is_done:
            return ended
        await self._handle_failure(ended)
        raise ApplicationError(describe_ended(ended), type=NOT_PUBLISHED, non_retryable=True)

    async def _inspect(self) -> ScheduledStart:
        info = workflow.info()
        time = info.typed_search_attributes.get(_START_TIME) or info.start_time
        query = InspectScheduleInput(
            schedule_id=self._schedule,
            workflow_id=info.workflow_id,
            zone=self._input.zone,
            scheduled_for=time.isoformat(timespec="seconds"),
        )
        return await self._calls.inspect_schedule(query)

    async def _run_pipeline(self, start: ScheduledStart) -> EndedRun:
        given = StartPipelineInput(
            pipeline=self._input.pipeline,
            starter=f"schedule {self._input.name}",
            values=time_values(datetime.fromisoformat(start.scheduled_for)),
            way="schedule",
            key=start.scheduled_for,
        )
        try:
            ended: EndedRun = await workflow.execute_child_workflow(
                "StartPipeline",
                given,
                id=f"{workflow.info().workflow_id}-start",
                result_type=EndedRun,
                cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
                static_summary=f"{self._input.name} for {start.scheduled_for}",
            )
            return ended
        except ChildWorkflowError as error:
            if is_cancelled(error):
                raise
            return EndedRun(key=given.key, outcome="failed", cause="error", reason=root_cause(error)[1][:1000])

    async def _handle_failure(self, ended: EndedRun) -> None:
        """Pause the schedule if its pipeline requires it. Notify people of a pause, or if the start has no run."""
        pauses = self._input.pause_on_failure and ended.outcome != "cancelled"
        if pauses:
            note = f"{PAUSED_BECAUSE}{describe_ended(ended)}"
            await self._calls.pause_schedule(PauseScheduleInput(schedule_id=self._schedule, note=note))
        if pauses or not ended.run_id:
            await self._notify(ScheduleNotice(pipeline=self._input.name, ended=ended, paused=pauses))

    async def _notify(self, notice: ScheduleNotice) -> None:
        """Notify people. A failure does not affect the workflow."""
        try:
            await self._calls.notify_schedule(notice)
        except FailureError as error:
            if is_cancelled(error):
                raise
            workflow.logger.warning("the notification failed: %s", root_cause(error)[1])
