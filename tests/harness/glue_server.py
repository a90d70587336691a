"""The AWS Glue Data Catalog by moto's server on 127.0.0.1, with Glue's optimistic lock, which moto lacks."""

import io
import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

import requests
from moto.backends import get_backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

ACCOUNT, REGION = "123456789012", "eu-central-1"
_UPDATE = "AWSGlue.UpdateTable"
_CONFLICT = {
    "__type": "ConcurrentModificationException",
    "message": "Update table failed due to concurrent modifications.",
}
_JSON = [("Content-Type", "application/x-amz-json-1.1")]
Answer = Callable[..., Any]


class _SilentHandler(MotoRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print no line per request."""


class GlueServer:
    """The server, in a thread. Its data are moto's, which exist once per process; `reset` deletes them.

    Moto gives every change of a table a version, and accepts every update. Glue refuses an update that names another
    version than the current one, and so does this server.
    """

    def __init__(self) -> None:
        self.lose_answer_of: Callable[[str, int], bool] = lambda table, number: False
        """Decides by the table and the number of its update, from 1, if an executed update is answered with 500."""
        self.before_update: Callable[[str], None] = lambda table: None
        """Called with the table before each update is examined."""
        self.refuse_all_with = ""
        """An error to answer every request with, or empty."""
        self.refused = 0
        """Number of updates that named another version than the current one."""
        self._updates: dict[str, int] = {}
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._one_update = threading.Lock()
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True, request_handler=_SilentHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def uri(self) -> str:
        """The address for clients."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def properties(self) -> dict[str, str]:
        """The properties by which PyIceberg opens this catalog."""
        return {
            "glue.endpoint": self.uri,
            "glue.region": REGION,
            "glue.access-key-id": "of-the-test",
            "glue.secret-access-key": "secret-of-the-test",
        }

    def reset(self) -> None:
        """Delete all tables, and reset the faults of later requests."""
        requests.post(f"{self.uri}/moto-api/reset", timeout=10).raise_for_status()
        self.lose_answer_of, self.before_update = lambda table, number: False, lambda table: None
        self.refused, self.refuse_all_with = 0, ""
        self._updates.clear()

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, environ: dict[str, Any], start_response: Answer) -> Iterable[bytes]:
        if self.refuse_all_with:
            start_response("400 BAD REQUEST", _JSON)
            return [json.dumps({"__type": self.refuse_all_with, "message": "as the test says"}).encode()]
        if environ.get("HTTP_X_AMZ_TARGET") != _UPDATE:
            served: Iterable[bytes] = self._moto(environ, start_response)
            return served
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        environ["wsgi.input"] = io.BytesIO(body)
        request = json.loads(body)
        name = request["TableInput"]["Name"]
        self.before_update(name)
        with self._one_update:
            if not self._is_present(request):
                self.refused += 1
                start_response("400 BAD REQUEST", _JSON)
                return [json.dumps(_CONFLICT).encode()]
            self._updates[name] = self._updates.get(name, 0) + 1
            lost = self.lose_answer_of(name, self._updates[name])
            done = list(self._moto(environ, _ignore if lost else start_response))
        if lost:
            start_response("500 INTERNAL SERVER ERROR", _JSON)
            return [b'{"__type": "InternalServiceException"}']
        return done

    def _is_present(self, request: dict[str, Any]) -> bool:
        """Return True if an update names no version, or the current version of its table."""
        expected = request.get("VersionId")
        if expected is None:
            return True
        glue = get_backend("glue")[ACCOUNT][REGION]
        table = glue.get_table(request["DatabaseName"], request["TableInput"]["Name"])
        return bool(table.as_dict()["VersionId"] == expected)


def _ignore(*_: Any) -> None:
    """Discard the status of a lost answer."""
