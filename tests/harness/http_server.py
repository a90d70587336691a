"""Real HTTP servers on this machine whose answers a test chooses."""

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class LocalServer(ThreadingHTTPServer):
    """A server in a thread of its own, until it is closed or its `with` block ends."""

    daemon_threads = True

    def __init__(self, handler: type["Handler"], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self) -> None:
        """Stop the server and free its port."""
        self.shutdown()
        self.server_close()

    def __exit__(self, *_: object) -> None:
        self.close()


class Handler(BaseHTTPRequestHandler):
    """A handler that prints no log."""

    server: Any

    def body(self) -> bytes:
        """Read the body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def respond(self, status: int, content: bytes = b"", headers: Mapping[str, str] = _NO_HEADERS) -> None:
        """Send an answer."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Print no log."""
