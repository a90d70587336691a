"""The approval of one run: what it needs for the present write, which checks wait for a waiver, and who decided."""

from collections.abc import Sequence

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
    from sluice.contracts.run import Stage

_MAX_REFUSED = 20
"""So many refused decisions are kept in the result."""


class ApprovalState:
    """What a run knows about its approval. The state of the run owns it, and shows its record in the result."""

    def __init__(self, required: int) -> None:
        self.record = ApprovalRecord(required=required) if required else None
        """What the result shows; None for a run that needs no approval, and to which nobody sent a decision."""
        self.required = RequiredApproval(required=required)
        """The approval that the present write needs, once that is known; before, what the pipeline asks for."""
        self.to_waive: list[WaivableCheck] = []
        """The failed checks of the present audit that no waiver in force covers."""

    @property
    def decisions(self) -> list[Decision]:
        """The decisions that count about the hash that waits, or waited last."""
        return self.record.decisions if self.record else []

    @property
    def outcome(self) -> bool | None:
        """Whether enough people approved (True) or one rejected (False), or None while neither holds."""
        return approval_outcome(self.record.required, self.record.decisions) if self.record else None

    def begin_audit(self) -> None:
        """Forget which checks of an earlier audit waited for a waiver."""
        self.to_waive = []
        if self.record:
            self.record = self.record.model_copy(update={"to_waive": []})

    def require(self, required: RequiredApproval) -> None:
        """Begin with what the present write needs: decisions about an earlier one do not count."""
        self.required = required
        if required.required or self.record:
            record = self.record or ApprovalRecord(required=0)
            fresh = {
                "required": required.required,
                "why": required.why,
                "excluded": required.starter,
                "decisions": [],
                "to_waive": self.to_waive,
            }
            self.record = record.model_copy(update=fresh)

    def refusal(self, decision: Decision, report: AuditReport | None, stage: Stage) -> str | None:
        """Return why a decision does not count now, or None if it does.

        Args:
            report: the finished audit of the present write, if there is one.
        """
        waits = stage == "waiting for approval"
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
        """Return a decision with the hash, the report and the checks that wait, and the time, as it is recorded."""
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
        """Note that the time ended without enough decisions."""
        if self.record:
            self.record = self.record.model_copy(update={"expired": True})

    def granted(self, run_id: str, workflow_id: str) -> Sequence[WaivedCheck]:
        """Return the checks that those who approved have waived."""
        return granted_waivers(self.decisions, self.to_waive, run_id, workflow_id)
