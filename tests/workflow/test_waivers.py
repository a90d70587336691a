"""Waivers: a run that fails only waivable checks waits for people, and names the waiver under which it published."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter
from temporalio.client import WorkflowExecutionStatus, WorkflowUpdateFailedError

from runtime.run.find_run import Handle
from sluice.approval.decisions import Decision
from sluice.approval.waivable import check_fingerprint
from sluice.approval.waivers import WaivedCheck, Waiver
from sluice.checks.base import Check
from sluice.checks.registry import AnyCheck
from sluice.checks.verdicts import CheckResult, Verdict
from sluice.contracts.audit import AuditResult
from sluice.contracts.publish import FindWaiversInput, Publication, PublishBranchInput
from sluice.contracts.run import Notification, RunResult, RunStatus
from sluice.publishing.commit_properties import WAIVED_CHECKS
from sluice.publishing.exit_codes import exit_code
from tests.harness.waiting import until as eventually
from tests.harness.workflow import HEAD, MERGED, NEWER, WorkflowHarness
from workflows.write_audit_publish import WriteAuditPublish

CHECKS: list[dict[str, Any]] = [
    {"check": "unique", "column": "id", "waivable": True},
    {"check": "not_null", "column": "id", "waivable": True},
    {"check": "not_null", "column": "name"},
]
TABLES = {"t.x": {"checks": CHECKS}}


class WaivableRun:
    """A run whose checks get verdicts from the test, with a record of its activities' inputs."""

    def __init__(self, harness: WorkflowHarness, *verdicts: Verdict, in_force: Sequence[WaivedCheck] = ()) -> None:
        self.harness, self.verdicts, self.in_force = harness, verdicts, list(in_force)
        self.published: list[PublishBranchInput] = []
        self.looked_up: list[FindWaiversInput] = []
        self.notified: list[Notification] = []
        self.conflicts = 0
        harness.fakes.overrides |= {
            "audit_branch": self._audit,
            "publish_branch": self._publish,
            "find_waivers": self._find_waivers,
            "notify": self._notify,
        }

    async def _audit(self, _: Any, __: int) -> AuditResult:
        return AuditResult(
            decided=[
                CheckResult(
                    table="t.x",
                    index=index,
                    check=check["check"],
                    columns=[check["column"]],
                    verdict=self.verdicts[index] if index < len(self.verdicts) else "pass",
                )
                for index, check in enumerate(CHECKS)
            ]
        )

    async def _publish(self, input: PublishBranchInput, call: int) -> Publication:
        self.published.append(input)
        return MERGED if call > self.conflicts else Publication(merged=False, conflicts=["t.x"])

    async def _find_waivers(self, input: FindWaiversInput, _: int) -> list[WaivedCheck]:
        self.looked_up.append(input)
        by_key = {check.key: check for check in input.checks}
        return [each.model_copy(update={"index": by_key[each.key].index}) for each in self.in_force]

    async def _notify(self, notification: Notification, _: int) -> None:
        self.notified.append(notification)

    async def start(self, **pipeline: Any) -> Handle:
        return await self.harness.start(**{"tables": TABLES, **pipeline})

    async def waiting(self, handle: Handle, audited_hash: str = HEAD) -> RunStatus:
        while True:
            status = await handle.query(WriteAuditPublish.status)
            if (status.stage, status.result.audited_hash) == ("waiting for approval", audited_hash):
                return status
            await asyncio.sleep(0.05)


def until(status: RunStatus, **delta: float) -> str:
    """Return a time after a run began to wait, by the clock of the server, which skips time."""
    return (datetime.fromisoformat(status.events[-1].at) + timedelta(**delta)).isoformat(timespec="seconds")


def waive(status: RunStatus, *checks: str, by: str = "ana", **fields: Any) -> Decision:
    """Return an approval that waives checks by their titles, as a raw signal would."""
    given = {"reason": "late feed", "until": until(status, days=5), **fields}
    return Decision(approve=True, by=by, waivers=[Waiver(check=check, **given) for check in checks])


async def refused(handle: Handle, decision: Decision) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as failure:
        await handle.execute_update(WriteAuditPublish.decide, decision)
    return str(failure.value.cause)


async def decide(handle: Handle, decision: Decision) -> Decision:
    return await handle.execute_update(WriteAuditPublish.decide, decision)


async def ended(harness: WorkflowHarness, handle: Handle) -> RunResult:
    """Return the result of a run that waits for nothing: the server skips years while a result is awaited."""
    while (await handle.describe()).status == WorkflowExecutionStatus.RUNNING:
        await asyncio.sleep(0.05)
    return await harness.end(handle)


async def test_a_waived_check_is_published_and_named(harness: WorkflowHarness) -> None:
    run = WaivableRun(harness, "fail")
    handle = await run.start()
    status = await run.waiting(handle)
    assert status.result.approval and [each.check for each in status.result.approval.to_waive] == ["unique(id)"]
    note = status.events[-1].note
    assert "waive unique(id) of t.x: python run_workflow.py approve p-" in note and "--waive 'unique(id)'" in note
    await eventually(lambda: run.notified)  # the run waits before its message is sent
    assert run.notified[0].waiting_until and run.notified[0].result.approval == status.result.approval
    assert "pre-merge check" in [event.stage for event in status.events], "before people are asked"

    assert "has to waive unique(id) of t.x" in await refused(handle, Decision(approve=True, by="ana"))
    for wrong, why in (
        (waive(status, "not_null(id)"), "is not one of them"),
        (waive(status, "unique(id)", "unique(id)"), "twice"),
        (waive(status, "unique(id)", reason=" "), "needs a reason"),
        (waive(status, "unique(id)", reason="a\x1b[2J"), "without control"),
        (waive(status, "unique(id)", until="2020-01-01"), "in the future"),
        (waive(status, "unique(id)", until=until(status, days=3650)), "at the latest"),
        (waive(status, "unique(id)").model_copy(update={"audited_hash": NEWER}), "look again"),
        (waive(status, "unique(id)").model_copy(update={"approve": False}), "a rejection waives nothing"),
    ):
        assert why in await refused(handle, wrong), why
    await handle.signal(WriteAuditPublish.approve, Decision(by="eve"))  # as Temporal's own tools send it
    counted = await decide(handle, waive(status, "unique(id)"))
    assert counted.waivers[0].table == "t.x" and counted.waivers[0].fingerprint
    result = await ended(harness, handle)
    assert (result.outcome, result.cause) == ("published", None)
    (waived,) = result.waived
    assert (waived.check, waived.by, waived.run_id, waived.index) == ("unique(id)", ["ana"], result.run_id, 0)
    assert [check.verdict for check in result.checks] == ["fail", "pass", "pass"], "it is not made to pass"
    (input,) = run.published
    assert (
        input.approval.waived == [waived]
        and input.approval.decisions == [counted]
        and WAIVED_CHECKS in input.commit.properties
    )
    assert run.notified[-1].result.waived == [waived]
    assert result.approval and [each.by for each in result.approval.refused] == ["eve"]


async def test_a_signal_that_waives_counts_as_well(harness: WorkflowHarness) -> None:
    run = WaivableRun(harness, "fail", "fail")
    handle = await run.start()
    status = await run.waiting(handle)
    assert "has to waive not_null(id) of t.x" in await refused(handle, waive(status, "unique(id)"))
    await handle.signal(WriteAuditPublish.approve, waive(status, "unique(id)", "not_null(id)"))
    result = await ended(harness, handle)
    assert result.outcome == "published", result.reason
    assert len(result.waived) == 2


@pytest.mark.parametrize(
    "verdicts", [("error",), ("fail", "pass", "fail"), ("fail", "error"), ("pass", "pass", "fail")]
)
async def test_what_may_not_be_waived_ends_the_run_as_ever(
    harness: WorkflowHarness, verdicts: tuple[Verdict, ...]
) -> None:
    run = WaivableRun(harness, *verdicts)
    result = await ended(harness, await run.start())
    assert (result.outcome, result.cause, result.approval) == ("quarantined", "audit", None)
    assert run.looked_up == [] and not run.published


async def test_a_run_that_is_not_to_publish_waits_for_nobody(harness: WorkflowHarness) -> None:
    run = WaivableRun(harness, "fail")
    result = await harness.end(await harness.start(publish=False, tables=TABLES))
    assert (result.outcome, result.cause) == ("discarded", "audit") and run.looked_up == []


async def test_more_failures_than_may_be_waived(harness: WorkflowHarness) -> None:
    many = [{"check": "unique", "column": f"c{number}", "waivable": True} for number in range(21)]

    async def audit(_: Any, __: int) -> AuditResult:
        failed = [
            CheckResult(table="t.x", index=index, check="unique", columns=[f"c{index}"], verdict="fail")
            for index in range(len(many))
        ]
        return AuditResult(decided=failed)

    harness.fakes.overrides["audit_branch"] = audit
    result = await harness.end(await harness.start(tables={"t.x": {"checks": many}}))
    assert (result.outcome, result.cause) == ("quarantined", "audit")
    assert result.reason.endswith("; 21 checks failed, and at most 20 may be waived")


async def test_nobody_waives_in_time(harness: WorkflowHarness) -> None:
    run = WaivableRun(harness, "fail")
    result = await harness.end(await run.start(on_failure="discard"))
    assert (result.outcome, result.cause, exit_code(result)) == ("discarded", "audit", 3)
    assert "unique(id) of t.x" in result.reason and result.reason.endswith("; nobody waived that within 1d")
    assert result.approval and result.approval.expired and result.waived == [] and not run.published


async def test_one_of_two_is_not_enough(harness: WorkflowHarness) -> None:
    run = WaivableRun(harness, "fail")
    handle = await run.start(approval={"required": 2, "timeout": "3h"})
    status = await run.waiting(handle)
    await decide(handle, waive(status, "unique(id)"))
    assert "decided already" in await refused(handle, waive(status, "unique(id)"))
    assert "has to waive" in await refused(handle, Decision(approve=True, by="ben"))
    result = await harness.end(handle)
    assert result.cause == "audit" and result.reason.endswith("; 1 of 2 people waived that within 3h")
    assert result.waived == []


async def test_two_people_waive_and_the_earliest_end_holds(harness: WorkflowHarness) -> None:
    run = WaivableRun(harness, "fail")
    handle = await run.start(approval={"required": 2, "four_eyes": True, "timeout": "3h"})
    status = await run.waiting(handle)
    assert "four eyes are required" in await refused(handle, waive(status, "unique(id)", by="tester"))
    await decide(handle, waive(status, "unique(id)"))
    end = until(status, days=2)
    await decide(handle, waive(status, "unique(id)", by="ben", until=end))
    result = await ended(harness, handle)
    assert result.outcome == "published"
    assert [(each.by, each.until) for each in result.waived] == [(["ana", "ben"], end)]


async def test_a_rejection_is_a_rejection(harness: WorkflowHarness) -> None:
    run = WaivableRun(harness, "fail")
    handle = await run.start()
    await run.waiting(handle)
    await decide(handle, Decision(approve=False, by="ana", reason="fix it"))
    result = await harness.end(handle)
    assert (result.cause, result.reason, exit_code(result)) == ("rejected", "rejected by ana: fix it", 4)


def earlier(until: str = "2999-12-31T00:00:00+00:00") -> WaivedCheck:
    """Return a waiver of an earlier run. Its end is later than any year that the server has skipped to."""
    check = TypeAdapter[Check](AnyCheck).validate_python(CHECKS[0])
    names = {"table": "t.x", "index": 0, "check": "unique(id)", "fingerprint": check_fingerprint(check, "p")}
    return WaivedCheck(**names, by=["ana"], reason="late feed", until=until, run_id="r0", workflow_id="w0")


async def test_a_later_run_publishes_under_a_waiver_in_force_and_says_so(harness: WorkflowHarness) -> None:
    waived = earlier()
    run = WaivableRun(harness, "fail", in_force=[waived])
    result = await ended(harness, await run.start())
    assert result.outcome == "published", result.reason
    assert result.waived == [waived] and result.approval is None
    assert waived.run_id != result.run_id
    (input,) = run.published
    assert (
        input.approval.waived == [waived]
        and input.approval.decisions == []
        and waived.run_id in input.commit.properties[WAIVED_CHECKS]
    )
    (looked_up,) = run.looked_up
    assert [each.key for each in looked_up.checks] == [waived.key]
    assert [each.result.waived for each in run.notified] == [[waived]]


async def test_what_a_waiver_in_force_does_not_cover_has_to_be_waived(harness: WorkflowHarness) -> None:
    waived = earlier()
    run = WaivableRun(harness, "fail", "fail", in_force=[waived])
    handle = await run.start()
    status = await run.waiting(handle)
    assert status.result.waived == [waived] and status.result.approval
    assert [each.check for each in status.result.approval.to_waive] == ["not_null(id)"]
    assert "is not one of them" in await refused(handle, waive(status, "unique(id)", "not_null(id)"))
    await decide(handle, waive(status, "not_null(id)", by="ben"))
    result = await ended(harness, handle)
    assert [(each.check, each.by) for each in result.waived] == [("unique(id)", ["ana"]), ("not_null(id)", ["ben"])]
    assert run.published and run.published[0].approval.waived == result.waived, result.reason


async def test_a_waiver_in_force_replaces_no_approval(harness: WorkflowHarness) -> None:
    waived = earlier()
    run = WaivableRun(harness, "fail", in_force=[waived])
    handle = await run.start(approval={"timeout": "3h"})
    status = await run.waiting(handle)
    assert status.result.approval and status.result.approval.to_waive == [] and status.result.waived == [waived]
    assert "waive" not in status.events[-1].note
    await decide(handle, Decision(approve=True, by="ben"))
    assert (await ended(harness, handle)).outcome == "published"


async def test_a_waiver_that_ends_while_the_run_waits_does_not_publish_it(harness: WorkflowHarness) -> None:
    """It was in force at the audit, according to the activity. By the merge, it had ended more than an hour ago."""
    run = WaivableRun(harness, "fail", in_force=[earlier("2020-01-01T00:00:00+00:00")])
    handle = await run.start(approval={"timeout": "3d"})
    await run.waiting(handle)
    await decide(handle, Decision(approve=True, by="ben"))
    result = await ended(harness, handle)
    assert (result.outcome, result.cause) == ("quarantined", "audit") and not run.published
    assert result.reason.endswith("; the waiver of unique(id) of t.x ended before the merge")


async def test_a_waiver_is_for_one_hash_alone(harness: WorkflowHarness) -> None:
    run = WaivableRun(harness, "fail")
    run.conflicts = 1
    handle = await run.start()
    status = await run.waiting(handle)
    await decide(handle, waive(status, "unique(id)"))
    status = await run.waiting(handle, NEWER)
    assert status.result.waived == [] and status.result.approval and status.result.approval.decisions == []
    await decide(handle, waive(status, "unique(id)", by="ben"))
    result = await ended(harness, handle)
    assert result.outcome == "published", result.reason
    assert [each.by for each in result.waived] == [["ben"]]
    assert [each.head for each in run.published] == [HEAD, NEWER]


async def test_what_passes_after_a_conflict_is_waived_no_more(harness: WorkflowHarness) -> None:
    run = WaivableRun(harness, "fail")
    run.conflicts = 1
    handle = await run.start()
    status = await run.waiting(handle)
    run.verdicts = ("pass",)
    await decide(handle, waive(status, "unique(id)"))
    result = await ended(harness, handle)
    assert result.outcome == "published", result.reason
    assert result.waived == [] and run.published[1].approval.waived == []
    assert result.approval and result.approval.to_waive == []
