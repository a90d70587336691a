"""Schedules of pipelines with their last start and its end, their next start, and their missed starts."""

from dataclasses import dataclass
from datetime import datetime

from temporalio.client import (
    Client,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionResult,
    ScheduleDescription,
    WorkflowExecutionStatus,
)
from temporalio.service import RPCError, RPCStatusCode

from runtime.schedules.deployed_schedules import deployed_schedules
from sluice.contracts.schedules import ENDED_MEMO, MISSED_MEMO, MissedStarts, StartScheduledInput
from sluice.contracts.starting import EndedRun
from sluice.setting_groups import InstallationSettings


@dataclass(frozen=True)
class ListedSchedule:
    """A schedule with its state."""

    given: StartScheduledInput
    last: datetime | None
    """Time of the last start that happened."""
    state: str
    """State of the run of that start: `running`, an outcome, or why it is not known; empty if there is none."""
    ended: EndedRun | None
    next: datetime | None
    missed: MissedStarts
    missed_since_last: MissedStarts
    """Starts that were missed after the last one that happened; none if Temporal no longer has that start."""
    paused: str | None
    """Reason why it is paused; None if it is not paused."""


async def list_schedules(client: Client, settings: InstallationSettings) -> list[ListedSchedule]:
    """Return the schedules of an installation, sorted by pipeline."""
    return [await _listed(client, *each) async for each in deployed_schedules(client, settings)]


async def _listed(client: Client, described: ScheduleDescription, given: StartScheduledInput) -> ListedSchedule:
    info, state = described.info, described.schedule.state
    last = info.recent_actions[-1] if info.recent_actions else None
    missed = MissedStarts(late=info.num_actions_missed_catchup_window, overlapping=info.num_actions_skipped_overlap)
    how, ended, missed_before = await _last_end(client, last, missed) if last else ("", None, MissedStarts())
    return ListedSchedule(
        given=given,
        last=last.scheduled_at if last else None,
        state=how,
        ended=ended,
        next=info.next_action_times[0] if info.next_action_times and not state.paused else None,
        missed=missed,
        missed_since_last=missed.since(missed_before),
        paused=(state.note or "") if state.paused else None,
    )


async def _last_end(
    client: Client, last: ScheduleActionResult, missed: MissedStarts
) -> tuple[str, EndedRun | None, MissedStarts]:
    """Return the state and the end of the run of a start, and the starts that were missed when it began.

    Args:
        missed: starts that have been missed by now, which are returned if that start did not record them.
    """
    action = last.action
    assert isinstance(action, ScheduleActionExecutionStartWorkflow)
    handle = client.get_workflow_handle(action.workflow_id, run_id=action.first_execution_run_id)
    try:
        description = await handle.describe()
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        return "forgotten by Temporal", None, missed
    memo = await description.memo()
    before = MissedStarts.model_validate(memo[MISSED_MEMO]) if MISSED_MEMO in memo else missed
    if ended := memo.get(ENDED_MEMO):
        end = EndedRun.model_validate(ended)
        is_news = end.outcome == "published" or not end.is_done
        return end.outcome if is_news else "nothing new", end, before
    if description.status == WorkflowExecutionStatus.RUNNING:
        return "running", None, before
    return description.status.name.lower() if description.status else "", None, before
