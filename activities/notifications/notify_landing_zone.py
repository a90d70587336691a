"""Notify people on Slack of what happens to a landing zone."""

from dataclasses import dataclass

from temporalio import activity

from activities.notifications.slack_line import send_line
from sluice.contracts.arrivals import ZoneNotice
from sluice.presentation.arrivals import notice_line
from sluice.settings import Settings


@dataclass(frozen=True)
class NotifyLandingZoneActivity:
    """The activity `notify_landing_zone`. Needs the Slack settings; without them nobody is notified."""

    settings: Settings

    @activity.defn(name="notify_landing_zone")
    def notify_landing_zone(self, input: ZoneNotice) -> None:
        """Send one line. Whatever fails here changes nothing about the landing zone."""
        send_line(self.settings, notice_line(input))
