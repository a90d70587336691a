"""The state of one run, in one object: the query answers from it, and the result is part of it."""

from datetime import datetime
from typing import Literal

from temporalio import workflow
from temporalio.common import SearchAttributeUpdate

with workflow.unsafe.imports_passed_through():
    from sluice.approval.decisions import ApprovalRecord, Decision, RefusedDecision, approval_outcome, refusal
    from sluice.audit.bad_rows import describe_bad_rows
    from sluice.audit.verdicts import AuditReport, CheckResult, trim_samples
    from sluice.contracts.audit import PreviousAudit
    from sluice.contracts.merge_queue import MergeTicket
    from sluice.contracts.publish import Publication
    from sluice.contracts.references import BranchRef, RunRef
    from sluice.contracts.run import Conflict, RunRequest, RunResult, RunStatus, Stage, StageEvent
    from sluice.contracts.write import WriteResult
    from sluice.presentation.web_ui import details
    from workflows.search_attributes import BRANCH


_MAX_CONFLICTS = 100
"""So many conflicts are kept in the result."""
_MAX_REFUSED = 20
"""So many refused decisions are kept in the result."""
_MAX_EVENTS = 50
"""So many stage events are part of the status."""


class RunState:
    """What a run knows about itself. Only the workflow changes it; each `record_…` updates the result too."""

    def __init__(self, request: RunRequest) -> None:
        info = workflow.info()
        self.request = request
        self.attempt = 0
        self.catalog_id: str | None = None
        self.branch: BranchRef | None = None
        self.write_result: WriteResult | None = None
        """The verified write of the present attempt; its head is what is audited and published."""
        self.report: AuditReport | None = None
        """The finished audit of the present write."""
        self.previous_audit: PreviousAudit | None = None
        """The last finished audit before a rebase."""
        self.is_publishing = False
        """Whether a merge was requested whose answer is not known."""
        self.orphan_branch = ""
        """During a rebase, a second branch that may exist."""
        self.merge_ticket: MergeTicket | None = None
        """The ticket of the merge slot that the run waits for or holds."""
        self.merge_slot: MergeTicket | None = None
        """The ticket that the merge queue called last."""
        self.deadline: datetime | None = None
        required = request.pipeline.approval.required if request.pipeline.approval else 0
        self.approval = ApprovalRecord(required=required) if required else None
        self.stage: Stage = "starting"
        self._events: list[StageEvent] = []
        self._stage_start = self._run_start = workflow.now()
        self.result = RunResult(run_id=info.run_id, workflow_id=info.workflow_id, pipeline=request.pipeline.name)

    @property
    def run_ref(self) -> RunRef:
        """The run and its present attempt, as activities need it."""
        pipeline = self.request.pipeline
        return RunRef(
            run_id=self.result.run_id,
            workflow_id=self.result.workflow_id,
            pipeline=pipeline.name,
            label=pipeline.label,
            attempt=self.attempt,
        )

    @property
    def decisions(self) -> list[Decision]:
        """The decisions that count about the hash that waits, or waited last."""
        return self.approval.decisions if self.approval else []

    @property
    def referenced_tables(self) -> list[str]:
        """The tables of main that checks read, in addition to those of the run."""
        checks = [check for table in self.request.pipeline.tables.values() for check in table.checks]
        return sorted({each.table for check in checks for each in check.references if each.ref == "main"})

    @property
    def is_published(self) -> bool:
        """Whether main holds the run."""
        return self.result.outcome == "published"

    def enter_stage(self, stage: Stage, note: str = "") -> None:
        """Begin a stage: add up the time of the one before, and show the new one."""
        now = workflow.now()
        timings = dict(self.result.timings)
        if self.stage != "starting":
            spent = timings.get(self.stage, 0.0) + (now - self._stage_start).total_seconds()
            timings[self.stage] = round(spent, 3)
        timings["total"] = round((now - self._run_start).total_seconds(), 3)
        self.stage, self._stage_start = stage, now
        self._events.append(StageEvent(stage=stage, at=now.isoformat(), note=note))
        self.update_result(timings=timings)

    def update_result(self, **fields: object) -> None:
        """Change fields of the result, and the details in the Web UI."""
        self.result = self.result.model_copy(update=fields)
        workflow.set_current_details(details(self.status()))

    def start_attempt(self) -> None:
        """Count an attempt, and reset what the one before it wrote and audited."""
        self.attempt += 1
        self.branch = self.write_result = self.report = self.previous_audit = None
        self.is_publishing = False
        self.update_result(attempts=self.attempt, branch=None, audited_hash=None, tables={}, checks=[], bad_rows={})

    def record_branch(self, branch: BranchRef) -> None:
        """Record the branch that the attempt writes on."""
        self.branch, self.catalog_id = branch, branch.catalog_id
        self.update_result(branch=branch.name, main_before=branch.base)
        self.set_search_attribute(BRANCH.value_set(branch.name))

    def record_write(self, write_result: WriteResult) -> None:
        """Record a verified write on the branch: it is not audited yet."""
        self.write_result, self.report = write_result, None
        self.update_result(tables=write_result.tables, audited_hash=None)

    def record_rebase(self, branch: BranchRef, write_result: WriteResult) -> None:
        """Record that the run continues, as a new attempt, on a branch that holds the same rows on a newer main."""
        if self.report:
            self.previous_audit = PreviousAudit(attempt=self.attempt, head=self.report.audited_hash)
        self.attempt += 1
        self.is_publishing = False
        self.update_result(attempts=self.attempt, checks=[])
        self.record_branch(branch)
        self.record_write(write_result)

    def record_conflict(self, tables: list[str], resolved: Literal["rebased", "rewritten"], why: str = "") -> None:
        """Record that main changed tables of the run, and how the run resolves it."""
        conflict = Conflict(tables=tables, resolved=resolved, why=why)
        self.update_result(conflicts=[*self.result.conflicts, conflict][-_MAX_CONFLICTS:])

    def record_verdicts(self, checks: list[CheckResult]) -> None:
        """Record the verdicts so far of an audit that goes on, with samples trimmed to fit into a history."""
        self.update_result(checks=trim_samples(checks))

    def record_audit(self, checks: list[CheckResult]) -> AuditReport:
        """Record the finished audit of the present write; from now on its hash is the audited hash."""
        assert self.branch and self.write_result
        self.record_verdicts(checks)
        self.report = AuditReport(
            branch=self.branch.name, audited_hash=self.write_result.head, checks=self.result.checks
        )
        self.update_result(audited_hash=self.report.audited_hash)
        return self.report

    def record_publication(self, publication: Publication) -> None:
        """Record that main holds the run."""
        self.update_result(
            outcome="published",
            cause=None,
            reason=describe_bad_rows(self.result.bad_rows),
            branch=None,
            main_before=publication.main_before,
            main_after=publication.main_after,
        )

    def request_decisions(self, deadline: datetime) -> None:
        """Wait for decisions about the present hash: those about an earlier one do not count."""
        self.deadline = deadline
        if self.approval:
            self.approval = self.approval.model_copy(update={"decisions": []})
        self.update_result(approval=self.approval)

    def refusal(self, decision: Decision) -> str | None:
        """Return why a decision does not count now, or None if it does."""
        waiting_hash = self.result.audited_hash if self.stage == "waiting for approval" else None
        required = self.approval.required if self.approval else 1
        approval = self.request.pipeline.approval
        starter = self.request.starter if approval and approval.four_eyes else ""
        return refusal(decision, waiting_hash, required, self.decisions, self.stage, starter)

    def complete(self, decision: Decision) -> Decision:
        """Return a decision with the hash that waits and the time, as it is signed and recorded."""
        audited_hash, at = self.result.audited_hash or "", workflow.now().isoformat()
        return decision.model_copy(update={"by": decision.by.strip(), "audited_hash": audited_hash, "at": at})

    def record_decision(self, decision: Decision) -> None:
        """Record a decision that counts."""
        approval = self.approval or ApprovalRecord(required=0)
        self.approval = approval.model_copy(update={"decisions": [*approval.decisions, decision]})
        self.update_result(approval=self.approval)

    def record_refusal(self, decision: Decision, why: str) -> None:
        """Record a decision that does not count."""
        approval = self.approval or ApprovalRecord(required=0)
        refused = [*approval.refused, RefusedDecision(by=decision.by, why=why)][-_MAX_REFUSED:]
        self.approval = approval.model_copy(update={"refused": refused})
        self.update_result(approval=self.approval)

    def record_expiry(self) -> None:
        """Record that the wait for decisions ended without enough of them."""
        if self.approval:
            self.approval = self.approval.model_copy(update={"expired": True})
        self.update_result(approval=self.approval)

    def approval_outcome(self) -> bool | None:
        """Return whether the run is approved (True) or rejected (False), or None while it waits."""
        return approval_outcome(self.approval.required, self.approval.decisions) if self.approval else None

    def set_search_attribute(self, update: SearchAttributeUpdate[str]) -> None:
        """Set a search attribute, if the server has Sluice's."""
        if self.request.search_attributes:
            workflow.upsert_search_attributes([update])

    def status(self) -> RunStatus:
        """Return the answer to the query `status`."""
        return RunStatus(
            stage=self.stage,
            events=self._events[-_MAX_EVENTS:],
            result=self.result,
            audit_digest=self.report.digest if self.report else "",
            deadline=self.deadline.isoformat() if self.deadline else "",
        )
