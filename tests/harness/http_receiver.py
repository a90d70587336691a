"""A real HTTP server that records requests and answers with the status that the test chooses."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class ReceivedRequest:
    """One request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class HttpReceiver(ThreadingHTTPServer):
    """A server on this machine that records requests. `answer` returns the status of each by its number, from 1."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.requests: list[ReceivedRequest] = []
        self.answer: Callable[[int], int] = lambda number: 204
        self.more_headers: dict[str, str] = {}
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self) -> None:
        """Stop the server and free its port."""
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: HttpReceiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append(ReceivedRequest(self.command, self.path, headers, body))
        self.send_response(self.server.answer(len(self.server.requests)))
        for name, value in self.server.more_headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        """Print no log."""
