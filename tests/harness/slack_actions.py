"""Requests that Slack sends when a person uses a button of a message, signed as Slack signs them."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from slack_sdk.signature import SignatureVerifier

from sluice.notifications.slack_buttons import APPROVE, REJECT
from tests.harness.asgi import Answer, Browser
from web.approval.slack import PATH

SIGNING_SECRET = "a-signing-secret-of-a-test"
CHANNEL, THREAD = "C0LOADS", "1764300000.000100"


def button(message: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """Return a button of a posted message; None if it has no such button."""
    blocks: Sequence[dict[str, Any]] = message["blocks"]
    elements = [each for block in blocks if block["type"] == "actions" for each in block["elements"]]
    return next((each for each in elements if each["action_id"] == name), None)


def pressed(message: Mapping[str, Any], name: str, member: str = "U0ANA") -> dict[str, Any]:
    """Return the payload that Slack sends when a member presses a button of a posted message."""
    pressed_button = button(message, name)
    assert pressed_button, message
    return {
        "type": "block_actions",
        "user": {"id": member, "username": "anybody", "name": "ben"},
        "trigger_id": f"trigger of {member}",
        "container": {"type": "message", "message_ts": THREAD, "channel_id": CHANNEL, "is_ephemeral": False},
        "channel": {"id": CHANNEL, "name": "loads"},
        "message": {"ts": THREAD, "blocks": message["blocks"]},
        "response_url": "http://127.0.0.1:9/never-called",
        "actions": [{"action_id": pressed_button["action_id"], "type": "button", "value": pressed_button["value"]}],
    }


def approved(message: Mapping[str, Any], member: str = "U0ANA") -> dict[str, Any]:
    """Return the payload of a member who presses the button that approves."""
    return pressed(message, APPROVE, member)


def rejected(message: Mapping[str, Any], member: str = "U0ANA") -> dict[str, Any]:
    """Return the payload of a member who presses the button that asks for the reason of a rejection."""
    return pressed(message, REJECT, member)


def submitted(view: Mapping[str, Any], reason: str | None, member: str = "U0ANA") -> dict[str, Any]:
    """Return the payload that Slack sends when a member submits an opened form."""
    state = {"values": {"reason": {"reason": {"type": "plain_text_input", "value": reason}}}}
    kept = {name: view[name] for name in ("callback_id", "private_metadata")}
    return {"type": "view_submission", "user": {"id": member}, "view": {**kept, "state": state}}


def signed(body: bytes, secret: str = SIGNING_SECRET, age: float = 0) -> dict[str, str]:
    """Return the headers of a request that Slack signed some seconds ago."""
    at = str(int(time.time() - age))
    signature = SignatureVerifier(secret).generate_signature(timestamp=at, body=body)
    assert signature
    return {"x_slack_request_timestamp": at, "x_slack_signature": signature}


def body_of(payload: Mapping[str, Any]) -> bytes:
    """Return a payload as Slack sends it."""
    return urlencode({"payload": json.dumps(payload)}).encode()


async def send(page: Browser, payload: Mapping[str, Any], **headers: str) -> Answer:
    """Send a request as Slack does: without a cookie, and from another host. Its background work ends first."""
    body = body_of(payload)
    given = {"content-type": "application/x-www-form-urlencoded", **signed(body), "host": "hooks.example", **headers}
    page.cookies.clear()
    return await page.send("POST", PATH, body, given)
