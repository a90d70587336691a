"""Notify people on Slack of a failed registration."""

from dataclasses import dataclass

from temporalio import activity

from activities.notifications.slack_line import send_line
from sluice.contracts.registration import FailedRegistration
from sluice.presentation.registrations import failure_line
from sluice.settings import Settings


@dataclass(frozen=True)
class NotifyRegistrationActivity:
    """The activity `notify_registration`. It needs the Slack settings, and sends nothing without them."""

    settings: Settings

    @activity.defn(name="notify_registration")
    def notify_registration(self, input: FailedRegistration) -> None:
        """Send one line. A failure does not affect the registration."""
        send_line(self.settings, failure_line(input))
