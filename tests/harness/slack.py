"""A local server that implements Slack's API and records the messages that it gets."""

import json
from typing import Any
from urllib.parse import parse_qs

from sluice.contracts.run import Notification
from sluice.notifications.message import message_of_run
from sluice.notifications.slack import slack_blocks, slack_text
from tests.harness.http_server import Handler, LocalServer


def headline(notification: Notification) -> str:
    """Return the message about a run in one line."""
    return slack_text(message_of_run(notification, ""))


def blocks(notification: Notification, link: str) -> list[dict[str, Any]]:
    """Return the message about a run as Slack's blocks."""
    return slack_blocks(message_of_run(notification, link))


class Slack(LocalServer):
    """A server that accepts messages, or refuses them."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.status = 200
        self.answer: dict[str, Any] = {"ok": True}
        super().__init__(_Handler)

    @property
    def url(self) -> str:
        """The address of its API."""
        return f"{super().url}/api/"


class _Handler(Handler):
    server: Slack

    def do_POST(self) -> None:
        body = self.body().decode()
        form = self.headers["Content-Type"].startswith("application/x-www-form-urlencoded")
        fields = {key: values[0] for key, values in parse_qs(body).items()} if form else json.loads(body or "{}")
        self.server.messages.append({**fields, "path": self.path, "authorization": self.headers["Authorization"]})
        content = json.dumps(self.server.answer).encode()
        self.respond(self.server.status, content, {"Content-Type": "application/json"})
