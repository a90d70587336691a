"""The approval of one run: requirements of the present write, checks that wait for a waiver, and decisions."""

from collections.abc import Sequence
from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.approval.decisions import (
        NAME_LIMIT,
        ApprovalRecord,
        AwaitedDecision,
        Decision,
        RefusedDecision,
        approval_outcome,
        refusal,
    )
    from sluice.approval.required import RequiredApproval
    from sluice.approval.waivers import WaivableCheck, WaivedCheck
    from sluice.approval.waiving import completed_waivers, granted_waivers, waiver_refusal
    from sluice.checks.verdicts import AuditReport
    from sluice.contracts.run import WAITING, Stage

_MAX_REFUSED = 20
"""Maximum number of refused decisions in the result."""


class ApprovalState:
    """The state of a run's approval. The state of the run owns it, and shows its record in the result."""

    def __init__(self, required: int) -> None:
        self.record = ApprovalRecord(required=required) if required else None
        """The record in the result; None if the run needs no approval and nobody sent a decision."""
        self.required = RequiredApproval(required=required)
        """The approval that the present write needs; before that is known, the approval that the pipeline requires."""
        self.to_waive: list[WaivableCheck] = []
        """The failed checks of the present audit without a waiver in force."""
        self.deadline: datetime | None = None
        """The end of the wait for decisions about the present write."""

    @property
    def decisions(self) -> list[Decision]:
        """The valid decisions about the hash that waits for approval, or waited last."""
        return self.record.decisions if self.record else []

    @property
    def outcome(self) -> bool | None:
        """True if enough people approved, False if one rejected, None otherwise."""
        return approval_outcome(self.record.required, self.record.decisions) if self.record else None

    def begin_audit(self) -> None:
        """Clear the checks of an earlier audit that waited for a waiver."""
        self.to_waive = []
        if self.record:
            self.record = self.record.model_copy(update={"to_waive": []})

    def require(self, required: RequiredApproval) -> None:
        """Set the approval that the present write needs, and clear the decisions about an earlier write."""
        self.required = required
        if required.required or self.record:
            record = self.record or ApprovalRecord(required=0)
            fresh = {
                "required": required.required,
                "why": required.why,
                "excluded": required.starter,
                "signed": required.signed,
                "decisions": [],
                "to_waive": self.to_waive,
            }
            self.record = record.model_copy(update=fresh)

    def refusal(self, decision: Decision, report: AuditReport | None, stage: Stage) -> str | None:
        """Return the reason why a decision does not count now, or None if it counts.

        Args:
            report: the finished audit of the present write, if there is one.
        """
        waits = stage == WAITING
        awaited = AwaitedDecision(
            audited_hash=report.audited_hash if report and waits else None,
            audit_digest=report.digest if report else "",
            required=self.required.required or 1,
            starter=self.required.starter,
            signed=self.required.signed,
            to_waive=self.to_waive,
        )
        why = refusal(decision, awaited, self.decisions, stage)
        return why or waiver_refusal(decision, awaited, workflow.now())

    def complete(self, decision: Decision, report: AuditReport) -> Decision:
        """Return a decision with the present hash, report, waived checks and time, in the form for the record."""
        fields = {
            "by": decision.by.strip(),
            "at": workflow.now().isoformat(),
            "audited_hash": report.audited_hash,
            "audit_digest": report.digest,
            "waivers": completed_waivers(decision, self.to_waive),
        }
        return decision.model_copy(update=fields)

    def add(self, decision: Decision) -> None:
        """Add a decision that counts."""
        record = self.record or ApprovalRecord(required=0)
        self.record = record.model_copy(update={"decisions": [*record.decisions, decision]})

    def refuse(self, decision: Decision, why: str) -> None:
        """Add a decision that does not count, with the reason."""
        record = self.record or ApprovalRecord(required=0)
        refused = [*record.refused, RefusedDecision(by=decision.by[:NAME_LIMIT], why=why)][-_MAX_REFUSED:]
        self.record = record.model_copy(update={"refused": refused})

    def expire(self) -> None:
        """Record that the time ended without enough decisions."""
        if self.record:
            self.record = self.record.model_copy(update={"expired": True})

    def granted(self, run_id: str, workflow_id: str) -> Sequence[WaivedCheck]:
        """Return the waivers that the approvers granted."""
        return granted_waivers(self.decisions, self.to_waive, run_id, workflow_id)
