"""The address that Slack calls: nothing but a request that Slack signed lately is read, and nothing else is open."""

import json
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.approval.decisions import ApprovalRecord
from sluice.approval.waivers import WaivableCheck
from sluice.contracts.run import Notification, RunResult
from sluice.errors import BadEnvironment, InvalidPipeline
from sluice.notifications.message import message_of_run
from sluice.notifications.slack import slack_blocks
from sluice.notifications.slack_buttons import SlackDecision, decision_buttons, read_slack_decision, reason_form
from sluice.notifications.slack_people import parse_slack_people
from tests.harness.asgi import Answer, Browser
from tests.harness.page import SECRET, browser, session
from tests.harness.slack_actions import SIGNING_SECRET, approved, body_of, rejected, send, signed, submitted
from web.approval.slack import PATH

NOBODY = SimpleNamespace(namespace="default")
"""A client of Temporal that answers nothing: a request that reaches it is an error."""
SET_UP = {"slack_token": "xoxb-1", "slack_signing_secret": SIGNING_SECRET, "slack_api_url": "http://127.0.0.1:9/api/"}
WAITING = Notification(
    result=RunResult(run_id="r-1", workflow_id="orders-0123456789ab", pipeline="orders", audited_hash="ab" * 32),
    waiting_until="2026-12-01T00:00:00+00:00",
)
REPORT = "abababababab:cdcdcdcdcdcd"
MESSAGE = {"blocks": decision_buttons(WAITING, REPORT)}
IGNORED = {"type": "block_actions", "user": {"id": "U0ANA"}, "actions": [{"action_id": "of another app"}]}
"""A request without an effect, by which tests see that it was read."""


def slack_page(*, signed_in: bool = False, missing: str = "", value: str = "") -> Browser:
    settings: dict[str, Any] = {**SET_UP, missing: value} if missing else SET_UP
    return browser(NOBODY, signed_in=signed_in, **settings)


async def test_a_signed_request_is_read() -> None:
    answer = await send(slack_page(), IGNORED)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["cache-control"] == "no-store" and not slack_page().set_cookie


BODY = body_of(IGNORED)
TIME, SIGNATURE = "x_slack_request_timestamp", "x_slack_signature"


@pytest.mark.parametrize(
    "forge",
    [
        lambda good: {},
        lambda good: {TIME: good[TIME]},
        lambda good: {SIGNATURE: good[SIGNATURE]},
        lambda good: signed(BODY, "another secret"),
        lambda good: signed(BODY + b"&more=1"),
        lambda good: signed(BODY, age=301),
        lambda good: signed(BODY, age=-400),
        lambda good: {**good, TIME: str(int(good[TIME]) - 1)},
        lambda good: {**good, TIME: f" {good[TIME]}"},
        *(lambda good, text=text: {**good, TIME: text} for text in ("soon", "nan", "", "9" * 5000)),
        lambda good: {**good, SIGNATURE: good[SIGNATURE].upper()},
        lambda good: {**good, SIGNATURE: good[SIGNATURE].removeprefix("v0=")},
        *(lambda good, text=text: {**good, SIGNATURE: text} for text in ("", "v0=", "v0=é")),
    ],
)
async def test_a_request_that_slack_did_not_sign_lately_is_refused(forge: Callable[..., dict[str, str]]) -> None:
    """Not even with the token and the cookie of the page."""
    page = slack_page(signed_in=True)
    answer = await page.send("POST", PATH, BODY, {**forge(signed(BODY)), "authorization": f"Bearer {SECRET}"})
    assert (answer.status, answer.text) == (401, "This request has no valid and recent signature of Slack.")


async def test_refusals_are_logged_seldom(caplog: pytest.LogCaptureFixture) -> None:
    page = slack_page()
    with caplog.at_level(logging.WARNING, "sluice.page"):
        for _ in range(5):
            assert (await page.send("POST", PATH, BODY, signed(BODY, "another secret"))).status == 401
    (line,) = [each.getMessage() for each in caplog.records if each.name == "sluice.page"]
    assert "SLACK_SIGNING_SECRET is not that of the app" in line and SIGNING_SECRET not in line


async def test_bodies_that_are_no_text_or_too_long_are_refused() -> None:
    page = slack_page()
    assert (await page.send("POST", PATH, b"\xff\xfe", signed(BODY))).status == 401
    assert (await page.send("POST", PATH, b"x" * 1_000_001, signed(BODY))).status == 413
    for body in (b"", b"payload", b"payload={}", b"payload=1&payload=2", b"other=1", b"payload=[" + b"[" * 9000):
        answer = await page.send("POST", PATH, body, signed(body))
        assert (answer.status, answer.text) == (400, "this is not a request of Slack's buttons"), body[:20]


async def test_several_signatures_are_refused() -> None:
    """A proxy and this page could read different ones."""
    app = slack_page().app
    sent: list[Any] = []
    good = {name.replace("_", "-").encode(): value.encode() for name, value in signed(BODY).items()}
    headers = [*good.items(), (b"x-slack-signature", good[b"x-slack-signature"])]
    scope = {"type": "http", "method": "POST", "path": PATH, "headers": headers, "query_string": b""}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": BODY, "more_body": False}

    async def keep(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, keep)
    assert sent[0]["status"] == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(
            ("POST", path)
            for path in (f"{PATH}/", f"{PATH}/x", f"/x{PATH}", "/Slack/actions", "/slack", "//slack/actions")
        ),
        *(("POST", path) for path in ("/runs/p/r/decision", "/runs/p/r/cancel", "/quarantine/release", "/sign-out")),
        *((method, PATH) for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post")),
        *(("GET", path) for path in ("/", "/runs", "/runs/p", "/events", f"{PATH}?next=/runs")),
        *(("GET", path) for path in ("/api/runs", "/api/openapi.json")),
        ("POST", "/api/runs/p/decision"),
    ],
)
async def test_a_signature_of_slack_opens_nothing_else(method: str, path: str) -> None:
    answer = await slack_page().send(method, path, BODY, signed(BODY))
    assert answer.status in (303, 401, 404, 405) and "frame-ancestors" in answer.headers["content-security-policy"]
    if answer.status == 303:
        assert answer.headers["location"].startswith("/sign-in")
    foreign = await slack_page().send(method, path, BODY, {**signed(BODY), "host": "hooks.example"})
    assert foreign.status == 421


@pytest.mark.parametrize("missing", ["slack_token", "slack_signing_secret"])
async def test_without_its_settings_the_address_is_not_there(missing: str) -> None:
    for value in ("", " ") if missing == "slack_signing_secret" else ("",):
        page = slack_page(missing=missing, value=value)
        body = body_of(approved(MESSAGE))
        answer = await page.send("POST", PATH, body, signed(body, SIGNING_SECRET))
        assert (answer.status, answer.headers["location"]) == (303, "/sign-in?next=/")
    own = slack_page(signed_in=True, missing=missing)
    answer = await own.post_form(PATH, {"form_token": session().form_token("ana")})
    assert answer.status in (404, 405)


def test_what_a_button_says_is_what_is_read() -> None:
    decision = read_slack_decision(body_of(approved(MESSAGE)))
    assert decision and decision.approve and decision.reason is None and decision.member == "U0ANA"
    assert (decision.shown.workflow_id, decision.shown.run_id) == ("orders-0123456789ab", "r-1")
    assert decision.shown.report == REPORT
    asked = read_slack_decision(body_of(rejected(MESSAGE, "U0BEN")))
    assert asked and not asked.approve and asked.trigger == "trigger of U0BEN"
    form = reason_form(asked)
    assert len(form["title"]["text"]) <= 24, "the limit of Slack"
    read = read_slack_decision(body_of(submitted(form, "no", "U0CLEO")))
    assert read == asked.model_copy(update={"member": "U0CLEO", "reason": "no", "trigger": ""})
    assert read_slack_decision(body_of(IGNORED)) is None
    assert read_slack_decision(body_of({"type": "shortcut", "user": {"id": "U0ANA"}})) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"actions": [{"action_id": "sluice_approve"}]},
        {"actions": [{"action_id": "sluice_approve", "value": "{}"}]},
        {"actions": [{"action_id": "sluice_approve", "value": '{"workflow_id": 1, "run_id": 2, "report": 3}'}]},
        {"actions": {}},
        {"user": {}},
        {"user": "U0ANA"},
        {"type": None},
        {"type": "view_submission", "view": {"callback_id": "sluice_reject", "private_metadata": "5"}},
        {"type": "view_submission", "view": {"callback_id": "sluice_reject", "private_metadata": ""}},
        {"type": "view_submission", "view": {"callback_id": "sluice_reject", "private_metadata": '{"approve": true}'}},
    ],
)
def test_a_request_of_another_form_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidPipeline, match="not a request of Slack's buttons"):
        read_slack_decision(body_of({**approved(MESSAGE), **changed}))


def test_a_form_cannot_say_who_rejects_or_that_it_approves() -> None:
    asked = read_slack_decision(body_of(rejected(MESSAGE)))
    assert asked
    stated = {**json.loads(reason_form(asked)["private_metadata"]), "member": "U0BOSS", "approve": True, "reason": "x"}
    form = {**reason_form(asked), "private_metadata": json.dumps(stated)}
    read = read_slack_decision(body_of(submitted(form, "mine")))
    assert read and (read.member, read.approve, read.reason) == ("U0ANA", False, "mine")


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: f"payload={text}".encode()))
def test_any_body_is_read_or_refused(body: bytes) -> None:
    try:
        assert isinstance(read_slack_decision(body), SlackDecision | None)
    except InvalidPipeline as error:
        assert str(error) == "this is not a request of Slack's buttons"


def test_which_messages_have_buttons() -> None:
    def names(notification: Notification, report: str = REPORT) -> list[str]:
        blocks = slack_blocks(message_of_run(notification, "http://page"), report)
        return [each["text"]["text"] for block in blocks if block["type"] == "actions" for each in block["elements"]]

    def with_record(**fields: Any) -> Notification:
        record = ApprovalRecord(required=1, **fields)
        return WAITING.model_copy(update={"result": WAITING.result.model_copy(update={"approval": record})})

    assert names(WAITING) == names(with_record()) == ["Approve abababa", "Reject abababa …"]
    assert names(WAITING, "") == [], "without the signing secret"
    assert names(WAITING.model_copy(update={"waiting_until": ""})) == [], "the run has ended"
    assert names(with_record(signed=True)) == [], "Slack cannot sign"
    check = WaivableCheck(table="t.x", index=0, check="unique(id)", fingerprint="f" * 64)
    assert names(with_record(to_waive=[check])) == ["Reject abababa …"], "a waiver needs a reason and an end"
    longest = WAITING.result.model_copy(update={"workflow_id": "p" * 1000})
    blocks = decision_buttons(WAITING.model_copy(update={"result": longest}), REPORT)
    assert all(len(each["value"]) <= 2000 for each in blocks[0]["elements"]), "the limit of Slack"


def test_the_file_of_people() -> None:
    text = "\ufeff# members\n\nU012AB3CD ana\n  W012AB3CE   ben@laptop \n"
    assert parse_slack_people(text, "people") == {"U012AB3CD": "ana", "W012AB3CE": "ben@laptop"}
    assert parse_slack_people("", "people") == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ana U012AB3CD", "people:1: write the id of a member on Slack and a name"),
        ("U012AB3CD", "people:1: write"),
        ("U012AB3CD ana maria", "people:1: write"),
        ("u012ab3cd ana", "people:1: write"),
        ("U012AB3CD \u200b", "people:1: write"),
        ("U012AB3CD ana\nU012AB3CD ben", "people:2: U012AB3CD is listed twice"),
    ],
)
def test_a_file_of_people_that_is_wrong_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadEnvironment, match=why):
        parse_slack_people(text, "people")


async def test_the_answer_to_slack_does_not_say_who_may_decide() -> None:
    answers: list[Answer] = [await send(slack_page(), approved(MESSAGE, member)) for member in ("U0ANA", "U0EVE")]
    assert [(each.status, each.body) for each in answers] == [(200, b"")] * 2
