"""AWS services by moto's server on 127.0.0.1, in a thread."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import requests
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.server import ThreadedMotoServer
from werkzeug.serving import make_server

REGION = "eu-central-1"
StartResponse = Callable[..., Any]


@contextmanager
def moto_server() -> Iterator[str]:
    """Run the server; yield its address."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


class _SilentHandler(MotoRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print no line per request."""


class FaultyMotoServer:
    """A server that can refuse requests. Its data are moto's, which exist once per process."""

    refusal_status = "400 BAD REQUEST"

    def __init__(self) -> None:
        self.refuse_all_with = ""
        """An error to answer every request with, or empty."""
        self.refused = 0
        """Number of refused requests."""
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True, request_handler=_SilentHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def uri(self) -> str:
        """The address for clients."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def reset(self) -> None:
        """Delete all data, and reset the faults of later requests."""
        requests.post(f"{self.uri}/moto-api/reset", timeout=10).raise_for_status()
        self.refused, self.refuse_all_with = 0, ""

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        served: Iterable[bytes] = self._moto(environ, start_response)
        return served

    def refuse(self, start_response: StartResponse, kind: str, message: str, status: str = "") -> Iterable[bytes]:
        """Answer a request with an error."""
        start_response(status or self.refusal_status, [("Content-Type", "application/x-amz-json-1.1")])
        return [json.dumps({"__type": kind, "message": message}).encode()]

    def _serve(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if self.refuse_all_with and "/moto-api/" not in environ["PATH_INFO"]:
            self.refused += 1
            return self.refuse(start_response, self.refuse_all_with, "as the test says")
        return self.answer(environ, start_response)
