"""Notify people on Slack of a registration that failed."""

from dataclasses import dataclass

from temporalio import activity

from activities.notifications.slack_line import send_line
from sluice.contracts.registration import FailedRegistration
from sluice.presentation.registrations import failure_line
from sluice.settings import Settings


@dataclass(frozen=True)
class NotifyRegistrationActivity:
    """The activity `notify_registration`. Needs the Slack settings; without them nobody is notified."""

    settings: Settings

    @activity.defn(name="notify_registration")
    def notify_registration(self, input: FailedRegistration) -> None:
        """Send one line. Whatever fails here changes nothing about the registration."""
        send_line(self.settings, failure_line(input))
