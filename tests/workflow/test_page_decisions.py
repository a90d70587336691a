"""Decisions on the page about runs in Temporal: what was shown is what is decided, and each refusal says why."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.testing import WorkflowEnvironment

from sluice.approval.approvers import Approvers
from sluice.approval.decisions import Decision
from sluice.approval.required import RequiredApproval
from sluice.approval.signatures import new_approver_key, verification_error
from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditResult
from sluice.contracts.publish import Publication, PublishBranchInput
from tests.harness.page import SECRET, browser
from tests.harness.waiting import in_time
from tests.harness.waiting_run import WaitingRun, form_of, in_days, notice, started
from tests.harness.workflow import HEAD, MERGED, NEWER, WorkflowHarness
from workflows.write_audit_publish import WriteAuditPublish

CHECKS: list[dict[str, Any]] = [{"check": "unique", "column": "id", "waivable": True}]
CONFLICT = 409


@pytest.fixture(autouse=True)
def _real_time(own_time_skipping: WorkflowEnvironment) -> Iterator[None]:
    """Skip no time, because the page compares the end of a waiver with the clock of this machine."""
    with own_time_skipping.auto_time_skipping_disabled():
        yield


@pytest.fixture
async def run(own_harness: WorkflowHarness) -> AsyncIterator[WaitingRun]:
    """A run that waits for one approval."""
    run = await started(own_harness)
    yield run
    assert (await run.handle.describe()).status != WorkflowExecutionStatus.RUNNING, "the test leaves no run open"


async def test_approve(run: WaitingRun) -> None:
    page = run.page()
    shown = await page.get(run.path)
    assert shown.status == 200 and f'Approve <code class="hash" title="{HEAD}">{HEAD[:7]}</code>' in shown.text
    assert re.search(r"data-deadline>Until \d{4}-.* UTC</time></strong>\. 1 approval is missing\.", shown.text)
    answer = await run.submit(page, form_of(shown), reason="looks right <script>")
    assert (answer.status, answer.headers["location"]) == (303, f"{run.path}#decisions")
    result = await run.end()
    assert result.outcome == "published" and result.approval
    (decision,) = result.approval.decisions
    assert (decision.by, decision.reason, decision.audited_hash) == ("ana", "looks right <script>", HEAD)
    assert decision.audit_digest and decision.said_at and not decision.signature
    ended = await page.get(run.path)
    assert "looks right &lt;script&gt;" in ended.text and "Your decision" not in ended.text
    assert re.search(r"<title>p \w{8}: published · Sluice</title>", ended.text)
    again = await run.submit(page, form_of(shown))
    assert again.status == CONFLICT and notice(again) == "Nothing was decided: the run has ended."


async def test_a_report_that_changed_is_not_approved(own_harness: WorkflowHarness) -> None:
    async def conflict_once(_: PublishBranchInput, call: int) -> Publication:
        return MERGED if call > 1 else Publication(merged=False, conflicts=["t.x"])

    own_harness.fakes.overrides["publish_branch"] = conflict_once
    run = await started(own_harness)
    page = run.page()
    old = form_of(await page.get(run.path))
    await run.handle.execute_update(WriteAuditPublish.decide, Decision(approve=True, by="ben"))
    await run.waits(NEWER)
    answer = await run.submit(page, old)
    assert answer.status == CONFLICT
    assert notice(answer) == (
        "Nothing was decided: the data changed since this page was opened: abababa is now cdcdcdc. "
        "Reload the page, then decide."
    )
    new = form_of(answer)
    assert new["report"] != old["report"], "the answer shows what waits now"
    other = await run.submit(page, {**new, "report": f"{NEWER[:12]}:{'0' * 12}"})
    assert "the audit of cdcdcdc has other results now" in notice(other)
    for report in (NEWER, NEWER[:12], new["report"].upper(), f"{new['report']} "):
        assert (await run.submit(page, {**new, "report": report})).status == CONFLICT
    assert not await run.decisions()
    assert (await run.submit(page, new)).status == 303
    result = await run.end()
    assert result.outcome == "published" and result.approval
    assert [(each.by, each.audited_hash) for each in result.approval.decisions] == [("ana", NEWER)]


async def test_reject_needs_a_reason(run: WaitingRun) -> None:
    page = run.page()
    form = form_of(await page.get(run.path))
    answer = await run.submit(page, form, "reject", reason="  ")
    assert answer.status == CONFLICT and notice(answer) == "Nothing was decided: a rejection needs a reason."
    assert (await run.submit(page, form, "reject", reason="not yet")).status == 303
    result = await run.end()
    assert (result.outcome, result.cause) == ("quarantined", "rejected") and result.approval
    assert [(each.approve, each.by, each.reason) for each in result.approval.decisions] == [(False, "ana", "not yet")]
    assert "rejected" in (await page.get(run.path)).text


async def test_two_people_are_required(own_harness: WorkflowHarness) -> None:
    run = await started(own_harness, RequiredApproval(required=2))
    ana, ben = run.page("ana"), run.page("ben")
    form = form_of(await ana.get(run.path))
    assert (await run.submit(ana, form)).status == 303
    mine = await ana.get(run.path)
    assert "You approved it already. Another person has to decide, too." in mine.text
    assert (
        '<button class="button primary wide" disabled>' in mine.text
        and "1 approval is missing. 1 of 2 is given." in mine.text
    )
    again = await run.submit(ana, form)
    assert again.status == CONFLICT and "ana decided already; 2 different people are required" in notice(again)
    other = await ben.get(run.path)
    assert '<button class="button primary wide">' in other.text
    assert (await run.submit(ben, form_of(other))).status == 303
    result = await run.end()
    assert result.approval and [each.by for each in result.approval.decisions] == ["ana", "ben"]


async def test_four_eyes(own_harness: WorkflowHarness) -> None:
    run = await started(own_harness, RequiredApproval(required=1, starter="ana@laptop"))
    ana, ben = run.page("ana"), run.page("ben")
    mine = await ana.get(run.path)
    assert "ana@laptop started the run, and four eyes are required" in mine.text
    assert '<button class="button primary wide" disabled>' in mine.text
    refused = await run.submit(ana, form_of(mine))
    assert refused.status == CONFLICT and "four eyes are required" in notice(refused)
    assert (await run.submit(ben, form_of(await ben.get(run.path)))).status == 303
    await run.end()


async def test_decided_in_another_tab_while_the_run_goes_on(own_harness: WorkflowHarness) -> None:
    publishing, go_on = asyncio.Event(), asyncio.Event()

    async def publish(_: PublishBranchInput, __: int) -> Publication:
        publishing.set()
        await go_on.wait()
        return MERGED

    own_harness.fakes.overrides["publish_branch"] = publish
    run = await started(own_harness)
    page = run.page("ben")
    form = form_of(await page.get(run.path))
    other = run.page("ana")
    assert (await run.submit(other, form_of(await other.get(run.path)))).status == 303
    await in_time(publishing.wait())
    for decision in ("approve", "reject"):
        answer = await run.submit(page, form, decision, reason="late")
        assert answer.status == CONFLICT
        assert notice(answer) == (
            "Nothing was decided: the run does not wait for a decision: it is publishing. "
            "It was approved by ana already."
        )
        assert "Your decision</h2>" not in answer.text
    go_on.set()
    assert (await run.end()).outcome == "published"


async def test_cancel(run: WaitingRun) -> None:
    page = run.page()
    form = {"form_token": form_of(await page.get(run.path))["form_token"]}
    answer = await page.post_form(f"{run.path}/cancel", {**form})
    assert (answer.status, answer.headers["location"]) == (303, run.path)
    assert (await run.end()).outcome == "cancelled"
    again = await page.post_form(f"{run.path}/cancel", {**form})
    assert again.status == CONFLICT and notice(again) == "Nothing was cancelled: the run has ended."
    assert "Cancel this run" not in again.text


async def test_a_signed_decision(run: WaitingRun, tmp_path: Path) -> None:
    pem, public = new_approver_key()
    (tmp_path / "key").write_text(pem)
    page = run.page(key=tmp_path / "key")
    assert (await run.submit(page, form_of(await page.get(run.path)))).status == 303
    result = await run.end()
    assert result.approval
    (decision,) = result.approval.decisions
    assert verification_error(decision, result.run_id, Approvers({"ana": public})) == ""
    assert verification_error(decision, "another run", Approvers({"ana": public})) != ""
    assert "<td>signed</td>" in (await page.get(run.path)).text


async def test_a_key_that_cannot_be_read_decides_nothing(run: WaitingRun, tmp_path: Path) -> None:
    page = run.page(key=tmp_path / "missing")
    form = form_of(await page.get(run.path))
    answer = await run.submit(page, form)
    assert answer.status == 500 and "SLUICE_APPROVAL_KEY_FILE" in answer.text
    assert not await run.decisions()
    assert (await run.submit(run.page(), form)).status == 303
    await run.end()


async def test_waive_a_failed_check(own_harness: WorkflowHarness) -> None:
    async def audit(_: Any, __: int) -> AuditResult:
        failed = CheckResult(
            table="t.x", index=0, check="unique", columns=["id"], verdict="fail", failed_rows=2, observed=2
        )
        return AuditResult(decided=[failed])

    own_harness.fakes.overrides["audit_branch"] = audit
    run = await started(own_harness, tables={"t.x": {"checks": CHECKS}})
    page = run.page()
    shown = await page.get(run.path)
    assert 'name="waive" value="unique(id)" required' in shown.text
    assert "blocks until an approval waives it" in shown.text and "1 check blocks the merge" in shown.text
    form = form_of(shown)
    for fields, why in (
        ({}, "has to waive unique(id) of t.x"),
        ({"waive": "unique(id)", "until": in_days(5)}, "a waiver needs a reason"),
        ({"waive": "unique(id)", "reason": "late feed"}, "a waiver needs an end"),
        ({"waive": "unique(id)", "reason": "late feed", "until": in_days(-1)}, "has to end in the future"),
        ({"waive": "unique(id)", "reason": "late feed", "until": in_days(400)}, "90 days"),
        ({"waive": "not_null(id)", "reason": "late feed", "until": in_days(5)}, "is not a failed check"),
        ({"reason": "late feed", "until": in_days(5)}, "name the check"),
    ):
        answer = await run.submit(page, form, **fields)
        assert answer.status == CONFLICT and why in notice(answer), (fields, answer.text)
    answer = await run.submit(page, form, waive=["unique(id)"], reason="late feed", until=in_days(5))
    assert answer.status == 303, notice(answer)
    result = await run.end()
    assert result.outcome == "published"
    (waived,) = result.waived
    assert (waived.check, waived.by, waived.reason, waived.until[:10]) == (
        "unique(id)",
        ["ana"],
        "late feed",
        in_days(5),
    )
    ended = await page.get(run.path)
    assert "does not block: waived by ana until" in ended.text and "Nothing blocks the merge" in ended.text


async def test_programs_decide_by_the_api(run: WaitingRun) -> None:
    page = browser(run.harness.client, signed_in=False)
    bearer = {"authorization": f"Bearer {SECRET}"}
    status = (await page.get(f"/api/runs/{run.handle.id}", **bearer)).json
    assert (status["stage"], status["audited_hash"]) == ("waiting for approval", HEAD)
    path = f"/api/runs/{run.handle.id}/decision"
    request = {"decision": "approve", "report": f"{HEAD}:{status['audit_digest']}"}
    for fields, code, why in (
        ({"report": f"{NEWER}:{status['audit_digest']}"}, CONFLICT, "the run waits with abababababab"),
        ({"report": f"{HEAD}:{'0' * 64}"}, CONFLICT, "the audit report changed"),
        ({"decision": "reject"}, CONFLICT, "a rejection needs a reason"),
        ({"until": in_days(5)}, CONFLICT, "name the check"),
        ({"decision": "maybe"}, 400, "decision"),
        ({"report": None}, 400, "report"),
    ):
        answer = await page.post_json(path, {**request, **fields}, **bearer)
        assert answer.status == code and why in answer.json["error"], answer.text
    answer = await page.post_json(path, {**request, "by": "ben", "reason": "fine"}, **bearer)
    assert answer.status == 200 and (answer.json["by"], answer.json["audited_hash"]) == ("ben", HEAD)
    await run.end()
    ended = (await page.get(f"/api/runs/{run.handle.id}", **bearer)).json
    assert (ended["stage"], ended["outcome"]) == ("ended", "published")
    again = await page.post_json(path, request, **bearer)
    assert again.status == CONFLICT and "the run has ended" in again.json["error"]


async def test_a_run_that_does_not_exist(run: WaitingRun) -> None:
    page = run.page()
    for path in (f"/runs/{run.handle.id}/00000000-0000-0000-0000-000000000000", "/runs/p-000000000000/no-id"):
        answer = await page.get(path)
        assert answer.status == 404 and "There is no run" in answer.text
    form = form_of(await page.get(run.path))
    for action in ("decision", "cancel"):
        assert (await page.post_form(f"/runs/p-000000000000/no-id/{action}", {**form})).status == 404
    await run.submit(page, form)
    await run.end()


async def test_nobody_decides_in_time(harness: WorkflowHarness) -> None:
    """The server of this test skips three days."""
    run = await started(harness)
    page = run.page()
    form = form_of(await page.get(run.path))
    result = await harness.end(run.handle)
    assert (result.outcome, result.cause) == ("quarantined", "expired")
    answer = await run.submit(page, form)
    assert answer.status == CONFLICT and notice(answer) == "Nothing was decided: the run has ended."
    assert "Nobody decided." in answer.text
