"""The state of one run, in one object: what the query answers and what the result is made of."""

from datetime import datetime
from typing import Literal

from temporalio import workflow
from temporalio.common import SearchAttributeUpdate

with workflow.unsafe.imports_passed_through():
    from sluice.approval.decisions import ApprovalRecord, Decision, Refused, Ruled, refusal, settled
    from sluice.audit.bad_rows import spoken
    from sluice.audit.verdicts import AuditReport, CheckResult, trim_samples
    from sluice.contracts.activity_inputs import BranchRef, PreviousAudit, Publication, RunRef
    from sluice.contracts.activity_inputs import WriteResult as WrittenBranch
    from sluice.contracts.merge_queue import MergeTicket
    from sluice.contracts.run import Conflict, RunRequest, RunResult, RunStatus, Stage, StageEvent
    from sluice.presentation.web_ui import details
    from workflows.search_attributes import BRANCH


_CONFLICTS = 100
"""So many conflicts are kept in the result."""


class RunState:
    """What a run knows of itself. Only the workflow changes it."""

    def __init__(self, request: RunRequest) -> None:
        info = workflow.info()
        self.request = request
        self.attempt = 0
        self.catalog_id: str | None = None
        self.branch: BranchRef | None = None
        self.write_result: WrittenBranch | None = None
        self.report: AuditReport | None = None
        self.publishing = False
        self.earlier: PreviousAudit | None = None
        self.spare = ""
        """A branch beside the attempt's own that may be there, while a run is taken over."""
        self.turn: MergeTicket | None = None
        """The turn at a table that the run has, or waits for."""
        self.turn_came: MergeTicket | None = None
        self.deadline: datetime | None = None
        required = request.pipeline.approval.required if request.pipeline.approval else 0
        self.approval = ApprovalRecord(required=required) if required else None
        self.stage: Stage = "starting"
        self._events: list[StageEvent] = []
        self._entered = workflow.now()
        self._began = self._entered
        self.result = RunResult(run_id=info.run_id, workflow_id=info.workflow_id, pipeline=request.pipeline.name)

    @property
    def run_ref(self) -> RunRef:
        """Who the present attempt's acts are for."""
        pipeline = self.request.pipeline
        return RunRef(
            run_id=self.result.run_id,
            workflow_id=self.result.workflow_id,
            pipeline=pipeline.name,
            label=pipeline.label,
            attempt=self.attempt,
        )

    @property
    def rulings(self) -> list[Ruled]:
        """The decisions that counted for what waits, or waited last."""
        return self.approval.decisions if self.approval else []

    @property
    def referenced_tables(self) -> list[str]:
        """The tables of main that checks look at, beside those of the run."""
        checks = [check for table in self.request.pipeline.tables.values() for check in table.checks]
        return sorted({other.table for check in checks for other in check.others if other.ref == "main"})

    @property
    def is_published(self) -> bool:
        """Whether main holds the run."""
        return self.result.outcome == "published"

    def enter(self, stage: Stage, note: str = "") -> None:
        """Come to a stage, and show it to whoever looks."""
        now = workflow.now()
        timings = dict(self.result.timings)
        if self.stage != "starting":
            spent = timings.get(self.stage, 0.0) + (now - self._entered).total_seconds()
            timings[self.stage] = round(spent, 3)
        timings["total"] = round((now - self._began).total_seconds(), 3)
        self.stage, self._entered = stage, now
        self._events.append(StageEvent(stage=stage, at=now.isoformat(), note=note))
        self.update(timings=timings)

    def update(self, **changed: object) -> None:
        """Change parts of the result, and show them."""
        self.result = self.result.model_copy(update=changed)
        workflow.set_current_details(details(self.status()))

    def start_attempt(self) -> None:
        """Count an attempt and forget what the one before it found."""
        self.attempt += 1
        self.branch = self.write_result = self.report = self.earlier = None
        self.publishing = False
        self.update(attempts=self.attempt, branch=None, audited_hash=None, tables={}, checks=[], bad_rows={})

    def opened(self, branch: BranchRef) -> None:
        """Note the branch that the attempt writes on."""
        self.branch, self.catalog_id = branch, branch.catalog_id
        self.update(branch=branch.name, main_before=branch.base)
        self.index(BRANCH.value_set(branch.name))

    def rebased(self, branch: BranchRef, write_result: WrittenBranch) -> None:
        """Note that the run goes on, as a new attempt, on a branch that holds what the one before wrote."""
        at = self.report.audited_hash if self.report else None
        self.earlier = PreviousAudit(attempt=self.attempt, head=at) if at else self.earlier
        self.attempt += 1
        self.publishing, self.report = False, None
        self.update(attempts=self.attempt, checks=[])
        self.opened(branch)
        self.found(write_result)

    def record_conflict(
        self, tables: list[str], resolved: Literal["taken over", "written again"], why: str = ""
    ) -> None:
        """Note that main moved under the run."""
        conflict = Conflict(tables=tables, resolved=resolved, why=why)
        self.update(conflicts=[*self.result.conflicts, conflict][-_CONFLICTS:])

    def found(self, write_result: WrittenBranch) -> None:
        """Note what the write left on the branch."""
        self.write_result = write_result
        self.update(tables=write_result.tables, audited_hash=write_result.head)

    def audited(self, checks: list[CheckResult]) -> AuditReport:
        """Note verdicts, thinned until they fit into a history."""
        assert self.branch and self.write_result
        self.report = AuditReport(
            branch=self.branch.name, audited_hash=self.write_result.head, checks=trim_samples(checks)
        )
        self.update(checks=self.report.checks)
        return self.report

    def published(self, publication: Publication) -> None:
        """Note that main holds the run."""
        self.update(
            outcome="published",
            cause=None,
            reason=spoken(self.result.bad_rows),
            branch=None,
            main_before=publication.main_before,
            main_after=publication.main_after,
        )

    def refuse(self, decision: Decision) -> str | None:
        """Return why a decision does not count now, or None if it does."""
        waiting = self.write_result.head if self.write_result and self.stage == "waiting for approval" else None
        required = self.approval.required if self.approval else 1
        asked = self.request.pipeline.approval
        starter = self.request.starter if asked and asked.four_eyes else ""
        return refusal(decision, waiting, required, self.rulings, self.stage, starter)

    def ruled(self, decision: Decision, approve: bool) -> Ruled | None:
        """Return a decision as it would be counted, or None if it does not count."""
        if self.refuse(decision) is not None or not self.write_result:
            return None
        return Ruled(
            approve=approve,
            by=decision.by.strip(),
            reason=decision.reason,
            audited_hash=self.write_result.head,
            at=workflow.now().isoformat(),
            audit_digest=decision.audit_digest,
            said_at=decision.said_at,
            signature=decision.signature,
        )

    def decide(self, decision: Decision, approve: bool) -> str | None:
        """Count a decision, or note why it does not count and return that."""
        ruled = self.ruled(decision, approve)
        if ruled is None:
            return self.refused(decision, self.refuse(decision) or "nothing waits")
        approval = self.approval or ApprovalRecord(required=0)
        self.approval = approval.model_copy(update={"decisions": [*approval.decisions, ruled]})
        self.update(approval=self.approval)
        return None

    def refused(self, decision: Decision, why: str) -> str:
        """Note why a decision does not count; return that."""
        approval = self.approval or ApprovalRecord(required=0)
        refused = [*approval.refused, Refused(by=decision.by, why=why)][-20:]
        self.approval = approval.model_copy(update={"refused": refused})
        self.update(approval=self.approval)
        return why

    def settled(self) -> bool | None:
        """Return how people decided, or None while they have not."""
        return settled(self.approval.required, self.approval.decisions) if self.approval else None

    def await_decisions(self, deadline: datetime) -> None:
        """Ask for decisions anew: those about an earlier hash do not hold for this one."""
        self.deadline = deadline
        if self.approval:
            self.approval = self.approval.model_copy(update={"decisions": []})
        self.update(approval=self.approval)

    def index(self, update: SearchAttributeUpdate[str]) -> None:
        """Set a search attribute, where the server knows Sluice's."""
        if self.request.search_attributes:
            workflow.upsert_search_attributes([update])

    def status(self) -> RunStatus:
        """Return what the query answers."""
        return RunStatus(
            stage=self.stage,
            events=self._events[-50:],
            result=self.result,
            audit_digest=self.report.digest if self.report else "",
            deadline=self.deadline.isoformat() if self.deadline else "",
        )
