"""Waivers at the merge and after it: the activities on a catalog in memory, with and without approvers' keys."""

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.approval.find_waivers import FindWaiversActivity
from activities.approval.require_approval import ApprovalPolicy, RequireApprovalActivity
from activities.approval.verify_decision import VerifyDecisionActivity
from activities.publishing.publish_branch import PublishBranchActivity
from lakehouse.catalog import TableCommit
from sluice.approval.decisions import Decision
from sluice.approval.required import ApprovalTerms, RequiredApproval
from sluice.approval.signatures import new_approver_key, sign
from sluice.approval.waivers import WaivableCheck, WaivedCheck, Waiver
from sluice.approval.waiving import granted_waivers
from sluice.checks.verdicts import AuditReport, CheckResult
from sluice.contracts.publish import (
    FindWaiversInput,
    MergeApproval,
    Publication,
    RequireApprovalInput,
    VerifyDecisionInput,
)
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.pipeline.model import Approval, Pipeline
from sluice.publishing.certificate import certificate
from sluice.publishing.commit_properties import GRANTS_WAIVERS, WAIVED_CHECKS
from tests.harness.activity import run_activity
from tests.harness.branch_run import Run
from tests.harness.memory_lake import MemoryLake
from tests.harness.publish_input import publish_input

PEMS = {name: new_approver_key() for name in ("ana", "ben")}
CHECK = WaivableCheck(table="t.x", index=0, check="unique(id)", fingerprint="ab" * 32)
FAILED = CheckResult(table="t.x", index=0, check="unique", columns=["id"], verdict="fail")
REQUEST = RunRequest(
    pipeline=Pipeline.model_validate({"name": "p", "write": {"job": "j.py"}, "tables": {"t.x": {}}}),
    input=RunInput(digest="d"),
    starter="zoe",
)


def in_days(days: float) -> str:
    return (datetime.now(timezone.utc) + timedelta(days=days)).isoformat(timespec="seconds")


class WaiverHarness:
    """A run that wrote to `t.x` and failed one check, and a worker, with or without approvers' keys."""

    def __init__(self, lake: MemoryLake, run_id: str, approvers: Path | str = "", installation: str = "here") -> None:
        self.lake, self.run = lake, Run(lake, run_id)
        self.branch, self.written = self.run.write(int(run_id[1:]))
        self.policy = ApprovalPolicy(lake.catalog, str(approvers), installation=installation)
        self.report = AuditReport(branch=self.branch.name, audited_hash=self.written.head, checks=[FAILED])

    def waiver(self, by: str = "ana", *, signed: bool = False, days: float = 5, **fields: Any) -> Decision:
        waiver = {"table": "t.x", "check": "unique(id)", "fingerprint": CHECK.fingerprint, "reason": "late feed"}
        given = Waiver.model_validate({**waiver, "until": in_days(days), **fields})
        return self.decision(by, given, signed=signed)

    def decision(self, by: str, *waivers: Waiver, signed: bool = False) -> Decision:
        decision = Decision(
            approve=True,
            by=by,
            audited_hash=self.written.head,
            audit_digest=self.report.digest,
            waivers=list(waivers),
            said_at=in_days(0),
        )
        signature = sign(decision, self.run.ref.run_id, PEMS[by][0]) if signed else ""
        return decision.model_copy(update={"signature": signature})

    def granted(self, *approvals: Decision) -> list[WaivedCheck]:
        return granted_waivers(approvals, [CHECK], self.run.ref.run_id, self.run.ref.workflow_id)

    def publish(
        self,
        *approvals: Decision,
        waived: list[WaivedCheck] | None = None,
        approval: Approval | None = None,
        properties: dict[str, str] | None = None,
    ) -> Publication:
        waived = self.granted(*approvals) if waived is None else waived
        ref, report = self.run.ref, self.report
        properties = properties or certificate(REQUEST, ref, report, approvals, waived=waived)
        given = MergeApproval(
            audit_digest=report.digest,
            decisions=list(approvals),
            waived=waived,
            terms=ApprovalTerms(approval=approval),
        )
        input = publish_input(ref, self.branch, self.written.head, properties, approval=given)
        publication: Publication = run_activity(
            PublishBranchActivity(self.lake.catalog, self.policy).publish_branch, input
        )
        return publication

    def refused(self, *approvals: Decision, **more: Any) -> str:
        with pytest.raises(ApplicationError) as refused:
            self.publish(*approvals, **more)
        assert (refused.value.type, refused.value.non_retryable) == ("Unapproved", True)
        return refused.value.message

    def in_force(self, check: WaivableCheck = CHECK, **terms: Any) -> list[WaivedCheck]:
        input = FindWaiversInput(
            run_ref=self.run.ref,
            branch=self.branch,
            head=self.written.head,
            terms=ApprovalTerms(**terms),
            checks=[check],
        )
        waived: list[WaivedCheck] = run_activity(FindWaiversActivity(self.policy).find_waivers, input)
        return waived

    def properties(self) -> dict[str, str]:
        return dict(next(self.lake.catalog.history("main")).properties)


@pytest.fixture
def approvers(tmp_path: Path) -> Path:
    file = tmp_path / "approvers"
    file.write_text("".join(f"{name} {key}\n" for name, (_, key) in PEMS.items()))
    return file


def test_a_waiver_needs_a_person_although_nothing_else_asks_for_one(lake: MemoryLake, approvers: Path) -> None:
    harness = WaiverHarness(lake, "r1", approvers)
    input = RequireApprovalInput(branch=harness.branch, head=harness.written.head, terms=ApprovalTerms(), at_least=1)
    required: RequiredApproval = run_activity(RequireApprovalActivity(harness.policy).require_approval, input)
    assert (required.required, required.signed, required.starter) == (1, True, "")
    none = input.model_copy(update={"at_least": 0})
    assert run_activity(RequireApprovalActivity(harness.policy).require_approval, none).required == 0


def test_a_merge_names_the_waiver_and_later_runs_find_it(lake: MemoryLake) -> None:
    first = WaiverHarness(lake, "r1")
    assert first.in_force() == []
    approval = first.waiver()
    assert first.publish(approval).merged
    properties = first.properties()
    assert properties["sluice.verdicts"] == "1 fail (waived)" and properties[GRANTS_WAIVERS] == "true"
    (listed,) = json.loads(properties[WAIVED_CHECKS])
    assert (listed["check"], listed["table"], listed["by"]) == ("unique(id)", "t.x", ["ana"])
    assert (listed["reason"], listed["run_id"]) == ("late feed", "r1") and listed["until"]
    second = WaiverHarness(lake, "r2")
    (waived,) = second.in_force(CHECK.model_copy(update={"index": 3}))
    assert waived == first.granted(approval)[0].model_copy(update={"index": 3})
    assert second.publish(waived=second.in_force()).merged, "nobody approves again"
    later = second.properties()
    assert WAIVED_CHECKS in later and GRANTS_WAIVERS not in later and "sluice.approvals" not in later
    third = WaiverHarness(lake, "r3")
    assert [each.run_id for each in third.in_force()] == ["r1"], "the waiver is that of the first run"


def test_a_waiver_is_of_one_check_of_one_table_of_one_pipeline(lake: MemoryLake) -> None:
    first = WaiverHarness(lake, "r1")
    first.publish(first.waiver())
    second = WaiverHarness(lake, "r2")
    for changed in ({"fingerprint": "cd" * 32}, {"table": "t.y"}, {"check": "unique(other)"}):
        assert second.in_force(CHECK.model_copy(update=changed)) == [], changed
    assert len(second.in_force()) == 1
    second.run.ref = second.run.ref.model_copy(update={"pipeline": "another"})
    assert second.in_force() == []


def test_the_waiver_that_ends_last_counts(lake: MemoryLake) -> None:
    for run_id, days in (("r1", 9.0), ("r2", 5.0)):
        harness = WaiverHarness(lake, run_id)
        harness.publish(harness.waiver(days=days))
    assert [each.run_id for each in WaiverHarness(lake, "r3").in_force()] == ["r1"]


def test_a_waiver_ends(lake: MemoryLake) -> None:
    first = WaiverHarness(lake, "r1")
    approval = first.waiver(days=1 / 24)
    first.publish(approval)
    second = WaiverHarness(lake, "r2")
    waived = second.in_force()
    assert waived

    def later(hours: float) -> None:
        now = datetime.now(timezone.utc) + timedelta(hours=hours)
        second.policy = replace(second.policy, clock=lambda: now)

    later(2.1)
    assert second.in_force() == []
    assert "ended" in second.refused(waived=waived), "more than an hour ago"
    later(1.5)
    assert second.in_force() == []
    assert second.publish(waived=waived).merged, "it held at the audit, and ended less than an hour ago"


def test_a_merge_under_a_waiver_that_nobody_gave_is_refused(lake: MemoryLake) -> None:
    harness = WaiverHarness(lake, "r1")
    approval = harness.waiver()
    (waived,) = harness.granted(approval)
    assert "1 approvals are required, and there are 0" in harness.refused(waived=[waived])
    assert "no approver has waived" in harness.refused(harness.decision("ana"), waived=[waived])
    assert "no approver has waived" in harness.refused(waived=[waived.model_copy(update={"run_id": "r0"})])
    assert "no approver has waived" in harness.refused(
        approval, waived=[waived.model_copy(update={"until": in_days(80)})]
    )
    other = harness.waiver(fingerprint="cd" * 32)
    assert "does not name unique(id)" in harness.refused(other, waived=[waived])
    of_another_hash = approval.model_copy(update={"audited_hash": "cd" * 32})
    assert "does not approve" in harness.refused(of_another_hash, waived=[waived])
    two = Approval(required=2)
    assert "2 approvals are required" in harness.refused(approval, waived=[waived], approval=two)
    plain = harness.decision("ben")
    assert "no approver has waived" in harness.refused(approval, plain, waived=[waived], approval=two)
    assert "does not name unique(id), which its approvals waive" in harness.refused(approval, waived=[])
    assert harness.publish(approval, harness.waiver("ben"), approval=two).merged


def test_a_commit_that_says_something_else_is_not_merged(lake: MemoryLake, approvers: Path) -> None:
    """Somebody who may send activity inputs could make a later run accept a waiver that was never merged."""
    first, second = (WaiverHarness(lake, run_id, approvers) for run_id in ("r1", "r2"))
    approval = first.waiver(signed=True)
    copied = certificate(REQUEST, first.run.ref, first.report, [approval], waived=first.granted(approval))
    why = "properties of the merge commit do not match the approval: sluice.approvals, sluice.approved-by"
    assert why in second.refused(waived=[], properties=copied)
    plain = certificate(REQUEST, second.run.ref, second.report, [])
    for key in ("sluice.pipeline", "sluice.workflow-id", GRANTS_WAIVERS):
        assert key in second.refused(waived=[], properties={**plain, key: "true"})
    assert second.publish(waived=[], properties=plain).merged and second.in_force() == []


def test_with_keys_a_waiver_is_signed_and_verified_each_time(lake: MemoryLake, approvers: Path) -> None:
    first = WaiverHarness(lake, "r1", approvers)
    approval = first.waiver(signed=True)
    assert "it is not signed" in first.refused(first.waiver())
    later = approval.waivers[0].model_copy(update={"until": in_days(80)})
    assert "its signature is not ana's" in first.refused(approval.model_copy(update={"waivers": [later]}))
    unwaived = first.decision("ana", signed=True).model_copy(update={"waivers": approval.waivers})
    assert "its signature is not ana's" in first.refused(unwaived)
    assert first.publish(approval).merged
    second = WaiverHarness(lake, "r2", approvers)
    assert [each.by for each in second.in_force()] == [["ana"]]
    assert second.in_force(approval=Approval(required=2)) == [], "more people are needed by now"
    waived = second.in_force()
    approvers.write_text(f"ben {PEMS['ben'][1]}\n")
    assert second.in_force() == [], "the waiver of a former approver no longer counts"
    assert "no approver has waived" in second.refused(waived=waived)
    approvers.unlink()
    assert second.in_force() == []


def test_a_commit_that_cannot_be_read_grants_nothing(lake: MemoryLake) -> None:
    for number, approvals in enumerate(("", "nonsense", "[1]", '[{"by": "ana"}]', "{}"), 1):
        harness = WaiverHarness(lake, f"r{number}")
        run = harness.run
        properties = {"sluice.pipeline": "p", GRANTS_WAIVERS: "true", "sluice.approvals": approvals}
        lake.catalog.publish(harness.branch, harness.written.head, "ana", run.ref.run_id, properties)
    assert WaiverHarness(lake, "r9").in_force() == []


def test_a_waiver_is_of_one_installation(lake: MemoryLake) -> None:
    """Another team on the same main may have a pipeline of that name, with such a check, on that table."""
    first = WaiverHarness(lake, "r1")
    assert first.publish(first.waiver()).merged and first.properties()["sluice.installation"] == "here"
    other = WaiverHarness(lake, "r2", installation="there")
    assert other.in_force() == [] and WaiverHarness(lake, "r3").in_force()
    waived = WaiverHarness(lake, "r4").in_force()
    assert "no approver has waived" in other.refused(waived=waived)


def test_a_waiver_is_of_the_tables_that_its_run_changed(lake: MemoryLake) -> None:
    """A pipeline of the same name that writes other tables is another pipeline. A recreated table is another table."""
    first = WaiverHarness(lake, "r1")
    assert first.publish(first.waiver()).merged and WaiverHarness(lake, "r2").in_force()
    other = WaiverHarness(lake, "r3")
    lake.append(other.branch.name, "t.y", [1], other.run.ref)
    other.written = other.written.model_copy(update={"head": lake.catalog.head(other.branch.name)})
    assert other.in_force() == []
    main = lake.catalog.main
    lake.catalog.commit_tables(main, lake.catalog.head(main), "drop", [TableCommit("t.x", None)])
    lake.append(main, "t.x", [5])
    assert WaiverHarness(lake, "r4").in_force() == []


def test_bad_rows_that_are_quarantined_are_no_reason_to_ask_again(lake: MemoryLake) -> None:
    first = WaiverHarness(lake, "r1")
    assert first.publish(first.waiver()).merged
    second = WaiverHarness(lake, "r2")
    lake.append(second.branch.name, "t.x__quarantine", [1], second.run.ref)
    second.written = second.written.model_copy(update={"head": lake.catalog.head(second.branch.name)})
    assert second.in_force()


def test_a_secret_in_a_reason_is_refused_before_it_is_recorded(lake: MemoryLake) -> None:
    harness = WaiverHarness(lake, "r1")
    leaking = harness.waiver(reason="password=hunter2hunter2")
    verify = VerifyDecisionActivity("").verify_decision
    assert "looks like a secret" in run_activity(verify, VerifyDecisionInput(run_id="r1", decision=leaking))
    assert run_activity(verify, VerifyDecisionInput(run_id="r1", decision=harness.waiver())) == ""
