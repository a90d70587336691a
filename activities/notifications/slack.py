"""Messages on Slack."""

from dataclasses import dataclass

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError

from sluice.errors import MessageRefused, ServiceUnavailable
from sluice.notifications.message import Message
from sluice.notifications.slack import slack_blocks, slack_text
from sluice.setting_groups import NotificationSettings

_RETRYABLE = ("ratelimited", "internal_error", "service_unavailable", "fatal_error", "request_timeout")


@dataclass(frozen=True)
class SlackNotifier:
    """The channel of `SLACK_TOKEN` and `SLACK_CHANNEL`."""

    settings: NotificationSettings

    def send(self, message: Message) -> None:
        """Post a message. The port says which errors are raised."""
        settings = self.settings
        client = WebClient(token=settings.slack_token, base_url=settings.slack_api_url, timeout=10)
        layout = {"blocks": blocks} if (blocks := slack_blocks(message)) else {"mrkdwn": False}
        try:
            client.chat_postMessage(channel=settings.slack_channel, text=slack_text(message), **layout)
        except SlackApiError as error:  # it contains the request, and with it the token
            why = str(error.response.get("error", "unknown"))[:100]
            is_retryable = why in _RETRYABLE or error.response.status_code >= 500
            raise (ServiceUnavailable if is_retryable else MessageRefused)(f"Slack refuses: {why}") from None
        except (SlackClientError, OSError) as error:
            raise ServiceUnavailable(f"Slack does not answer: {type(error).__name__}") from None
