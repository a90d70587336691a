"""The order of steps: every ending, with fakes of all activities and time that skips.

The server is Temporal's time-skipping test server: a day of waiting passes in moments.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from runtime.run.find_run import query_status
from sluice.approval.decisions import Decision
from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditResult
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.publish import Publication
from sluice.contracts.quarantine import QuarantineBranchInput
from sluice.contracts.references import BranchRef
from sluice.contracts.run import Notification
from sluice.contracts.write import JobReport, OpenBranchInput, WriteResult, WriteTableInput
from sluice.notifications.message import Message, message_of_run
from sluice.publishing.load_properties import REQUEUED_RUNS
from tests.harness.waiting import in_time
from tests.harness.workflow import HEAD, MERGED, WorkflowHarness, fails_for_good, fails_with_a_bug, opened
from workflows.write_audit_publish import WriteAuditPublish


async def test_published(harness: WorkflowHarness) -> None:
    result = await harness.end(await harness.start())
    assert (result.outcome, result.main_after, result.branch) == ("published", "2", None)
    assert harness.fakes.steps == [
        *("open_branch", "write_table", "verify_write", "audit_branch"),
        *("require_approval", "publish_branch", "discard_branch", "start_registrations"),
        *("record_run", "can_notify", "notify"),
    ]


async def test_a_run_that_is_not_to_publish_ends_checked(harness: WorkflowHarness) -> None:
    """The run asks neither people nor main, and a conflict with main changes nothing."""

    async def moved(_: Any, __: int) -> WriteResult:
        return WriteResult(head=HEAD, tables={}, conflicts=["t.x"])

    async def opens_without_publishing(given: OpenBranchInput, _: int) -> BranchRef:
        assert not given.publish
        return opened(given.run_ref.branch)

    harness.fakes.overrides |= {"verify_write": moved, "open_branch": opens_without_publishing}
    result = await harness.end(await harness.start(publish=False, approval={"timeout": "3d"}))
    assert (result.outcome, result.cause, result.main_after, result.branch) == ("checked", "checked", None, None)
    assert harness.fakes.steps == [
        *("open_branch", "write_table", "verify_write", "audit_branch", "checkpoint", "discard_branch", "record_run"),
    ]


async def test_a_run_that_is_not_to_publish_keeps_nothing_of_a_failed_audit(harness: WorkflowHarness) -> None:
    async def fails(_: Any, __: int) -> AuditResult:
        verdict = CheckResult(table="t.x", index=0, check="row_count", columns=[], verdict="fail")
        return AuditResult(decided=[verdict])

    harness.fakes.overrides["audit_branch"] = fails
    result = await harness.end(
        await harness.start(publish=False, tables={"t.x": {"checks": [{"check": "row_count", "min": 1}]}})
    )
    assert (result.outcome, result.cause) == ("discarded", "audit")
    assert "quarantine_branch" not in harness.fakes.calls and "discard_branch" in harness.fakes.calls


async def test_the_quarantine_of_a_requeue_names_the_runs_that_had_its_rows_first(harness: WorkflowHarness) -> None:
    async def fails(_: Any, __: int) -> AuditResult:
        return AuditResult(decided=[CheckResult(table="t.x", index=0, check="row_count", columns=[], verdict="fail")])

    async def keeps(given: QuarantineBranchInput, _: int) -> str:
        assert given.properties[REQUEUED_RUNS] == "r1,r2"
        return given.name

    harness.fakes.overrides |= {"audit_branch": fails, "quarantine_branch": keeps}
    tables = {"t.x": {"checks": [{"check": "row_count", "min": 1}]}}
    result = await harness.end(await harness.start(order=LoadOrder(files_of_runs=["r1", "r2"]), tables=tables))
    assert result.outcome == "quarantined"


@pytest.mark.parametrize("on_failure", ["quarantine", "discard"])
async def test_the_reason_of_a_run_is_not_also_the_note_of_its_last_stage(
    harness: WorkflowHarness, on_failure: str
) -> None:
    """A person who follows the run reads the note of each stage, and then the reason."""

    async def fails(_: Any, __: int) -> AuditResult:
        return AuditResult(decided=[CheckResult(table="t.x", index=0, check="row_count", columns=[], verdict="fail")])

    harness.fakes.overrides["audit_branch"] = fails
    tables = {"t.x": {"checks": [{"check": "row_count", "min": 1}]}}
    handle = await harness.start(tables=tables, on_failure=on_failure)
    result = await harness.end(handle)
    status = await query_status(handle)
    assert status is not None and "the audit failed" in result.reason
    notes = {event.stage: event.note for event in status.events}
    assert notes["cleaning up"] == ("quarantine" if on_failure == "quarantine" else "delete") + " the branch"
    assert result.reason not in notes.values()


@pytest.mark.parametrize(("on_failure", "outcome"), [("quarantine", "quarantined"), ("discard", "discarded")])
async def test_no_answer_within_three_days_means_no(harness: WorkflowHarness, on_failure: str, outcome: str) -> None:
    handle = await harness.start(approval={"timeout": "3d"}, on_failure=on_failure)
    result = await harness.end(handle)
    assert (result.outcome, result.cause) == (outcome, "expired")
    assert result.timings["waiting for approval"] >= 3 * 86400
    assert "publish_branch" not in harness.fakes.calls
    assert harness.fakes.calls.count("notify") == 2


async def test_the_first_decision_counts_and_the_others_are_refused_with_a_reason(harness: WorkflowHarness) -> None:
    handle = await harness.start(approval={"timeout": "3d"})
    while (await handle.query(WriteAuditPublish.status)).stage != "waiting for approval":
        await asyncio.sleep(0.05)
    for decision, why in (
        (Decision(approve=True, by=" "), "needs the name"),
        (Decision(approve=True, by="ana", audited_hash="cd" * 32), "look again"),
    ):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update(WriteAuditPublish.decide, decision)
        assert why in str(refused.value.cause)
    await handle.signal(WriteAuditPublish.reject, Decision(by=""))
    recorded = await handle.execute_update(
        WriteAuditPublish.decide, Decision(approve=True, by="ana", audited_hash=HEAD, reason="fine")
    )
    assert (recorded.by, recorded.reason, recorded.audited_hash) == ("ana", "fine", HEAD)
    result = await harness.end(handle)
    assert result.outcome == "published" and result.approval
    (refused_decision,) = result.approval.refused
    assert refused_decision.why == "a decision needs the name of the person who decides: set `by`"


async def test_people_decide_with_the_tools_of_temporal(harness: WorkflowHarness) -> None:
    """Temporal's CLI and Web UI send JSON: the signals by their names, the update with `approve`."""
    handle = await harness.start(approval={"required": 2, "timeout": "3d"})
    while (await handle.query(WriteAuditPublish.status)).stage != "waiting for approval":
        await asyncio.sleep(0.05)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("decide", {"by": "ana"})
    assert "needs `approve`" in str(refused.value.cause)
    recorded = await handle.execute_update("decide", {"approve": True, "by": "ana", "reason": "fine"})
    assert recorded.keys() == {
        *("approve", "by", "reason", "audited_hash", "at", "audit_digest", "said_at", "signature", "waivers"),
    }
    await handle.signal("reject", {"by": "ben", "reason": "not today"})
    result = await harness.end(handle)
    assert (result.cause, result.reason) == ("rejected", "rejected by ben: not today")


async def test_a_decision_before_anything_waits_is_refused(harness: WorkflowHarness) -> None:
    release = asyncio.Event()

    async def slow(_: Any, __: int) -> JobReport:
        await release.wait()
        return JobReport()

    harness.fakes.overrides["write_table"] = slow
    handle = await harness.start(approval={"timeout": "1h"})
    await handle.signal(WriteAuditPublish.approve, Decision(by="eager"))
    with pytest.raises(WorkflowUpdateFailedError):
        await handle.execute_update(WriteAuditPublish.decide, Decision(approve=True, by="eager"))
    release.set()
    assert (await harness.end(handle)).cause == "expired"


STEPS = ["open_branch", "write_table", "verify_write", "audit_branch", "publish_branch"]
_AFTER_LOCAL_ACTIVITIES = {"open_branch": "write_table", "verify_write": "audit_branch"}
"""The run notices a cancel during a local activity only after the activity; by then, the next step has begun."""


@pytest.mark.parametrize("step", STEPS)
async def test_a_cancel_during_each_step(harness: WorkflowHarness, step: str) -> None:
    """The step ends before the clean-up begins. If a merge happened anyway, the run is published."""
    entered, cancelled, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def until_cancelled(_: Any, __: int) -> Any:
        entered.set()
        try:
            while True:
                await asyncio.sleep(0.05)
                activity.heartbeat()
        finally:
            ended.set()

    async def to_its_end(order: Any, _: int) -> Any:
        """Complete: an activity without heartbeats does not notice a cancel, and the run is cancelled afterwards."""
        entered.set()
        await cancelled.wait()
        await asyncio.sleep(0.5)
        ended.set()
        best: dict[str, Callable[[], Any]] = {
            "open_branch": lambda: opened(order.run_ref.branch),
            "verify_write": lambda: WriteResult(head=HEAD, tables={}),
            "audit_branch": lambda: AuditResult(decided=[]),
            "publish_branch": lambda: MERGED,
        }
        return best[step]()

    async def a_moment(_: Any, __: int) -> Any:
        await cancelled.wait()
        await asyncio.sleep(0.5)
        return JobReport() if step == "open_branch" else AuditResult(decided=[])

    cleaned: list[bool] = []

    async def clean(_: Any, __: int) -> None:
        cleaned.append(ended.is_set())

    harness.fakes.overrides[step] = until_cancelled if step == "write_table" else to_its_end
    if step in _AFTER_LOCAL_ACTIVITIES:
        harness.fakes.overrides[_AFTER_LOCAL_ACTIVITIES[step]] = a_moment
    harness.fakes.overrides["discard_branch"] = clean
    handle = await harness.start()
    await in_time(entered.wait())
    await handle.cancel()
    cancelled.set()
    result = await harness.end(handle)
    assert result.outcome == ("published" if step == "publish_branch" else "cancelled")
    assert cleaned == [True]
    assert "publish_branch" not in harness.fakes.calls or step == "publish_branch"


async def test_a_cancel_that_a_merge_learns_of_in_time(harness: WorkflowHarness) -> None:
    """The activity notices it by a heartbeat, as while it lets another run merge first."""
    entered = asyncio.Event()

    async def until_cancelled(_: Any, __: int) -> Any:
        entered.set()
        while True:
            await asyncio.sleep(0.05)
            activity.heartbeat()

    harness.fakes.overrides["publish_branch"] = until_cancelled
    handle = await harness.start()
    await in_time(entered.wait())
    await handle.cancel()
    result = await harness.end(handle)
    assert (result.outcome, result.branch) == ("cancelled", None)
    assert harness.fakes.calls.count("publish_branch") == 1 and "discard_branch" in harness.fakes.calls


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_checkpoint_that_fails_fails_nothing_else(harness: WorkflowHarness, is_cancelled: bool) -> None:
    """A checkpoint fails if no worker comes back in time. The run is compensated, and a cancel is not lost."""
    entered, may_fail = asyncio.Event(), asyncio.Event()

    async def fails(_: Any, times: int) -> Any:
        entered.set()
        await may_fail.wait()
        await asyncio.sleep(0.3 if times == 1 else 0)
        raise ApplicationError("no worker", non_retryable=True)

    async def collide(_: Any, times: int) -> Publication:
        return MERGED if times > 1 else Publication(merged=False, conflicts=["t.x"])

    harness.fakes.overrides |= {"checkpoint": fails, "publish_branch": collide}
    handle = await harness.start()
    await in_time(entered.wait())
    if is_cancelled:
        await handle.cancel()
    may_fail.set()
    result = await harness.end(handle)
    assert (result.outcome, result.branch) == ("cancelled" if is_cancelled else "published", None)
    assert harness.fakes.calls.count("checkpoint") == 2 and harness.fakes.calls[-1] == "notify"


async def test_a_cancel_while_people_decide(harness: WorkflowHarness) -> None:
    handle = await harness.start(approval={"timeout": "3d"})
    while (await handle.query(WriteAuditPublish.status)).stage != "waiting for approval":
        await asyncio.sleep(0.05)
    await handle.cancel()
    result = await harness.end(handle)
    assert (result.outcome, result.branch) == ("cancelled", None)
    assert harness.fakes.calls[-4:] == ["discard_branch", "record_run", "can_notify", "notify"]


async def test_a_cancel_that_shows_as_a_failure(harness: WorkflowHarness) -> None:
    """The worker died together with the activity that was to be cancelled."""
    entered, may_die = asyncio.Event(), asyncio.Event()

    async def dies(_: Any, __: int) -> Any:
        entered.set()
        await may_die.wait()
        await asyncio.sleep(0.3)
        raise ApplicationError("heartbeat timeout", type="TimeoutError", non_retryable=True)

    harness.fakes.overrides["audit_branch"] = dies
    handle = await harness.start()
    await in_time(entered.wait())
    await handle.cancel()
    may_die.set()
    assert (await harness.end(handle)).outcome == "cancelled"


async def test_a_write_that_keeps_failing(harness: WorkflowHarness) -> None:
    """Each attempt is fenced before the next. The branch of the last one is kept for inspection."""
    branches: list[str] = []

    async def fail(order: WriteTableInput, _: int) -> Any:
        branches.append(order.branch)
        raise ApplicationError("it broke", type="JobFailed")

    harness.fakes.overrides["write_table"] = fail
    handle = await harness.start(write={"job": "job.py", "attempts": 3})
    result = await harness.end(handle)
    assert (result.outcome, result.attempts, result.reason) == ("failed", 3, "it broke")
    assert len(set(branches)) == 3
    assert harness.fakes.steps == [
        *(("open_branch", "write_table", "checkpoint", "discard_branch", "confirm_publication") * 2),
        *("open_branch", "write_table", "checkpoint", "quarantine_branch", "record_run", "can_notify", "notify"),
    ]
    assert result.branch and result.branch.startswith("quarantine/p/")


async def test_invalid_input_is_not_tried_again_and_leaves_nothing(harness: WorkflowHarness) -> None:
    harness.fakes.overrides["write_table"] = fails_for_good
    result = await harness.end(await harness.start())
    assert (result.outcome, result.cause, result.attempts, result.branch) == ("failed", "invalid", 1, None)
    assert harness.fakes.steps == [
        *("open_branch", "write_table", "checkpoint", "discard_branch", "record_run", "can_notify", "notify"),
    ]


async def test_the_message_of_a_run_that_wrote_nothing_names_the_tables_of_its_pipeline(
    harness: WorkflowHarness,
) -> None:
    messages: list[Message] = []

    async def notify(notification: Notification, _: int) -> None:
        messages.append(message_of_run(notification, ""))

    harness.fakes.overrides.update({"write_table": fails_for_good, "notify": notify})
    handle = await harness.start()
    result = await harness.end(handle)
    assert (result.outcome, result.tables, [each.tables for each in messages]) == ("failed", {}, [["t.x"]])


async def test_a_bug_leaves_the_branch_for_a_look(harness: WorkflowHarness) -> None:
    harness.fakes.overrides["audit_branch"] = fails_with_a_bug
    result = await harness.end(await harness.start())
    assert (result.outcome, result.cause, result.reason) == ("failed", "error", "a bug")
    assert harness.fakes.calls[-4:] == ["quarantine_branch", "record_run", "can_notify", "notify"]


async def test_a_merge_whose_answer_was_lost_is_believed(harness: WorkflowHarness) -> None:
    harness.fakes.overrides["publish_branch"] = fails_with_a_bug

    async def it_is_there(_: Any, __: int) -> Publication:
        return MERGED

    harness.fakes.overrides["confirm_publication"] = it_is_there
    result = await harness.end(await harness.start())
    assert (result.outcome, result.main_after, result.branch, result.reason) == ("published", "2", None, "")
    order = [name for name in harness.fakes.calls if name in ("quarantine_branch", "confirm_publication")]
    assert order == ["quarantine_branch", "confirm_publication"]


@pytest.mark.parametrize("activity", ["notify", "record_run", "discard_branch"])
async def test_what_fails_after_the_merge_changes_nothing(harness: WorkflowHarness, activity: str) -> None:
    harness.fakes.overrides[activity] = fails_with_a_bug
    result = await harness.end(await harness.start())
    assert result.outcome == "published"


async def test_nobody_is_to_be_told(harness: WorkflowHarness) -> None:
    async def nobody(_: Any, __: int) -> bool:
        return False

    harness.fakes.overrides["can_notify"] = nobody
    assert (await harness.end(await harness.start())).outcome == "published"
    assert "notify" not in harness.fakes.calls
