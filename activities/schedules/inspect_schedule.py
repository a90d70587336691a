"""Read from a schedule the time of a start, and the starts that did not happen."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from temporalio import activity
from temporalio.client import Client, ScheduleActionExecutionStartWorkflow, ScheduleDescription
from temporalio.service import RPCError, RPCStatusCode

from sluice.contracts.schedules import MISSED_MEMO, InspectScheduleInput, MissedStarts, ScheduledStart
from sluice.times import parse_time


@dataclass(frozen=True)
class InspectScheduleActivity:
    """The activity `inspect_schedule`. Needs Temporal's client."""

    client: Client

    @activity.defn(name="inspect_schedule")
    async def inspect_schedule(self, input: InspectScheduleInput) -> ScheduledStart:
        """Return the time of a start in the zone of its schedule, and the starts that the schedule missed so far."""
        scheduled_for = parse_time(input.scheduled_for).astimezone(ZoneInfo(input.zone))
        start = ScheduledStart(scheduled_for=scheduled_for.isoformat(timespec="seconds"))
        try:
            described = await self.client.get_schedule_handle(input.schedule_id).describe()
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            return start  # the schedule was removed after this start
        info = described.info
        missed = MissedStarts(late=info.num_actions_missed_catchup_window, overlapping=info.num_actions_skipped_overlap)
        before = await self._missed_before(described, input.workflow_id)
        return start.model_copy(update={"missed": missed, "missed_before": before})

    async def _missed_before(self, described: ScheduleDescription, workflow_id: str) -> MissedStarts:
        """Return the missed starts that the latest other start recorded; none if Temporal has no other start."""
        for each in reversed(described.info.recent_actions):
            action = each.action
            if not isinstance(action, ScheduleActionExecutionStartWorkflow) or action.workflow_id == workflow_id:
                continue
            handle = self.client.get_workflow_handle(action.workflow_id, run_id=action.first_execution_run_id)
            try:
                memo = await (await handle.describe()).memo()
            except RPCError as error:
                if error.status != RPCStatusCode.NOT_FOUND:
                    raise
                continue
            if MISSED_MEMO in memo:
                return MissedStarts.model_validate(memo[MISSED_MEMO])
        return MissedStarts()
