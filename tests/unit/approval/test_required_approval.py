"""The worker requires approval for tables, whatever a request states: the activities on a catalog in memory."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.approval.require_approval import ApprovalPolicy, RequireApprovalActivity
from activities.publishing.publish_branch import PublishBranchActivity
from sluice.approval.decisions import Decision
from sluice.approval.required import ApprovalTerms, RequiredApproval, parse_approval_rules
from sluice.approval.signatures import new_approver_key, sign
from sluice.contracts.publish import MergeApproval, Publication, RequireApprovalInput
from sluice.contracts.references import BranchRef
from sluice.pipeline.model import Approval
from sluice.publishing.certificate import approved_properties
from tests.harness.activity import run_activity
from tests.harness.branch_run import Run
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.publish_input import publish_input

PEMS = {name: new_approver_key() for name in ("ana", "ben", "cleo")}


@pytest.fixture
def approvers(tmp_path: Path) -> Path:
    file = tmp_path / "approvers"
    file.write_text("".join(f"{name} {key}\n" for name, (_, key) in PEMS.items()))
    return file


class PublishHarness:
    """A run that wrote to `t.x`, and a worker that requires approval for some tables."""

    def __init__(self, folder: Path, rules: str, approvers: Path | str = "") -> None:
        self.lake = MemoryLake(MemoryCatalog(), folder)
        self.run = Run(self.lake, "r1")
        self.branch, self.written = self.run.write(1)
        self.policy = ApprovalPolicy(self.lake.catalog, str(approvers), parse_approval_rules(rules))

    def required(self, **terms: Any) -> RequiredApproval:
        input = RequireApprovalInput(branch=self.branch, head=self.written.head, terms=ApprovalTerms(**terms))
        required: RequiredApproval = run_activity(RequireApprovalActivity(self.policy).require_approval, input)
        return required

    def publish(self, *approvals: Decision, branch: BranchRef | None = None, **terms: Any) -> Publication:
        ref, head = self.run.ref, self.written.head
        properties = approved_properties(ref, head, "d", approvals, [])
        approval = MergeApproval(audit_digest="d", decisions=list(approvals), terms=ApprovalTerms(**terms))
        input = publish_input(ref, branch or self.branch, head, properties, approval=approval)
        publication: Publication = run_activity(
            PublishBranchActivity(self.lake.catalog, self.policy).publish_branch, input
        )
        return publication

    def refused(self, *approvals: Decision, **more: Any) -> str:
        with pytest.raises(ApplicationError) as refused:
            self.publish(*approvals, **more)
        assert (refused.value.type, refused.value.non_retryable) == ("Unapproved", True)
        assert self.lake.catalog.table_version("main", "t.x") is None
        return refused.value.message

    def yes(self, by: str, signed: bool = True) -> Decision:
        decision = Decision(approve=True, by=by, audited_hash=self.written.head, audit_digest="d", decision_at="noon")
        return decision.model_copy(update={"signature": sign(decision, "r1", PEMS[by][0])}) if signed else decision


def test_a_request_that_asks_for_no_approval_is_not_published(tmp_path: Path) -> None:
    harness = PublishHarness(tmp_path, "t.*")
    assert harness.required(approval=None) == RequiredApproval(required=1, why="the worker demands it for t.x")
    assert "1 approvals are required, and there are 0 (the worker demands it for t.x)" in harness.refused()
    assert harness.publish(harness.yes("ben", signed=False)).merged


def test_tables_are_those_that_the_branch_changed(tmp_path: Path) -> None:
    """The base in the request does not count: a forged one would hide the change."""
    harness = PublishHarness(tmp_path, "t.*")
    forged = harness.branch.model_copy(update={"base": harness.written.head})
    assert "there are 0" in harness.refused(branch=forged)
    assert PublishHarness(tmp_path / "2", "u.*").publish().merged


def test_who_may_start_workflows_cannot_publish_alone(tmp_path: Path, approvers: Path) -> None:
    harness = PublishHarness(tmp_path, "t.*", approvers)
    forged = [harness.yes(by, signed=False) for by in ("ana", "ben", "cleo")]
    assert "it is not signed" in harness.refused(*forged, starter="nobody")
    assert harness.required(starter="nobody").required == 2  # not signed: any approver may have started it
    assert "2 approvals are required, and there are 1" in harness.refused(harness.yes("ana"), starter="ben")
    assert "there are 1" in harness.refused(harness.yes("ana"), harness.yes("ana"), starter="ben")
    assert harness.publish(harness.yes("ana"), harness.yes("ben"), starter="nobody").merged


@pytest.mark.parametrize("content", ["", "# ana is away\n", None, "ana nonsense\n"])
def test_without_approvers_that_can_be_read_nobody_can_approve(
    tmp_path: Path, approvers: Path, content: str | None
) -> None:
    harness = PublishHarness(tmp_path, "", approvers)
    approval = Approval(required=1)
    assert harness.required(approval=approval).signed
    approvers.unlink() if content is None else approvers.write_text(content)
    required = harness.required(approval=approval)
    assert required.required == 1 and required.signed and "nobody can approve" in required.why
    assert "lists nobody who may decide" in harness.refused(harness.yes("ana"), approval=approval)


def test_an_approval_of_another_report_or_hash_does_not_publish(tmp_path: Path, approvers: Path) -> None:
    harness = PublishHarness(tmp_path, "", approvers)
    for changed in ({"audit_digest": "earlier"}, {"audited_hash": "earlier"}):
        decision = harness.yes("ana").model_copy(update=changed)
        decision = decision.model_copy(update={"signature": sign(decision, "r1", PEMS["ana"][0])})
        assert "the approval by ana does not count" in harness.refused(decision, approval=Approval())
    assert harness.publish(harness.yes("ana"), approval=Approval()).merged
