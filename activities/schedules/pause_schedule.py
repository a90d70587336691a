"""Pause a schedule whose run was not published."""

from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from runtime.schedules.pausing import pause_schedule
from sluice.contracts.schedules import PauseScheduleInput


@dataclass(frozen=True)
class PauseScheduleActivity:
    """The activity `pause_schedule`. Needs Temporal's client."""

    client: Client

    @activity.defn(name="pause_schedule")
    async def pause_schedule(self, input: PauseScheduleInput) -> None:
        """Pause a schedule, and note why.

        A schedule that is paused already keeps its note. A removed schedule is not an error.
        """
        handle = self.client.get_schedule_handle(input.schedule_id)
        try:
            if not (await handle.describe()).schedule.state.paused:
                await pause_schedule(handle, input.note)
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
