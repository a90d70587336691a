"""The AWS Glue Data Catalog by moto's server on 127.0.0.1, with Glue's optimistic lock, which moto lacks."""

import io
import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.backends import get_backend

from tests.harness.moto_server import REGION, FaultyMotoServer, StartResponse

ACCOUNT = "123456789012"
_UPDATE = "AWSGlue.UpdateTable"
_CONFLICT = "ConcurrentModificationException", "Update table failed due to concurrent modifications."


class GlueServer(FaultyMotoServer):
    """The server.

    Moto gives every change of a table a version, and accepts every update. Glue refuses an update that names another
    version than the current one, and so does this server.
    """

    def __init__(self) -> None:
        self.lose_answer_of: Callable[[str, int], bool] = lambda table, number: False
        """Decides by the table and the number of its update, from 1, if an executed update is answered with 500."""
        self.before_update: Callable[[str], None] = lambda table: None
        """Called with the table before each update is examined."""
        self._updates: dict[str, int] = {}
        self._one_update = threading.Lock()
        super().__init__()

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
        super().reset()
        self.lose_answer_of, self.before_update = lambda table, number: False, lambda table: None
        self._updates.clear()

    def answer(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request. Glue refuses an update of another version than the current one."""
        if environ.get("HTTP_X_AMZ_TARGET") != _UPDATE:
            return super().answer(environ, start_response)
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        environ["wsgi.input"] = io.BytesIO(body)
        request = json.loads(body)
        name = request["TableInput"]["Name"]
        self.before_update(name)
        with self._one_update:
            if not self._is_present(request):
                self.refused += 1
                return self.refuse(start_response, *_CONFLICT)
            self._updates[name] = self._updates.get(name, 0) + 1
            lost = self.lose_answer_of(name, self._updates[name])
            done = list(super().answer(environ, _ignore if lost else start_response))
        if lost:
            return self.refuse(start_response, "InternalServiceException", "", "500 INTERNAL SERVER ERROR")
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
