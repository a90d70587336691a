"""Client for the part of Nessie's REST API v2 that PyNessie lacks: merges, properties, history, differences.

Source: the OpenAPI description inside the Nessie server, `META-INF/openapi/openapi.json`. The server ignores unknown
fields, so a misspelt one goes unnoticed. Names such as `isReturnConflictAsResult` therefore occur nowhere else.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import requests

from lakehouse.nessie.errors import NessieRequestRefused, identity_refused_message
from sluice.errors import BadEnvironment, ServiceUnavailable

_TIMEOUT = (5.0, 60.0)
"""Time-outs in seconds: to connect, and to wait for an answer."""
_TABLE = "ICEBERG_TABLE"
_PAGE = 250
_REMEMBERED = 1000
"""Maximum number of cached contents of keys at a hash."""


class NessieRest:
    """Thin client. Each method sends one request, or reads one listing page by page."""

    def __init__(self, uri: str, token: str = "") -> None:
        self._uri = uri
        self._contents: dict[tuple[tuple[str, ...], str], dict[str, Any]] = {}
        self._session = requests.Session()
        if token:
            self._session.auth = _Bearer(token)

    def config(self) -> dict[str, Any]:
        """Return the server's description of itself and its repository."""
        return self._send("GET", "config")

    def content(self, branch: str, elements: list[str], at: str = "") -> dict[str, Any] | None:
        """Return the content of a key at a hash of a branch, by default its head, or None.

        Content at a hash never changes, so it is cached.
        """
        known = (tuple(elements), at)
        if at and known in self._contents:
            return self._contents[known]
        try:
            content = dict(self._send("GET", f"trees/{_ref(branch, at)}/contents/{_key(elements)}")["content"])
        except NessieRequestRefused as error:
            if error.status == 404:
                return None
            raise
        if at:
            if len(self._contents) >= _REMEMBERED:
                self._contents.clear()
            self._contents[known] = content
        return content

    def tables(self, branch: str, at: str) -> Iterator[str]:
        """Yield the names of the tables of a branch at a hash."""
        for page in self._pages(f"trees/{_ref(branch, at)}/entries", {}):
            yield from (".".join(each["name"]["elements"]) for each in page["entries"] if each["type"] == _TABLE)

    def create_orphan(self, branch: str, main: str, root: str) -> None:
        """Create a branch at the root of all history, if it does not exist."""
        source = {"type": "BRANCH", "name": main, "hash": root}
        try:
            self._send("POST", "trees", source, {"name": branch, "type": "BRANCH"})
        except NessieRequestRefused as error:
            if error.status != 409:
                raise

    def commit(
        self, branch: str, head: str, message: str, operations: list[dict[str, Any]], properties: Mapping[str, str]
    ) -> str:
        """Commit operations on a branch that is expected at `head`; return the new head."""
        meta = {
            "message": message,
            "authors": ["sluice"],
            "allProperties": {key: [properties[key]] for key in properties},
        }
        body = {"commitMeta": meta, "operations": operations}
        answer = self._send("POST", f"trees/{_ref(branch, head)}/history/commit", body)
        return str(answer["targetBranch"]["hash"])

    def merge(
        self,
        target: str,
        target_head: str,
        source: str,
        head: str,
        meta: dict[str, Any],
        expected: Mapping[tuple[str, ...], dict[str, Any]],
        dry_run: bool,
    ) -> dict[str, Any]:
        """Merge exactly the hash `head` of the branch `source` into `target`, whose head was read as `target_head`.

        A conflict is an answer here, not an error: `wasSuccessful` is false, and `details` names the keys.

        Args:
            expected: by key, the content required on `target`. This is a compare-and-swap; `target_head` is not.
            dry_run: True to answer what would happen, without a merge.
        """
        body = {
            "fromRefName": source,
            "fromHash": head,
            "isReturnConflictAsResult": True,
            "isDryRun": dry_run,
            "keyMergeModes": [
                {"key": {"elements": list(key)}, "mergeBehavior": "NORMAL", "expectedTargetContent": content}
                for key, content in expected.items()
            ],
            "commitMeta": meta,
        }
        return self._send("POST", f"trees/{_ref(target, target_head)}/history/merge", body)

    def history(self, branch: str, **parameters: str) -> Iterator[dict[str, Any]]:
        """Yield the commits of a branch as `commitMeta`, newest first."""
        for page in self._pages(f"trees/{_ref(branch)}/history", parameters):
            for entry in page["logEntries"]:
                yield entry["commitMeta"]

    def references(self, filter: str = "") -> Iterator[dict[str, Any]]:
        """Yield the references that match a CEL filter, each with its head commit's `commitMeta`."""
        parameters = {"fetch": "ALL", **({"filter": filter} if filter else {})}
        for page in self._pages("trees", parameters):
            yield from page["references"]

    def differences(self, base: str, branch: str, head: str) -> Iterator[dict[str, Any]]:
        """Yield the differences between the hash `base` and a branch at `head`, key by key."""
        for page in self._pages(f"trees/{_ref('', base)}/diff/{_ref(branch, head)}", {}):
            yield from page["diffs"]

    def _pages(self, path: str, parameters: dict[str, str]) -> Iterator[dict[str, Any]]:
        parameters = {"max-records": str(_PAGE), **parameters}
        while True:
            page = self._send("GET", path, parameters=parameters)
            yield page
            if not page.get("hasMore"):
                return
            parameters["page-token"] = page["token"]

    def _send(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        parameters: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        answer = self._session.request(method, f"{self._uri}/{path}", json=body, params=parameters, timeout=_TIMEOUT)
        if answer.status_code >= 500 or answer.status_code == 429:
            raise ServiceUnavailable(f"Nessie at {self._uri} answers {answer.status_code}")
        if answer.status_code in (401, 403):
            raise BadEnvironment(identity_refused_message(self._uri, answer.status_code, _message(answer)))
        if not answer.ok:
            raise NessieRequestRefused(answer.status_code, _message(answer))
        decoded: dict[str, Any] = answer.json()
        return decoded


class _Bearer(requests.auth.AuthBase):
    """Authentication that adds the token to each request. Credentials of a .netrc would replace a plain header."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _message(answer: requests.Response) -> str:
    try:
        return str(answer.json().get("message", answer.text))
    except ValueError:
        return answer.text[:200]


def _key(elements: list[str]) -> str:
    """Encode a content key as a path. Dots separate elements; a dot inside one becomes Nessie's group separator."""
    return quote(".".join(each.replace(".", "\x1d") for each in elements), safe=".")


def _ref(name: str, at: str = "") -> str:
    return quote(name, safe="") + (f"@{at}" if at else "")
