"""A local server that implements Slack's API and records the messages that it gets."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs

from sluice.contracts.run import Notification
from sluice.notifications.message import message_of_run
from sluice.notifications.slack import slack_blocks, slack_text


def headline(notification: Notification) -> str:
    """Return the message about a run in one line."""
    return slack_text(message_of_run(notification, ""))


def blocks(notification: Notification, link: str) -> list[dict[str, Any]]:
    """Return the message about a run as Slack's blocks."""
    return slack_blocks(message_of_run(notification, link))


class Slack(HTTPServer):
    """A server that accepts messages, or refuses them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.messages: list[dict[str, Any]] = []
        self.status = 200
        self.answer: dict[str, Any] = {"ok": True}

    @property
    def url(self) -> str:
        """The address of its API."""
        return f"http://127.0.0.1:{self.server_address[1]}/api/"


class _Handler(BaseHTTPRequestHandler):
    server: Slack

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = self.headers["Content-Type"].startswith("application/x-www-form-urlencoded")
        fields = {key: values[0] for key, values in parse_qs(body).items()} if form else json.loads(body or "{}")
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(self.server.answer).encode())
        self.server.messages.append({**fields, "path": self.path, "authorization": self.headers["Authorization"]})

    def log_message(self, *_: object) -> None:
        """Print no log."""


@contextmanager
def run_slack() -> Iterator[Slack]:
    """Run the server; stop it afterwards."""
    server = Slack()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
