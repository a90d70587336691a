"""The state of one run in one object, which has the result and answers the query `status`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from temporalio import workflow
from temporalio.common import SearchAttributeUpdate

with workflow.unsafe.imports_passed_through():
    from sluice.approval.decisions import Decision
    from sluice.approval.required import ApprovalTerms, RequiredApproval
    from sluice.approval.waivers import WaivableCheck, WaivedCheck
    from sluice.audit.carry_over import carried_over_verdicts
    from sluice.checks.verdicts import AuditReport, CheckResult, trim_samples
    from sluice.contracts.audit import PreviousAudit
    from sluice.contracts.input import PublicationCheck
    from sluice.contracts.publish import Publication
    from sluice.contracts.references import BranchRef, RunRef
    from sluice.contracts.registration import Registration
    from sluice.contracts.run import Conflict, RunResult, RunStatus, Stage
    from sluice.contracts.run_request import RunRequest
    from sluice.contracts.selected_input import ManifestRef
    from sluice.contracts.write import WriteResult
    from sluice.input.publication_check import check_of_run
    from sluice.presentation.web_ui import details
    from sluice.publishing.bad_rows import describe_bad_rows
    from sluice.publishing.branch_properties import input_properties
    from sluice.publishing.certificate import stated_options
    from sluice.publishing.change_summary import summarize_changes
    from sluice.publishing.outcomes import describe_overtaken
    from sluice.publishing.watched_tables import watched_tables
    from workflows.approval.approval_state import ApprovalState
    from workflows.publishing.slot_state import MergeSlot
    from workflows.run.stage_log import StageLog
    from workflows.search_attributes import BRANCH

_OF_ATTEMPT = ("tables", "summary", "checks", "waived", "bad_rows", "broken_checks", "types", "repaired")
_MAX_CONFLICTS = 100
"""Maximum number of conflicts in the result."""
_MAX_CARRIED_OVER = 400_000
"""Maximum size of carried-over verdicts, in bytes. The next audit has the pipeline in the same message."""


@dataclass
class Attempt:
    """State of one attempt: a branch, the write on it, and the audit of this write."""

    number: int = 0
    branch: BranchRef | None = None
    write_result: WriteResult | None = None
    """The verified write. The run audits and publishes its head."""
    report: AuditReport | None = None
    """The finished audit of the write."""
    previous_audit: PreviousAudit | None = None
    """The last finished audit before the rebase that began this attempt."""
    is_publishing: bool = False
    """True while a requested merge may still happen, because its answer is missing or not final."""
    _digest: str = ""

    def record_report(self, report: AuditReport) -> None:
        """Record the finished audit, and compute its digest once."""
        self.report, self._digest = report, report.digest

    @property
    def audit_digest(self) -> str:
        """The digest of the audit report; empty while there is none."""
        return self._digest if self.report else ""


class RunState:
    """The state of a run. Only the workflow changes it; each `record_…` updates the result, too."""

    def __init__(self, request: RunRequest) -> None:
        info = workflow.info()
        self.request = request
        self.attempt = Attempt()
        self.catalog_id: str | None = None
        self.runs_apart = False
        """True if a shared Spark server crashed: further Spark jobs of the run have their own Spark."""
        self.first_base = ""  # the hash of main that the first attempt's branch started from
        self.orphan_branch = ""
        """The name of a second branch that may exist during a rebase."""
        self.merge_slot = MergeSlot()
        # Computed at the start, when the SQL of the request is already parsed (`runtime/payloads.py`): a workflow has
        # two seconds for a step.
        self.watched_tables = watched_tables(request.pipeline.tables)
        """The tables that checks read. If main changes one before the merge, the checks are answered again."""
        required = request.pipeline.approval.required if request.pipeline.approval else 0
        self.approval = ApprovalState(required)
        self._registrations: dict[str, Registration] = {}
        """The ended registrations, by workflow id. One may end before the run records that it began."""
        self._stages = StageLog()
        self.result = RunResult(
            run_id=info.run_id,
            workflow_id=info.workflow_id,
            pipeline=request.pipeline.name,
            guarantee=request.guarantee,
            publish=stated_options(request),
        )

    @property
    def run_ref(self) -> RunRef:
        """The reference to the run and its present attempt, for activities."""
        pipeline = self.request.pipeline
        return RunRef(
            run_id=self.result.run_id,
            workflow_id=self.result.workflow_id,
            pipeline=pipeline.name,
            label=pipeline.label,
            attempt=self.attempt.number,
            partition=self.request.order.partition,
        )

    @property
    def decisions(self) -> list[Decision]:
        """The valid decisions about the hash that waits for approval, or waited last."""
        return self.approval.decisions

    @property
    def approval_terms(self) -> ApprovalTerms:
        """The terms for the required approval: the approval in the pipeline, and the person who started the run."""
        request = self.request
        return ApprovalTerms(
            approval=request.pipeline.approval,
            starter=request.asked_by or request.starter,
            start=request.start_statement(self.result.workflow_id),
            signed_start=request.signed_start,
            started_at=workflow.info().start_time.isoformat(),
        )

    @property
    def manifest(self) -> ManifestRef | None:
        """The manifest of the files that the present attempt loads, or of the files behind the rows of a release."""
        resume = self.request.resume
        if resume:
            return resume.manifest
        return self.result.input.manifest if self.result.input else None

    @property
    def input_properties(self) -> dict[str, str]:
        """The properties that describe the input in commits on branches of the run."""
        input = self.request.input
        return input_properties(input.digest, list(self.request.pipeline.tables), self.manifest, input.scope)

    @property
    def publication_check(self) -> PublicationCheck | None:
        """The check for activities that main does not contain the input yet; None if it may be published again."""
        return check_of_run(self.request, self.manifest)

    @property
    def stage(self) -> Stage:
        """The present stage."""
        return self._stages.stage

    @property
    def is_published(self) -> bool:
        """True if the run is published."""
        return self.result.outcome == "published"

    def enter_stage(self, stage: Stage, note: str = "") -> None:
        """Begin a stage: add the time of the previous stage to its total, and show the new stage."""
        self._stages.enter(stage, note)
        self.update_result(timings=self._stages.timings)

    def update_result(self, **fields: object) -> None:
        """Change fields of the result, and update the details in the Web UI."""
        self.result = self.result.model_copy(update=fields)
        workflow.set_current_details(details(self.status()))

    def start_attempt(self) -> None:
        """Count an attempt, and reset the write and the audit of the previous one."""
        self.attempt = Attempt(self.attempt.number + 1)
        nothing = {name: RunResult.model_fields[name].get_default(call_default_factory=True) for name in _OF_ATTEMPT}
        self.update_result(attempts=self.attempt.number, branch=None, audited_hash=None, **nothing)

    def record_loss(self) -> None:
        """Record that the present attempt was lost with its worker or a service."""
        self.update_result(lost_attempts=self.result.lost_attempts + 1)

    def record_branch(self, branch: BranchRef) -> None:
        """Record the branch that the attempt writes on."""
        self.attempt.branch, self.catalog_id = branch, branch.catalog_id
        self.first_base = self.first_base or branch.base
        self.update_result(branch=branch.name, main_before=branch.base, guarantee=branch.guarantee)
        self.set_search_attribute(BRANCH.value_set(branch.name))

    def record_write(self, write_result: WriteResult) -> None:
        """Record a verified write on the branch, which is not audited yet."""
        self.attempt.write_result, self.attempt.report = write_result, None
        tables = write_result.tables
        self.update_result(tables=tables, summary=summarize_changes(tables), audited_hash=None)

    def record_rebase(self, branch: BranchRef, write_result: WriteResult) -> None:
        """Record that the run continues as a new attempt, on a branch with the same rows on a newer main."""
        previous_audit = self.attempt.previous_audit
        if self.attempt.report:
            checks = {name: table.checks for name, table in self.request.pipeline.tables.items()}
            still_hold = carried_over_verdicts(checks, self.attempt.report.checks)
            carried_over = PreviousAudit(verdicts=list(still_hold.values()))
            if len(carried_over.model_dump_json()) <= _MAX_CARRIED_OVER:
                previous_audit = carried_over
        self.attempt = Attempt(self.attempt.number + 1, previous_audit=previous_audit)
        self.update_result(attempts=self.attempt.number, checks=[], waived=[])
        self.record_branch(branch)
        self.record_write(write_result)

    def record_conflict(self, tables: list[str], resolved: Literal["rebased", "rewritten"], why: str = "") -> None:
        """Record that main changed tables of the run, and the resolution of this conflict."""
        conflict = Conflict(tables=tables, resolved=resolved, why=why)
        self.update_result(conflicts=[*self.result.conflicts, conflict][-_MAX_CONFLICTS:])

    def record_verdicts(self, checks: list[CheckResult]) -> None:
        """Record the verdicts so far of a running audit, with samples trimmed to fit into a history."""
        self.update_result(checks=trim_samples(checks))

    def record_audit(self, checks: list[CheckResult]) -> AuditReport:
        """Record the finished audit of the present write. Its hash becomes the audited hash."""
        branch, write_result = self.attempt.branch, self.attempt.write_result
        assert branch and write_result
        self.record_verdicts(checks)
        report = AuditReport(branch=branch.name, audited_hash=write_result.head, checks=self.result.checks)
        self.attempt.record_report(report)
        self.approval.begin_audit()
        shown = self.approval.record if self.result.approval else None
        self.update_result(audited_hash=report.audited_hash, waived=[], approval=shown)
        return report

    def record_waivers(self, in_force: list[WaivedCheck], to_waive: list[WaivableCheck]) -> None:
        """Record the waivers in force for failed checks of the audit, and the checks that people must still waive."""
        self.approval.to_waive = to_waive
        self.update_result(waived=in_force)

    def record_granted_waivers(self) -> None:
        """Record the waivers that the approvers granted."""
        granted = self.approval.granted(self.result.run_id, self.result.workflow_id)
        self.update_result(waived=[*self.result.waived, *granted])

    def record_publication(self, publication: Publication) -> None:
        """Record that the run is published."""
        target = self.request.target and f"on {self.request.target}, not yet on main: the backfill publishes it"
        bad_rows = describe_bad_rows(self.result.bad_rows, self.result.broken_checks)
        reasons = [target, bad_rows, describe_overtaken(publication)]
        self.update_result(
            outcome="published",
            cause=None,
            reason="; ".join(filter(None, reasons)),
            branch=None,
            main_before=publication.main_before,
            main_after=publication.main_after,
        )

    def record_registrations(self, registrations: list[Registration]) -> None:
        """Record the registrations that began, with the result of those that have ended."""
        self.update_result(registrations=[self._registrations.get(each.workflow_id, each) for each in registrations])

    def record_registration(self, registration: Registration) -> None:
        """Record that a registration ended."""
        self._registrations[registration.workflow_id] = registration
        self.record_registrations(self.result.registrations)

    def record_required_approval(self, required: RequiredApproval) -> None:
        """Record the approval that the present write needs. Decisions about an earlier write do not count."""
        self.approval.require(required)
        self.update_result(approval=self.approval.record)

    def request_decisions(self, deadline: datetime) -> None:
        """Record the deadline for decisions about the present write."""
        self.approval.deadline = deadline
        self.update_result()

    def refusal(self, decision: Decision) -> str | None:
        """Return the reason why a decision does not count now, or None if it counts."""
        return self.approval.refusal(decision, self.attempt.report, self.stage)

    def complete(self, decision: Decision) -> Decision:
        """Return a decision with the present hash, report and time, in the form for the record."""
        assert self.attempt.report
        return self.approval.complete(decision, self.attempt.report)

    def record_decision(self, decision: Decision) -> None:
        """Record a decision that counts."""
        self.approval.add(decision)
        self.update_result(approval=self.approval.record)

    def record_refusal(self, decision: Decision, why: str) -> None:
        """Record a decision that does not count."""
        self.approval.refuse(decision, why)
        self.update_result(approval=self.approval.record)

    def record_expiry(self) -> None:
        """Record that the wait for decisions ended without enough of them."""
        self.approval.expire()
        self.update_result(approval=self.approval.record)

    def set_search_attribute(self, update: SearchAttributeUpdate[str]) -> None:
        """Set a search attribute, if the server has Sluice's search attributes."""
        if self.request.search_attributes:
            workflow.upsert_search_attributes([update])

    def status(self) -> RunStatus:
        """Return the answer to the query `status`."""
        deadline = self.approval.deadline
        return RunStatus(
            stage=self.stage,
            events=self._stages.events,
            result=self.result,
            audit_digest=self.attempt.audit_digest,
            deadline=deadline.isoformat() if deadline else "",
        )
