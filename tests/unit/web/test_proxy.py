"""The page behind a proxy: who is believed, what is refused, and which settings start it."""

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from temporalio.client import Client

from devstack.page_address import opening_address, page_variables
from sluice.errors import BadEnvironment
from sluice.roles import Role
from sluice.settings import Settings, read_settings
from tests.harness.asgi import Answer, Browser
from tests.harness.page import (
    GROUPS,
    PERSON,
    PORT,
    PROXY_SECRET,
    PUBLIC,
    SECRET,
    SECRET_HEADER,
    behind_proxy,
    proxy_access,
    session,
)
from tests.harness.waiting import in_time
from web.app import make_app
from web.proxy import ProxyAccess, read_proxy
from web.server import serve
from web.session import Session

NOBODY = SimpleNamespace(namespace="default")
READ = "/api/openapi.json"
"""An address that every person may read, and that needs no service."""
PROOF = (SECRET_HEADER, PROXY_SECRET)
Headers = Sequence[tuple[str, str]]


async def read(headers: Headers, path: str = READ) -> Answer:
    """Send a request with these headers of a proxy or of a client."""
    page = behind_proxy(NOBODY)
    page.headers = [*headers]
    return await page.get(path)


async def test_the_person_of_the_proxy_is_believed() -> None:
    assert (await read([PROOF, (PERSON, "otto")])).status == 200
    assert (await read([(SECRET_HEADER.upper(), PROXY_SECRET), (PERSON.title(), " otto ")])).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(PERSON, "otto")],
        [(PERSON, "otto"), (SECRET_HEADER, "")],
        [(PERSON, "otto"), (SECRET_HEADER, PROXY_SECRET[:-1])],
        [(PERSON, "otto"), (SECRET_HEADER, PROXY_SECRET.upper())],
        [(PERSON, "otto"), (SECRET_HEADER, f"{PROXY_SECRET}\xe9")],
        [(PERSON, "otto"), (SECRET_HEADER, "x" * 60_000)],
        [(PERSON, "otto"), PROOF, (SECRET_HEADER, "x")],
        [(PERSON, "otto"), PROOF, PROOF],
        [(PERSON, "otto"), (SECRET_HEADER.replace("-", "_"), PROXY_SECRET)],
        [(PERSON, "otto"), ("authorization", f"Bearer {PROXY_SECRET}")],
        [(PERSON, "otto"), (SECRET_HEADER, SECRET)],
    ],
)
async def test_a_client_that_names_itself_is_refused(headers: Headers) -> None:
    """Neither the token nor the cookie of the page replaces the proof."""
    of_page = [("authorization", f"Bearer {SECRET}"), ("cookie", f"{session().cookie_name}={session().cookie}")]
    page = behind_proxy(NOBODY)
    for more in ([], of_page, of_page[1:]):
        page.headers = [*headers, *more]
        for path in (READ, "/", "/events", "/runs/p", "/sign-in", f"/sign-in?token={SECRET}"):
            answer = await page.get(path)
            assert answer.status == 403 and f"only requests of its proxy: open {PUBLIC}" in answer.text
            assert "set-cookie" not in answer.headers and PROXY_SECRET not in answer.text


@pytest.mark.parametrize(
    ("people", "why"),
    [
        ([], f"the header {PERSON} is missing"),
        (["otto", "ana"], f"the header {PERSON} is given twice"),
        (["otto", "otto"], "is given twice"),
        (["otto", ""], "is given twice"),
        ([""], "names nobody"),
        (["   "], "names nobody"),
        (["@example.org"], "names nobody"),
        (["o" * 201], "has 201 characters, and the limit is 200"),
        (["otto" * 4_000], "has 16,000 characters"),
        (["otto\x00"], "has a control character"),
        (["ot\tto"], "has a control character"),
        (["otto\x7f"], "has a control character"),
        (["otto\xe2\x80\x8b"], "or an invisible one"),
        (["\xe2\x80\xaeotto"], "or an invisible one"),
        (["ana, otto"], "has a comma, so it may name two people"),
        (["\xfc\xe9"], "is not UTF-8"),
    ],
)
async def test_a_header_that_names_no_single_person_is_refused(people: Sequence[str], why: str) -> None:
    answer = await read([PROOF, *((PERSON, each) for each in people)])
    assert answer.status == 403 and why in answer.json["error"]
    page = await read([PROOF, *((PERSON, each) for each in people)], "/runs")
    assert page.status == 403 and "It is not known who you are" in page.text


@pytest.mark.parametrize("person", ["Otto", "OTTO", "otto@example.org", "o\xef\xbd\x94to", "otto2", "*", "nobody"])
async def test_a_person_who_is_only_alike_has_no_role_of_another(person: str) -> None:
    answer = await read([PROOF, (PERSON, person)])
    assert answer.status == 403 and "you have no role on this page" in answer.json["error"]


async def test_a_name_beyond_ascii() -> None:
    page = behind_proxy(NOBODY, roles="J\u00fcrgen Gro\u00df=operator")
    page.headers = [PROOF, (PERSON, "J\u00fcrgen Gro\u00df".encode().decode("latin-1"))]
    assert (await page.get(READ)).status == 200


@pytest.mark.parametrize(
    ("given", "role"),
    [
        (["platform"], Role.OPERATOR),
        (["readers, platform ,x"], Role.OPERATOR),
        (["Platform"], None),
        (["otto"], None),
        ([""], None),
        ([], None),
        (["readers", "platform"], None),
        (["platform\xff"], None),
    ],
)
async def test_roles_of_groups(given: Sequence[str], role: Role | None) -> None:
    """With groups, the name of a person gives no role: people may choose their names."""
    page = behind_proxy(NOBODY, "platform", groups="x", roles="platform=operator")
    page.headers = [PROOF, (PERSON, "platform"), *((GROUPS, each) for each in given)]
    assert (await page.get(READ)).status == (200 if role else 403)


async def test_the_origin_and_the_host_are_those_of_the_proxy() -> None:
    page = behind_proxy(NOBODY, "vera")
    for host in ("sluice.example.org", f"127.0.0.1:{PORT}", f"localhost:{PORT}"):
        assert (await page.get(READ, host=host)).status == 200
    for host in ("evil.example", "sluice.example.org:443", "sluice.example.org.evil.example", ""):
        assert (await page.get(READ, host=host)).status == 421
    for origin in (f"http://127.0.0.1:{PORT}", "http://sluice.example.org", f"{PUBLIC}.evil.example", "null"):
        answer = await page.post_form("/quarantine/discard", {}, origin=origin)
        assert answer.status == 403 and "accepts no requests from" in answer.text
    answer = await page.post_form("/quarantine/discard", {}, origin=PUBLIC, sec_fetch_site="cross-site")
    assert "accepts no requests from other sites" in answer.text
    assert "you need the role" in (await page.post_form("/quarantine/discard", {}, origin=PUBLIC)).text


async def test_what_is_public_and_what_is_not_there() -> None:
    assert (await read([], "/health")).text == str(os.getpid())
    assert (await read([], "/static/page.css")).status == 200
    for path in ("/sign-in", f"/sign-in?token={SECRET}"):
        answer = await read([PROOF, (PERSON, "otto")], path)
        assert answer.status == 404 and "set-cookie" not in answer.headers


async def test_headers_as_a_real_server_passes_them_on() -> None:
    """Two headers of one name stay two, and a name with a control character does not arrive."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    proxy = proxy_access(port)
    serving = asyncio.create_task(serve(cast(Client, NOBODY), Settings(), Session(SECRET, "owner", port), proxy))
    try:
        for headers, status in (
            ([], "403"),
            ([PROOF], "403"),
            ([PROOF, (PERSON, "vera")], "200"),
            ([PROOF, (PERSON, "vera"), (PERSON.title(), "otto")], "403"),
            ([PROOF, PROOF, (PERSON, "vera")], "403"),
            ([PROOF, (PERSON, "vera\x00")], "4"),
        ):
            answer = await in_time(_raw(port, headers))
            assert answer.split(" ")[1].startswith(status), (headers, answer)
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


async def _raw(port: int, headers: Headers) -> str:
    """Send a request as it is written, once the server listens; return the response."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            break
        except ConnectionRefusedError:
            await asyncio.sleep(0.05)
    sent = [("Host", f"127.0.0.1:{port}"), ("Connection", "close"), *headers]
    lines = [f"GET {READ} HTTP/1.1", *(f"{name}: {value}" for name, value in sent), "", ""]
    writer.write("\r\n".join(lines).encode())
    answer = await reader.read()
    writer.close()
    return answer.decode()


# The settings


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    """The variables of a page behind a proxy."""
    (tmp_path / "secret").write_text(f"{PROXY_SECRET}\n")
    return {
        "SLUICE_PAGE": PUBLIC,
        "SLUICE_PAGE_PERSON_HEADER": "X-Forwarded-User",
        "SLUICE_PAGE_SECRET_HEADER": "X-Proxy-Secret",
        "SLUICE_PAGE_SECRET_FILE": str(tmp_path / "secret"),
    }


def proxy_of(given: dict[str, str]) -> ProxyAccess | None:
    settings = read_settings(given)
    return read_proxy(settings.page, settings.installation, settings.approval, PORT)


async def test_a_page_that_the_settings_start(given: dict[str, str]) -> None:
    """Without roles, everybody whom the proxy names reads."""
    page = Browser(make_app(NOBODY, read_settings(given), session("owner"), proxy_of(given)))  # type: ignore[arg-type]
    page.headers = [PROOF, (PERSON, "somebody")]
    assert (await page.get(READ)).status == 200
    answer = await page.post_form("/quarantine/discard", {})
    assert answer.status == 403 and "you have the role viewer" in answer.text
    assert proxy_of({"SLUICE_PAGE": PUBLIC}) is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"SLUICE_PAGE_SECRET_HEADER": ""}, "needs a proof: set SLUICE_PAGE_SECRET_HEADER and SLUICE_PAGE_SECRET_FILE"),
        ({"SLUICE_PAGE_SECRET_FILE": ""}, "needs a proof"),
        ({"SLUICE_PAGE_SECRET_FILE": "/nowhere/secret"}, "SLUICE_PAGE_SECRET_FILE=/nowhere/secret: No such file"),
        ({"SLUICE_PAGE_GROUPS_HEADER": "x-forwarded-USER"}, "name one header twice"),
        ({"SLUICE_PAGE_SECRET_HEADER": "X-FORWARDED-User"}, "name one header twice"),
        ({"SLUICE_PAGE": ""}, "write the address at which people open the page"),
        ({"SLUICE_PAGE": f"{PUBLIC}/"}, "without a path"),
        ({"SLUICE_PAGE": f"{PUBLIC}/sluice"}, "without a path"),
        ({"SLUICE_PAGE": f"{PUBLIC}:443"}, "write the address"),
        ({"SLUICE_PAGE": "https://Sluice.example.org"}, "in small letters"),
        ({"SLUICE_PAGE": "https://ana@sluice.example.org"}, "write the address"),
        ({"SLUICE_PAGE": "sluice.example.org"}, "write the address"),
        ({"SLUICE_PAGE": "https://sluice.example.org:port"}, "write the address"),
        ({"SLUICE_APPROVAL_KEY_FILE": "key"}, "SLUICE_APPROVAL_KEY_FILE signs in the name of one person"),
        (
            {"SLUICE_PAGE_PERSON_HEADER": ""},
            "SLUICE_PAGE_SECRET_FILE without SLUICE_PAGE_PERSON_HEADER",
        ),
    ],
)
def test_settings_that_are_incomplete_or_unsafe(given: dict[str, str], change: dict[str, str], why: str) -> None:
    with pytest.raises(BadEnvironment, match=why):
        proxy_of({**given, **change})


@pytest.mark.parametrize("name", ["X_Forwarded_User", "X Forwarded", "X-User:", "X-\u00dcser", "x" * 101])
def test_a_setting_that_is_no_name_of_a_header(name: str) -> None:
    with pytest.raises(BadEnvironment, match="SLUICE_PAGE_PERSON_HEADER"):
        read_settings({"SLUICE_PAGE_PERSON_HEADER": name})


@pytest.mark.parametrize("secret", ["short", "x" * 31, "\u00e4" * 40, f"{'x' * 40}\n{'y' * 40}", f"{'x' * 40}\x00"])
def test_a_secret_that_a_header_cannot_have_or_that_can_be_guessed(given: dict[str, str], secret: str) -> None:
    Path(given["SLUICE_PAGE_SECRET_FILE"]).write_text(secret)
    with pytest.raises(BadEnvironment, match="write one line of at least 32 letters and digits"):
        proxy_of(given)


def test_only_roles_are_set_and_would_be_ignored() -> None:
    with pytest.raises(BadEnvironment, match="SLUICE_PAGE_ROLES without SLUICE_PAGE_PERSON_HEADER"):
        proxy_of({"SLUICE_PAGE_ROLES": "ana=viewer"})


def test_the_local_stack_keeps_the_address_of_the_proxy(tmp_path: Path, given: dict[str, str]) -> None:
    variables = page_variables(given, 8244)
    assert variables == {"SLUICE_PAGE": PUBLIC} and opening_address(given, variables, tmp_path, 8244) == PUBLIC
    alone = {"SLUICE_PAGE": PUBLIC}
    assert page_variables(alone, 8244) == {"SLUICE_PAGE": "http://127.0.0.1:8244"}
    assert opening_address(alone, alone, tmp_path, 8244).startswith("http://127.0.0.1:8244/sign-in?token=")
