"""Who may use the page: the host, the origin, the session, the form token, and the headers of every response."""

import os
import re
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from tests.harness.asgi import HOST
from tests.harness.page import SECRET, browser, session

NOBODY = SimpleNamespace(namespace="default")
"""A client of Temporal that answers nothing: a request that reaches it is an error of the page."""
RUN = "/runs/p-0123456789ab/r"
FORMS = [
    *(f"{RUN}/{action}" for action in ("decision", "cancel", "rollback", "again")),
    *(f"/quarantine/{action}" for action in ("release", "repair", "keep", "discard")),
    *(f"/arrivals/z/{action}" for action in ("retry", "split", "set-aside")),
]
"""Addresses of forms that change something."""


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:8241", "localhost:8240.evil.example", ""])
async def test_another_host_is_refused(host: str) -> None:
    """A name that an attacker resolves to this machine is not the page's."""
    answer = await browser(NOBODY).get("/health", host=host)
    assert answer.status == 421 and "127.0.0.1:8240 and localhost:8240" in answer.text


@pytest.mark.parametrize("host", [HOST, "localhost:8240"])
async def test_the_host_of_the_page_is_accepted(host: str) -> None:
    assert (await browser(NOBODY).get("/health", host=host)).text == str(os.getpid())


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://127.0.0.1:8233"},
        {"origin": "https://127.0.0.1:8240"},
        {"origin": f"http://{HOST}.evil.example"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"origin": f"http://{HOST}", "sec_fetch_site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", ["/sign-in", *FORMS, "/api/runs/p/decision"])
async def test_a_request_of_another_site_changes_nothing(path: str, headers: dict[str, str]) -> None:
    """Not even with the cookie, the form token and the secret."""
    fields: dict[str, str] = {
        "token": SECRET,
        "form_token": session().form_token("ana"),
        "decision": "approve",
        "report": "x",
    }
    opened = browser(NOBODY)
    answer = await opened.post_form(path, {**fields}, **headers)
    assert answer.status == 403 and "accepts no requests from" in answer.text and not opened.set_cookie


@pytest.mark.parametrize("path", ["/", "/runs", "/runs/p", RUN, "/quarantine", "/arrivals/z?file=a&status=", "/events"])
async def test_without_a_session_a_page_leads_to_the_sign_in(path: str) -> None:
    stranger = browser(NOBODY, signed_in=False)
    answer = await stranger.get(path)
    assert (answer.status, answer.headers["location"]) == (303, f"/sign-in?next={quote(path)}")
    for name, value in {
        session().cookie_name: SECRET, "sluice_session_8241": session().cookie, "other": session().cookie,
    }.items():  # fmt: skip
        stranger.cookies = {name: value}
        assert (await stranger.get(path)).status == 303


@pytest.mark.parametrize("path", FORMS)
async def test_a_form_without_a_session_leads_to_a_page_that_can_be_opened(path: str) -> None:
    answer = await browser(NOBODY, signed_in=False).post_form(path, {"form_token": session().form_token("ana")})
    assert (answer.status, answer.headers["location"]) == (303, "/sign-in?next=/")


@pytest.mark.parametrize("path", ["/api/runs", "/api/runs/p", "/api/openapi.json"])
@pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", f"Basic {SECRET}", f"Bearer {session().cookie}"])
async def test_the_api_asks_for_the_token(path: str, given: str) -> None:
    answer = await browser(NOBODY, signed_in=False).get(path, authorization=given)
    assert answer.status == 401 and "Bearer" in answer.json["error"]


async def test_a_program_with_the_token_reads_the_description_of_the_api() -> None:
    answer = await browser(NOBODY, signed_in=False).get("/api/openapi.json", authorization=f"Bearer {SECRET}")
    of_run = {f"/api/runs/{{name}}{path}" for path in ("", "/decision", "/diff", "/statement")}
    assert set(answer.json["paths"]) == {
        *("/api/runs", "/api/query", "/api/pipelines/{name}/runs", "/api/starts/{id}"), *of_run,
    }  # fmt: skip


@pytest.mark.parametrize("is_form", [False, True])
async def test_the_token_signs_a_browser_in(is_form: bool) -> None:
    stranger = browser(NOBODY, signed_in=False)
    if is_form:
        answer = await stranger.post_form("/sign-in", {"token": f" {SECRET} ", "next": "/runs?state=failed"})
    else:
        answer = await stranger.get(f"/sign-in?token={SECRET}&next=/runs%3Fstate%3Dfailed")
    assert (answer.status, answer.headers["location"]) == (303, "/runs?state=failed")
    assert stranger.cookies == {session().cookie_name: session().cookie}
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(stranger.set_cookie.split("; "))
    assert SECRET not in answer.text + str(answer.headers)


@pytest.mark.parametrize("token", ["", "wrong", session().cookie, session().form_token("ana")])
async def test_another_token_signs_nobody_in(token: str) -> None:
    stranger = browser(NOBODY, signed_in=False)
    for answer in (
        await stranger.get(f"/sign-in?token={token}"),
        await stranger.post_form("/sign-in", {"token": token}),
    ):
        assert answer.status == 401 and not stranger.set_cookie
        assert session().form_token("ana") not in answer.text, "a stranger could send forms"


@pytest.mark.parametrize(
    "target",
    ["//evil.example", "/\\evil.example", "https://evil.example", "evil.example", "javascript:alert(1)", ""],
)
async def test_the_sign_in_never_leads_to_another_site(target: str) -> None:
    answer = await browser(NOBODY).get(f"/sign-in?token={SECRET}&next={quote(target, safe='')}")
    assert answer.headers["location"] == "/"
    form = await browser(NOBODY, signed_in=False).get(f"/sign-in?next={quote(target, safe='')}")
    assert 'data-next="/"' in form.text


@pytest.mark.parametrize("between", ["\t", "\n", "\r", "\r\nSet-Cookie: a=b\r\n"])
async def test_characters_that_browsers_remove_do_not_hide_another_site(between: str) -> None:
    answer = await browser(NOBODY).get(f"/sign-in?token={SECRET}&next={quote(f'/{between}/evil.example', safe='')}")
    assert re.fullmatch(r"/%0[9AD][^\s]*/evil\.example", answer.headers["location"])


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("token", [None, "", "wrong", session().cookie, SECRET])
async def test_a_form_needs_the_token_of_this_page(path: str, token: str | None) -> None:
    shown = {
        "report": "x",
        "decision": "approve",
        "plan": "x",
        "branch": "x",
        "head": "x",
        "how_long": "1d",
        "sql": "x",
        "batch": "x",
    }
    fields = {**shown, **({} if token is None else {"form_token": token})}
    answer = await browser(NOBODY).post_form(path, {**fields})
    assert answer.status == 403 and "This form is not from this page" in answer.text


async def test_a_form_that_is_not_valid_names_its_fields() -> None:
    fields = {"form_token": session().form_token("ana"), "decision": "maybe<script>"}
    answer = await browser(NOBODY).post_form(f"{RUN}/decision", {**fields})
    assert answer.status == 400 and "report: Field required" in answer.text and "<script>" not in answer.text


ANYTHING = [
    ("/health", 200),
    ("/sign-in", 401),
    ("/static/page.css", 200),
    ("/static/page.js", 200),
    ("/static/icons.svg", 200),
    ("/static/missing.css", 404),
    ("/static/../app.py", 404),
    ("/static/%2e%2e/app.py", 404),
    ("/missing", 404),
    ("/runs?state=%3Cscript%3E", 400),
    ("/runs", 500),  # the client of this test breaks it
    ("/api/runs?limit=0", 400),
    ("/api/missing", 404),
]


@pytest.mark.parametrize(("path", "status"), ANYTHING)
async def test_every_response_has_the_headers(path: str, status: int) -> None:
    answer = await browser(NOBODY).get(path)
    assert answer.status == status, answer.text
    _assert_headers(answer.headers)
    assert "<script>" not in answer.text and "Traceback" not in answer.text and "SimpleNamespace" not in answer.text
    is_program = path.startswith("/api/")
    assert answer.headers["content-type"].startswith("application/json") or not is_program


async def test_a_refusal_has_the_headers_too() -> None:
    opened, stranger = browser(NOBODY), browser(NOBODY, signed_in=False)
    for answer in (
        await opened.get("/", host="evil.example"),
        await opened.post_form("/sign-in", {}, origin="null"),
        await stranger.get("/"),
        await stranger.get("/api/runs"),
        await opened.send("DELETE", "/runs"),
    ):
        _assert_headers(answer.headers)


def _assert_headers(headers: dict[str, str]) -> None:
    policy = dict(each.strip().split(" ", 1) for each in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["frame-ancestors"] == "'none'"
    assert set(policy.values()) == {"'self'", "'none'"}, "no inline code, and nothing from another site"
    assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin" and headers["cache-control"] == "no-store"
