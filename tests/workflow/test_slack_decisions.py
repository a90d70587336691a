"""Decisions by buttons on Slack: from the posted message to the run in Temporal. A local server takes Slack's place."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import WorkflowEnvironment

from activities.notifications.slack import SlackNotifier
from sluice.approval.required import RequiredApproval
from sluice.approval.signatures import new_approver_key
from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditResult
from sluice.contracts.publish import Publication, PublishBranchInput
from sluice.contracts.run import Notification
from sluice.notifications.message import message_of_run
from sluice.notifications.slack_buttons import APPROVE, REJECT
from sluice.settings import Settings
from tests.harness.asgi import Answer, Browser
from tests.harness.page import browser
from tests.harness.slack import Slack
from tests.harness.slack_actions import CHANNEL, SIGNING_SECRET, THREAD, approved, button, rejected, send, submitted
from tests.harness.waiting import until
from tests.harness.waiting_run import WaitingRun, started
from tests.harness.workflow import HEAD, MERGED, NEWER, WorkflowHarness

TOKEN = "xoxb-token-of-a-test"
PAGE = "http://127.0.0.1:8240"


@pytest.fixture(autouse=True)
def _real_time(own_time_skipping: WorkflowEnvironment) -> Iterator[None]:
    with own_time_skipping.auto_time_skipping_disabled():
        yield


@dataclass
class OnSlack:
    """A run whose messages go to Slack, and the page that Slack calls."""

    harness: WorkflowHarness
    slack: Slack
    settings: dict[str, Any]

    @property
    def posted(self) -> list[dict[str, Any]]:
        """The messages about the run that waits."""
        return [each for each in self.slack.messages if "waits for" in each.get("text", "") and "blocks" in each]

    def answers(self, method: str) -> list[dict[str, Any]]:
        """The calls of a method of Slack's API, without the messages about the run."""
        return [each for each in self.slack.messages if each["path"] == f"/api/{method}" and each not in self.posted]

    def page(self, **settings: str) -> Browser:
        given: dict[str, Any] = {**self.settings, **settings}
        return browser(self.harness.client, "owner", signed_in=False, **given)

    async def start(self, required: RequiredApproval | None = None, **pipeline: Any) -> WaitingRun:
        run = await started(self.harness, required, **pipeline)
        await until(lambda: self.posted)
        return run

    async def refused(self, run: WaitingRun, payload: dict[str, Any], why: str, member: str = "U0ANA") -> None:
        """Send a request; check that the person alone is told why it decides nothing."""
        before = await run.decisions()
        assert (await send(self.page(), payload)).status == 200
        sent = self.answers("chat.postEphemeral")[-1]
        assert why in sent["text"] and sent["text"].startswith("Nothing was decided: "), sent["text"]
        assert (sent["user"], sent["channel"]) == (member, CHANNEL)
        assert f"<{PAGE}{run.path}|The run on the page>" in sent["text"]
        assert await run.decisions() == before


@pytest.fixture
async def chat(own_harness: WorkflowHarness, tmp_path: Path) -> AsyncIterator[OnSlack]:
    people = tmp_path / "people"
    people.write_text("# members\nU0ANA ana\nU0BEN ben\nW0ANA ana\n")
    with Slack() as slack:
        settings = {
            "slack_token": TOKEN, "slack_channel": "#loads", "slack_api_url": slack.url,
            "slack_signing_secret": SIGNING_SECRET, "sluice_slack_people_file": str(people), "sluice_page": PAGE,
        }  # fmt: skip
        notifier = SlackNotifier(Settings.of(**settings).notifications)

        async def notify(given: Notification, _: int) -> None:
            await asyncio.to_thread(notifier.send, message_of_run(given, "http://page"))

        own_harness.fakes.overrides["notify"] = notify
        yield OnSlack(own_harness, slack, settings)


def reply(answer: Answer) -> Any:
    return json.loads(answer.body) if answer.body else None


async def test_approve_and_everything_after_that_is_too_late(chat: OnSlack) -> None:
    run = await chat.start()
    (message,) = chat.posted
    shown = button(message, APPROVE)
    assert shown and shown["text"]["text"] == f"Approve {HEAD[:7]}" and shown["confirm"], "Slack asks once more"
    answer = await send(chat.page(), approved(message))
    assert (answer.status, answer.body) == (200, b"")
    result = await run.end()
    assert result.outcome == "published" and result.approval
    (decision,) = result.approval.decisions
    assert (decision.approve, decision.by, decision.audited_hash) == (True, "ana", HEAD)
    assert decision.audit_digest and decision.said_at and not decision.signature
    (sent,) = chat.answers("chat.postMessage")[:1]
    assert (sent["text"], sent["channel"], sent["thread_ts"]) == (
        f"ana approved {HEAD[:7]}",
        CHANNEL,
        THREAD,
    )
    await chat.refused(run, approved(message), "the run has ended")
    await chat.refused(run, approved(message, "U0BEN"), "the run has ended", "U0BEN")


async def test_reject_with_a_reason(chat: OnSlack) -> None:
    run = await chat.start()
    (message,) = chat.posted
    assert (await send(chat.page(), rejected(message))).body == b""
    (opened,) = chat.answers("views.open")
    assert opened["trigger_id"] == "trigger of U0ANA"
    view = opened["view"]
    for empty in (None, "", "  \n"):
        answer = await send(chat.page(), submitted(view, empty))
        assert reply(answer) == {"response_action": "errors", "errors": {"reason": "A rejection needs a reason."}}
    assert not await run.decisions()
    answer = await send(chat.page(), submitted(view, "wrong <!channel>"))
    assert reply(answer) == {"response_action": "clear"}
    result = await run.end()
    assert (result.outcome, result.cause) == ("quarantined", "rejected") and result.approval
    assert [(each.by, each.reason) for each in result.approval.decisions] == [("ana", "wrong <!channel>")]
    (sent,) = chat.answers("chat.postMessage")[:1]
    assert sent["text"] == f"ana rejected {HEAD[:7]}: wrong &lt;!channel&gt;", "a reason mentions nobody"
    assert reply(await send(chat.page(), submitted(view, "again"))) == {"response_action": "clear"}
    assert "the run has ended" in chat.answers("chat.postEphemeral")[-1]["text"]


async def test_another_hash_waits_by_now(chat: OnSlack) -> None:
    async def conflict_once(_: PublishBranchInput, call: int) -> Publication:
        return MERGED if call > 1 else Publication(merged=False, conflicts=["t.x"])

    chat.harness.fakes.overrides["publish_branch"] = conflict_once
    run = await chat.start()
    await send(chat.page(), rejected(chat.posted[0], "U0BEN"))
    old_form = chat.answers("views.open")[0]["view"]
    await send(chat.page(), approved(chat.posted[0]))
    await run.waits(NEWER)
    await until(lambda: len(chat.posted) == 2)
    old, new = chat.posted
    why = "the data changed since this message was sent: abababa is now cdcdcdc. Read it again, then decide."
    await chat.refused(run, approved(old), why)
    await send(chat.page(), submitted(old_form, "old", "U0BEN"))
    assert why in chat.answers("chat.postEphemeral")[-1]["text"] and not await run.decisions()
    forged = approved(new)
    value = json.loads(forged["actions"][0]["value"])
    for report in (f"{NEWER[:12]}:{'0' * 12}", NEWER[:12], ""):
        forged["actions"][0]["value"] = json.dumps({**value, "report": report})
        await chat.refused(run, forged, "the data changed since this message was sent")
    await send(chat.page(), approved(new))
    result = await run.end()
    assert result.approval and [(each.by, each.audited_hash) for each in result.approval.decisions] == [("ana", NEWER)]


async def test_who_may_decide(chat: OnSlack) -> None:
    run = await chat.start(RequiredApproval(required=2, starter="ben@laptop"))
    (message,) = chat.posted
    unknown = (
        "your account on Slack belongs to nobody here. Ask the operator of Sluice to add the line `U0EVE YOUR_NAME`"
    )
    await chat.refused(run, approved(message, "U0EVE"), unknown, "U0EVE")
    await chat.refused(run, rejected(message, "U0EVE"), unknown, "U0EVE")
    assert not chat.answers("views.open")
    await chat.refused(run, approved(message, "U0BEN"), "ben started the run, and four eyes are required", "U0BEN")
    await send(chat.page(), approved(message))
    assert [each.by for each in await run.decisions()] == ["ana"]
    twice = "ana decided already; 2 different people are required"
    await chat.refused(run, approved(message), twice)
    await chat.refused(run, approved(message, "W0ANA"), twice, "W0ANA")
    people = Path(chat.settings["sluice_slack_people_file"])
    for text in ("U0ANA ana\nU0ANA ben\n", "ana\n", "\udcff"):
        people.write_bytes(text.encode("utf-8", "surrogateescape"))
        await chat.refused(run, approved(message), "the page had an error")
        assert str(people) not in chat.answers("chat.postEphemeral")[-1]["text"]
    await send(chat.page(sluice_slack_people_file=""), approved(message, "U0ANA"))
    assert "belongs to nobody here" in chat.answers("chat.postEphemeral")[-1]["text"]
    people.write_text("U0CLEO cleo\n")  # read again, without a restart
    await send(chat.page(), approved(message, "U0CLEO"))
    result = await run.end()
    assert result.approval and [each.by for each in result.approval.decisions] == ["ana", "cleo"]


async def test_two_people_press_at_the_same_time_and_one_twice(chat: OnSlack) -> None:
    run = await chat.start(RequiredApproval(required=2))
    (message,) = chat.posted
    presses = [send(chat.page(), approved(message, member)) for member in ("U0ANA", "U0BEN", "U0ANA", "U0BEN")]
    assert {each.status for each in await asyncio.gather(*presses)} == {200}
    result = await run.end()
    assert result.approval and sorted(each.by for each in result.approval.decisions) == ["ana", "ben"]
    assert len(chat.answers("chat.postEphemeral")) == 2


async def test_a_signature_cannot_be_given_on_slack(chat: OnSlack, tmp_path: Path) -> None:
    """Not even by the key of the page's owner, who did not decide."""
    run = await chat.start(RequiredApproval(required=1, signed=True))
    (message,) = chat.posted
    assert button(message, APPROVE) is None and button(message, REJECT) is None
    await run.handle.cancel()
    await run.end()
    chat.slack.messages.clear()
    (tmp_path / "key").write_text(new_approver_key()[0])
    other = await chat.start(RequiredApproval(required=1))
    page = browser(
        chat.harness.client, "ana", signed_in=False, sluice_approval_key_file=str(tmp_path / "key"), **chat.settings
    )
    await send(page, approved(chat.posted[0]))
    result = await other.end()
    assert result.approval and [(each.by, each.signature) for each in result.approval.decisions] == [("ana", "")]


async def test_a_waiver_needs_the_page(chat: OnSlack) -> None:
    async def audit(_: Any, __: int) -> AuditResult:
        failed = CheckResult(table="t.x", index=0, check="unique", columns=["id"], verdict="fail", failed_rows=2)
        return AuditResult(decided=[failed])

    chat.harness.fakes.overrides["audit_branch"] = audit
    run = await chat.start(tables={"t.x": {"checks": [{"check": "unique", "column": "id", "waivable": True}]}})
    (message,) = chat.posted
    assert button(message, APPROVE) is None
    forged = rejected(message)
    forged["actions"][0]["action_id"] = APPROVE
    await chat.refused(run, forged, "an approval has to waive unique(id) of t.x")
    await send(chat.page(), rejected(message))
    await send(chat.page(), submitted(chat.answers("views.open")[0]["view"], "late feed"))
    assert (await run.end()).cause == "rejected"


async def test_a_run_that_does_not_exist_and_a_slack_that_does_not_answer(chat: OnSlack) -> None:
    run = await chat.start()
    (message,) = chat.posted
    missing = approved(message)
    value = json.loads(missing["actions"][0]["value"])
    missing["actions"][0]["value"] = json.dumps({**value, "run_id": "00000000-0000-0000-0000-000000000000"})
    await send(chat.page(), missing)
    assert "There is no run" in chat.answers("chat.postEphemeral")[-1]["text"]
    chat.slack.status, chat.slack.answer = 500, {"ok": False, "error": "fatal_error"}
    assert (await send(chat.page(), rejected(message))).status == 200
    assert (await send(chat.page(), approved(message))).status == 200
    chat.slack.status, chat.slack.answer = 200, {"ok": True}
    assert (await run.end()).outcome == "published", "the decision counts, although its answer was not shown"
