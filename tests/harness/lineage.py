"""A receiver of OpenLineage events, and their validation by the specification's schemas."""

import json
import threading
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

from devstack.stack import ROOT
from tests.harness.http_server import Handler, LocalServer

_FOLDER = ROOT / "tests" / "schemas" / "openlineage"
_SCHEMAS: dict[str, Any] = {
    schema["$id"]: schema for schema in (json.loads(file.read_text()) for file in _FOLDER.glob("*.json"))
}
_REGISTRY: Registry[Any] = Registry().with_resources(
    (uri, Resource.from_contents(schema)) for uri, schema in _SCHEMAS.items()
)
_FORMATS = FormatChecker()


@_FORMATS.checks("date-time", raises=ValueError)
def _is_date_time(value: object) -> bool:
    return datetime.fromisoformat(str(value).replace("Z", "+00:00")).tzinfo is not None


@_FORMATS.checks("uri", raises=ValueError)
def _is_uri(value: object) -> bool:
    return bool(urlsplit(str(value)).scheme)


def problems(event: Any) -> list[str]:
    """Return each violation of the specification, in the event itself and in each facet by the schema that it names."""
    listed = _invalid(event, str(event.get("schemaURL", "")))
    run, job = event.get("run", {}), event.get("job", {})
    datasets = [*event.get("inputs", []), *event.get("outputs", [])]
    holders = [run, job, *datasets]
    facets = [each.get("facets", {}) for each in holders]
    facets += [each.get(key, {}) for each in datasets for key in ("inputFacets", "outputFacets")]
    for name, facet in (pair for each in facets for pair in each.items()):
        # Validate by the whole schema, which states the key of a facet of this form.
        listed += _invalid({name: facet}, str(facet.get("_schemaURL", "")).split("#")[0], needs=name)
    return listed


def _invalid(value: Any, uri: str, needs: str = "") -> list[str]:
    schema = _SCHEMAS.get(uri.split("#", maxsplit=1)[0])
    if schema is None:
        return [f"there is no schema {uri!r}"]
    if needs and needs not in schema["properties"]:
        return [f"{uri} has no facet {needs!r}"]
    validator = Draft202012Validator({"$ref": uri}, registry=_REGISTRY, format_checker=_FORMATS)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


class LineageReceiver(LocalServer):
    """A server on 127.0.0.1 that accepts events, refuses them, or never answers."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        """The bodies of all requests, including refused ones."""
        self.keys: list[str | None] = []
        self.status = 201
        self.hangs = False
        self.closing = threading.Event()
        super().__init__(_Handler)

    def close(self) -> None:
        """Stop the server, and end the requests that it never answers."""
        self.closing.set()
        super().close()

    @property
    def events(self) -> list[dict[str, Any]]:
        """The received events, in the order of arrival."""
        return [json.loads(body) for body in self.bodies]

    def types(self, run_id: str) -> list[str]:
        """Return the types of the events of a run, in the order of arrival."""
        return [each["eventType"] for each in self.events if each["run"]["runId"] == run_id]


class _Handler(Handler):
    server: LineageReceiver

    def do_POST(self) -> None:
        self.server.keys.append(self.headers["Authorization"])
        self.server.bodies.append(self.body())
        self._answer()

    def do_GET(self) -> None:
        self.server.keys.append(self.headers["Authorization"])
        self._answer()

    def _answer(self) -> None:
        if self.server.hangs:
            self.server.closing.wait()
            return
        self.respond(self.server.status)
