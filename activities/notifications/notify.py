"""Notify people on Slack."""

from dataclasses import dataclass

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from temporalio import activity
from temporalio.exceptions import ApplicationError

from sluice.contracts.run import Notification
from sluice.presentation.slack import blocks, headline
from sluice.settings import Settings

_RETRYABLE = ("ratelimited", "internal_error", "service_unavailable", "fatal_error", "request_timeout")


@dataclass(frozen=True)
class NotifyActivity:
    """The activities `can_notify` and `notify`. They need the Slack settings, and send nothing without them."""

    settings: Settings
    namespace: str

    @activity.defn(name="can_notify")
    def can_notify(self, notification: Notification) -> bool:
        """Return True if Slack is set up."""
        return bool(self.settings.slack_token and self.settings.slack_channel)

    @activity.defn(name="notify")
    def notify(self, notification: Notification) -> None:
        """Send one message. A failure does not affect the run."""
        settings = self.settings
        if not self.can_notify(notification):
            return
        client = WebClient(token=settings.slack_token, base_url=settings.slack_api_url, timeout=10)
        result = notification.result
        link = f"{settings.temporal_ui}/namespaces/{self.namespace}/workflows/{result.workflow_id}/{result.run_id}"
        try:
            client.chat_postMessage(
                channel=settings.slack_channel, text=headline(notification), blocks=blocks(notification, link)
            )
        except SlackApiError as error:
            why = str(error.response.get("error", "unknown"))
            raise ApplicationError(
                f"Slack refuses: {why}", type="SlackRefused", non_retryable=why not in _RETRYABLE
            ) from None  # the error contains the request, and with it the token
