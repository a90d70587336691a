"""Send one line to the Slack channel of the settings."""

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from temporalio.exceptions import ApplicationError

from sluice.settings import Settings


def send_line(settings: Settings, line: str) -> None:
    """Send one line of plain text, or nothing if Slack is not set up.

    Raises:
        ApplicationError: Slack refuses the message.
    """
    if not (settings.slack_token and settings.slack_channel):
        return
    client = WebClient(token=settings.slack_token, base_url=settings.slack_api_url, timeout=10)
    try:
        client.chat_postMessage(channel=settings.slack_channel, text=line, mrkdwn=False)
    except SlackApiError as error:
        why = str(error.response.get("error", "unknown"))
        raise ApplicationError(f"Slack refuses: {why}", type="SlackRefused") from None  # the error contains the token
