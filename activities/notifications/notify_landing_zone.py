"""Notify people on Slack of the events of a landing zone."""

from dataclasses import dataclass

from temporalio import activity

from activities.notifications.slack_line import send_line
from sluice.contracts.arrivals import ZoneNotice
from sluice.presentation.arrivals import notice_line
from sluice.settings import Settings


@dataclass(frozen=True)
class NotifyLandingZoneActivity:
    """The activity `notify_landing_zone`. It needs the Slack settings, and sends nothing without them."""

    settings: Settings

    @activity.defn(name="notify_landing_zone")
    def notify_landing_zone(self, input: ZoneNotice) -> None:
        """Send one line. A failure does not affect the landing zone."""
        send_line(self.settings, notice_line(input))
