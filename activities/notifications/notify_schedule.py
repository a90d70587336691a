"""Notify people on Slack that a schedule missed starts, had a failed run, or was paused."""

from dataclasses import dataclass

from temporalio import activity

from activities.notifications.slack_line import send_line
from sluice.contracts.schedules import ScheduleNotice
from sluice.presentation.schedules import notice_line
from sluice.settings import Settings


@dataclass(frozen=True)
class NotifyScheduleActivity:
    """The activity `notify_schedule`. It needs the Slack settings, and sends nothing without them."""

    settings: Settings

    @activity.defn(name="notify_schedule")
    def notify_schedule(self, input: ScheduleNotice) -> None:
        """Send one line. A failure does not affect the run."""
        send_line(self.settings, notice_line(input))
