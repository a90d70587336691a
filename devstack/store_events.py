"""Make the local object store notify the worker of new objects."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

EVENTS_ADDRESS = "SLUICE_EVENTS_ADDRESS"
"""Name of the variable with the address at which the worker listens."""
_FILTER = {"s3:ObjectCreated:*": True}


def event_variables(folder: Path, address: str) -> dict[str, str]:
    """Return the variables that make the store send events to an address; write the event filter to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = folder / "events.json"
    chosen.write_text(json.dumps(_FILTER))
    return {"VGW_EVENT_WEBHOOK_URL": f"http://{address}/", "VGW_EVENT_FILTER": str(chosen)}


@contextmanager
def answering(address: str) -> Iterator[None]:
    """Answer at an address if no worker listens there. The store only starts if its first event gets an answer."""
    host, _, port = address.rpartition(":")
    try:
        server = ThreadingHTTPServer((host, int(port)), _Handler)
    except OSError:  # the worker listens there
        yield
        return
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Accept an event, and ignore it."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""
