"""Notify people on Slack of a registration that failed."""

from dataclasses import dataclass

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from temporalio import activity
from temporalio.exceptions import ApplicationError

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
        settings = self.settings
        if not (settings.slack_token and settings.slack_channel):
            return
        client = WebClient(token=settings.slack_token, base_url=settings.slack_api_url, timeout=10)
        try:
            client.chat_postMessage(channel=settings.slack_channel, text=failure_line(input), mrkdwn=False)
        except SlackApiError as error:
            why = str(error.response.get("error", "unknown"))
            raise ApplicationError(f"Slack refuses: {why}", type="SlackRefused") from None  # it holds the token
