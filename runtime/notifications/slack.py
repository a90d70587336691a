"""Requests to Slack and from Slack."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.signature import SignatureVerifier

from sluice.errors import MessageRefused, ServiceUnavailable
from sluice.setting_groups import NotificationSettings

_RETRYABLE = ("ratelimited", "internal_error", "service_unavailable", "fatal_error", "request_timeout")


@dataclass(frozen=True)
class SlackApi:
    """Slack's API, with the token of the settings."""

    settings: NotificationSettings

    def call(self, method: str, **fields: Any) -> None:
        """Call a method, such as `chat.postMessage`.

        Raises:
            MessageRefused: Slack refuses it permanently.
            ServiceUnavailable: Slack does not answer, or may accept it later.
        """
        settings = self.settings
        client = WebClient(token=settings.slack_token, base_url=settings.slack_api_url, timeout=10)
        try:
            client.api_call(method, json=fields)
        except SlackApiError as error:  # it contains the request, and with it the token
            why = str(error.response.get("error", "unknown"))[:100]
            is_retryable = why in _RETRYABLE or error.response.status_code >= 500
            raise (ServiceUnavailable if is_retryable else MessageRefused)(f"Slack refuses: {why}") from None
        except (SlackClientError, OSError) as error:
            raise ServiceUnavailable(f"Slack does not answer: {type(error).__name__}") from None


def is_signed_by_slack(secret: str, body: bytes, timestamps: list[str], signatures: list[str]) -> bool:
    """Return True if Slack signed a request in the last five minutes.

    Args:
        timestamps: values of `X-Slack-Request-Timestamp`. Several are refused, and several signatures, too.
    """
    if not secret.strip() or len(timestamps) != 1 or len(signatures) != 1:
        return False
    with suppress(ValueError, TypeError):  # the time is not a number, or a header or the body is no text
        return SignatureVerifier(secret).is_valid(body, timestamps[0], signatures[0])
    return False
