"""Any request to the API gets an answer that its description states, and changes nothing without token and role."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schemathesis import GenerationMode
from schemathesis.specs.openapi import schemas as _schemas  # noqa: F401  # see below
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.types import ASGIApp, Receive, Scope, Send
from typer.testing import CliRunner

from cli.app import app
from tests.harness.api_client import ENDED, HEAD, WAITS, ApiClient
from tests.harness.asgi import HOST, Answer, Browser
from tests.harness.lake_client import reach
from tests.harness.page import SECRET, behind_proxy, browser
from tests.harness.waiting import in_time, until

# Schemathesis imports some modules late, and pytest parses each of them. Garbage of an earlier test can then log a
# traceback, which Python 3.11 parses too: inside of the other parse, that is a SystemError. So `_schemas` comes first.
DECISION = f"/api/runs/{WAITS}/decision"
APPROVAL = {"decision": "approve", "report": HEAD, "by": "ana"}
BEARER = {"authorization": f"Bearer {SECRET}"}
OPERATIONS = [
    ("GET", "/api/runs"), ("GET", "/api/runs/{name}"), ("GET", "/api/runs/{name}/diff"),
    ("POST", "/api/runs/{name}/decision"), ("POST", "/api/runs/{name}/statement"), ("POST", "/api/query"),
    ("POST", "/api/pipelines/{name}/runs"), ("GET", "/api/starts/{id}"),
]  # fmt: skip
HOSTILE = [
    "\x00", "\x1f", "'", '"', "\\", '" OR "" = "', "..", "../..", "../../etc/passwd", "%2f", "%2e%2e%2f", "%00", "%",
    "a/b", "-", "--", " ", "\u202e", "é", "\U0001f600", "9" * 400, "nan", "{{ 7 * 7 }}", "<script>", "x" * 100_000,
]  # fmt: skip
"""Values of parameters that nobody means."""


def at_its_address(app: ASGIApp) -> ASGIApp:
    """Return an application that gets each request at the address of the page."""

    async def with_host(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = [each for each in scope["headers"] if each[0] != b"host"]
            scope = {**scope, "headers": [*headers, (b"host", HOST.encode())]}
        await app(scope, receive, send)

    return with_host


@pytest.fixture(scope="module")
def described() -> schemathesis.BaseSchema:
    """The API, as a program finds it."""
    page = browser(ApiClient(), signed_in=False).app
    config = schemathesis.Config.from_dict({"generation": {"with-security-parameters": False}})
    return schemathesis.openapi.from_asgi("/api/openapi.json", at_its_address(page), config=config, headers=BEARER)


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_any_request_gets_an_answer_that_is_described(
    described: schemathesis.BaseSchema, method: str, path: str, mode: GenerationMode
) -> None:
    """Schemathesis makes right and wrong requests, and checks statuses, types and bodies of the answers.

    It also repeats requests without the token and with a wrong one.
    """

    @settings(max_examples=40, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=described[path][method].as_strategy(generation_mode=mode))
    def send(case: schemathesis.Case[Any]) -> None:
        token = {"Authorization": f"Bearer {SECRET}"}
        case.call_and_validate(headers=token, excluded_checks=[positive_data_acceptance])  # a text may name no table

    send()


class Program:
    """A program with the token, which compares each answer with the description of the API."""

    def __init__(self, opened: Browser, description: dict[str, Any]) -> None:
        self._opened, self._description = opened, description

    async def send(self, method: str, path: str, address: str, body: bytes = b"") -> Answer:
        answer = await self._opened.send(method, address, body, {"content-type": "application/json", **BEARER})
        self.check(method, path, answer)
        return answer

    def check(self, method: str, path: str, answer: Answer) -> None:
        stated = self._description["paths"][path][method.lower()]["responses"]
        assert str(answer.status) in stated and answer.status < 500, (answer.status, answer.text[:300])
        schema = stated[str(answer.status)]["content"]["application/json"]["schema"]
        whole = {**schema, "components": self._description["components"]}
        Draft202012Validator(whole).validate(json.loads(answer.body))
        assert len(answer.body) < 20_000, "an answer does not repeat a long request"


@pytest.fixture
async def program() -> Program:
    opened = browser(ApiClient(), signed_in=False)
    return Program(opened, (await opened.get("/api/openapi.json", **BEARER)).json)


async def test_the_description_has_each_operation_with_its_errors_and_the_token(program: Program) -> None:
    paths = program._description["paths"]
    assert {(method.upper(), path) for path, each in paths.items() for method in each} == {*OPERATIONS}
    for each in (operation for path in paths.values() for operation in path.values()):
        stated = set(each["responses"])
        assert {"400", "401", "403", "503"} <= stated and stated & {"200", "202"} and each["security"]
        assert "422" not in each["responses"], "a wrong request gets 400"
    assert {"404", "409"} <= set(paths["/api/runs/{name}/decision"]["post"]["responses"])
    assert "HTTPValidationError" not in program._description["components"]["schemas"]


def _parameters() -> Iterator[tuple[str, str, str]]:
    """Yield method, path and address of each operation with `@` in place of one parameter."""
    queries = {
        "/api/runs/{name}": ("wait",),
        "/api/starts/{id}": ("wait",),
        "/api/runs": ("pipeline", "table", "state", "limit", "unknown"),
        "/api/runs/{name}/diff": ("table", "key", "rows"),
    }
    for method, path in OPERATIONS:
        address = path.format(name=WAITS, id="a-start")
        yield from ((method, path, f"{address}?{name}=@") for name in queries.get(path, ()))
        if "{" in path:
            yield method, path, path.format(name="@", id="@")


@pytest.mark.parametrize(("method", "path", "address"), list(_parameters()))
async def test_hostile_parameters(program: Program, method: str, path: str, address: str) -> None:
    body = json.dumps(APPROVAL).encode() if method == "POST" else b""
    for value in HOSTILE:
        sent = address.replace("@", quote(value, safe=""))
        if "/" in value and "@" not in address.partition("?")[2]:
            answer = await program._opened.send(method, sent, body, BEARER)
            assert answer.status == 404 and answer.json == {"error": "There is no page at this address."}
            continue
        await program.send(method, path, sent, body)
    for value in ("%ED%A0%80", "%FF", "%C0%AF", "%F5%80%80%80"):  # no UTF-8
        await program.send(method, path, address.replace("@", value), body)


WRONG_BODIES = [
    b"", b"\x00", b"\xff\xfe", b"{", b"null", b"[]", b"5", b'"a"', b"[" * 100_000, b'{"a":' * 50_000, b"9" * 5_000,
    b'{"decision": "approve"}', b'{"decision": "approve", "report": ' + b"9" * 5_000 + b"}", b"NaN",
]  # fmt: skip
WRONG: list[Any] = [None, 5, [], {}, "\ud800", "x" * 1_000_000]
WRONG_FIELDS: list[dict[str, Any]] = [
    *({name: value} for name in APPROVAL for value in WRONG),
    *({name: "x" * 1_000_000} for name in ("reason", "until", "unknown", "x" * 1_000_000)),
    {"waive": None}, {"waive": "a"}, {"waive": [5]}, {"waive": [["a"]]}, {"waive": ["\ud800"]},
    {"waive": ["x" * 1_000_000]}, {"waive": ["a"] * 10_000},
    {"\ud800": 1}, {"approve": True}, {"decision": "APPROVE"}, {"decision": ""}, {"decision": "approve\x00"},
]  # fmt: skip


async def test_wrong_bodies(program: Program) -> None:
    for body in (*WRONG_BODIES, *(json.dumps({**APPROVAL, **each}).encode() for each in WRONG_FIELDS)):
        answer = await program.send("POST", OPERATIONS[3][1], DECISION, body)
        assert answer.status == 400, (body[:50], answer.text[:300])
    status = await program.send("GET", OPERATIONS[1][1], f"/api/runs/{WAITS}")
    assert not status.json["approval"]["decisions"]


DECIDING = ApiClient()
DECIDING_PAGE = browser(DECIDING, signed_in=False)


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(
    st.dictionaries(
        st.sampled_from(["by", "reason", "report", "until", "waive"]),
        st.text(st.characters(), max_size=600) | st.lists(st.text(st.characters(), max_size=20), max_size=3),
    )
)
async def test_any_text_in_a_decision(fields: dict[str, Any]) -> None:
    """A text with half a character, a control character or none is decided about, or refused."""
    DECIDING.decisions.clear()
    answer = await DECIDING_PAGE.post_json(DECISION, {**APPROVAL, **fields}, **BEARER)
    assert answer.status in (200, 400, 409) and bool(DECIDING.decisions) == (answer.status == 200), answer.text
    assert answer.status == 200 or set(answer.json) == {"error"}


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {SECRET}"}])
async def test_without_the_token_nothing_is_read_or_decided(program: Program, headers: dict[str, str]) -> None:
    client = ApiClient()
    opened = browser(client, signed_in=False)
    for method, path in OPERATIONS:
        body = json.dumps(APPROVAL).encode()
        answer = await opened.send(
            method, path.format(name=WAITS, id="a-start"), body, {"content-type": "application/json", **headers}
        )
        program.check(method, path, answer)
        assert answer.status == 401 and answer.headers["www-authenticate"] == "Bearer"
    assert not client.decisions


async def test_only_an_approver_decides_and_once(program: Program) -> None:
    client = ApiClient()
    for person, status in (("vera", 403), ("nobody", 403), ("ana", 200), ("ana", 409), ("otto", 200)):
        answer = await behind_proxy(client, person).post_json(DECISION, {**APPROVAL, "by": ""})
        program.check("POST", OPERATIONS[3][1], answer)
        assert answer.status == status, answer.text
    assert [each.by for each in client.decisions] == ["ana", "otto"]
    other = await behind_proxy(client, "ana").post_json(DECISION, {**APPROVAL, "by": "otto"})
    assert other.status == 403 and len(client.decisions) == 2


async def test_a_request_of_another_site_gets_an_answer_for_programs(program: Program) -> None:
    opened = browser(ApiClient(), signed_in=False)
    answer = await opened.post_json(DECISION, APPROVAL, origin="http://evil.example", **BEARER)
    program.check("POST", OPERATIONS[3][1], answer)
    assert answer.status == 403
    other_host = await opened.get("/api/runs", host="evil.example", **BEARER)
    assert other_host.status == 421 and "answers at" in other_host.json["error"]


async def test_another_method_names_the_right_one() -> None:
    opened = browser(ApiClient(), signed_in=False)
    for method, address, allowed in (
        ("GET", DECISION, "POST"),
        ("DELETE", "/api/runs", "GET"),
        ("PUT", DECISION, "POST"),
    ):
        answer = await opened.send(method, address, headers=BEARER)
        assert (answer.status, answer.headers["allow"], set(answer.json)) == (405, allowed, {"error"})


async def test_decisions_of_programs(program: Program) -> None:
    path = OPERATIONS[3][1]
    ended = await program.send("POST", path, f"/api/runs/{ENDED}/decision", json.dumps(APPROVAL).encode())
    assert (ended.status, ended.json) == (409, {"error": "the run has ended"})
    unknown = await program.send("POST", path, "/api/runs/nobody/decision", json.dumps(APPROVAL).encode())
    assert unknown.status == 404
    longest = {**APPROVAL, "reason": "x" * 500}
    assert (await program.send("POST", path, DECISION, json.dumps(longest).encode())).status == 200


@pytest.mark.parametrize("wait", ["-1", "61", "1.5", "a", "", "9" * 400])
async def test_a_wait_has_limits(program: Program, wait: str) -> None:
    answer = await program.send("GET", OPERATIONS[1][1], f"/api/runs/{WAITS}?wait={wait}")
    assert answer.status == 400 and answer.json["error"].startswith("wait: "), answer.text


async def test_a_wait_for_an_end() -> None:
    """The answer comes at the end of the run, or with the present status when the time is over."""
    client = ApiClient()
    opened = browser(client)
    client.ends.clear()
    begun = time.monotonic()
    over = await opened.get(f"/api/runs/{WAITS}?wait=1")
    assert (over.status, over.json["stage"]) == (200, "waiting for approval") and time.monotonic() - begun >= 1
    waiting = asyncio.create_task(opened.get(f"/api/runs/{WAITS}?wait=60"))
    await until(lambda: client.waiting == 1)
    client.ends.set()
    assert (await in_time(waiting)).status == 200 and not client.waiting
    client.ends.clear()
    ended = await in_time(opened.get(f"/api/runs/{ENDED}?wait=60"))
    assert ended.json["outcome"] == "published", "a run that has ended is answered at once"


async def test_a_client_that_leaves_ends_its_wait() -> None:
    client, leaves = ApiClient(), asyncio.Event()
    opened, before = browser(client), asyncio.all_tasks()
    client.ends.clear()
    waiting = asyncio.create_task(opened.send("GET", f"/api/runs/{WAITS}?wait=60", leaves=leaves))
    await until(lambda: client.waiting == 1)
    leaves.set()
    await in_time(waiting)
    assert not client.waiting and asyncio.all_tasks() == before


async def test_a_server_that_stops_answers_those_who_wait() -> None:
    client = ApiClient()
    client.ends.clear()
    waiting = asyncio.create_task(browser(client).get(f"/api/runs/{WAITS}?wait=60"))
    await until(lambda: client.waiting == 1)
    waiting.cancel()
    answer = await in_time(waiting)
    assert (answer.status, answer.json) == (503, {"error": "The page is stopping: repeat the request."})
    assert not client.waiting


async def query(program: Program, **fields: Any) -> Answer:
    return await program.send("POST", "/api/query", "/api/query", json.dumps(fields).encode())


async def test_a_query_gets_the_answer_of_the_command(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    reach(monkeypatch, ApiClient(), "here")
    for ref in ("", "main", WAITS):
        answer = await query(program, sql="SELECT 1;2", ref=ref)
        command = await asyncio.to_thread(CliRunner().invoke, app, ["query", "SELECT 1;2", "--ref", ref, "--json"])
        assert (answer.status, command.exit_code) == (200, 0) and answer.json == json.loads(command.stdout)
    assert answer.json == {"rows": [{"c0": "SELECT 1", "c1": "2"}, {"c0": f"run-of-{WAITS}", "c1": f"run-of-{WAITS}"}]}


async def test_a_query_that_is_refused(program: Program) -> None:
    for fields in ({}, {"sql": ""}, {"sql": "x" * 200_001}, {"sql": 5}, {"sql": "SELECT 1", "limit": 5}):
        assert (await query(program, **fields)).status == 400
    unknown = await query(program, sql="SELECT 1", ref="wap/p/gone")
    assert (unknown.status, unknown.json) == (400, {"error": "there is no branch 'wap/p/gone'"})


async def test_only_an_operator_queries_because_a_query_reads_any_table(program: Program) -> None:
    for person, status in (("vera", 403), ("ana", 403), ("otto", 200)):
        answer = await behind_proxy(ApiClient(), person).post_json("/api/query", {"sql": "SELECT 1"})
        program.check("POST", "/api/query", answer)
        assert answer.status == status
        assert status == 200 or "To query tables by SQL, you need the role operator" in answer.json["error"]
