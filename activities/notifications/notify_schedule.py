"""Notify people on Slack of a schedule: starts that did not happen, and one that is paused."""

from dataclasses import dataclass

from temporalio import activity

from activities.notifications.slack_line import send_line
from sluice.contracts.schedules import ScheduleNotice
from sluice.presentation.schedules import notice_line
from sluice.settings import Settings


@dataclass(frozen=True)
class NotifyScheduleActivity:
    """The activity `notify_schedule`. Needs the Slack settings; without them nobody is notified."""

    settings: Settings

    @activity.defn(name="notify_schedule")
    def notify_schedule(self, input: ScheduleNotice) -> None:
        """Send one line. Whatever fails here changes nothing for the run."""
        send_line(self.settings, notice_line(input))
