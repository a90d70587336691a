"""Runs over several tables on a lake in memory, up to their quarantine, their release, or their publication."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from activities.approval.require_approval import ApprovalPolicy
from activities.errors import as_application_error
from activities.publishing.publish_branch import PublishBranchActivity
from activities.quarantine.plan_release import PlanReleaseActivity
from activities.quarantine.quarantine_branch import QuarantineBranchActivity
from activities.quarantine.resume_branch import ResumeBranchActivity
from activities.run.attempt_branch import AttemptBranch
from activities.run.running_workflows import RunningWorkflows
from activities.run.verify_write import VerifyWriteActivity
from lakehouse.catalog import BranchCatalog
from sluice.checks.verdicts import AuditReport
from sluice.contracts.existing_rows import ExistingRowsResult, Restore, Resume, ResumeBranchInput
from sluice.contracts.lake_queries import PlanReleaseInput
from sluice.contracts.publish import MergeApproval, Publication
from sluice.contracts.quarantine import QuarantineBranchInput
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.contracts.write import JobReport, VerifyWriteInput, WriteResult
from sluice.errors import ServiceUnavailable
from sluice.identifiers import quarantine_branch
from sluice.pipeline.model import Pipeline
from sluice.pipeline.write import Write
from sluice.publishing.branch_properties import quarantine_properties
from sluice.publishing.certificate import certificate
from sluice.publishing.release import verified_write
from sluice.roles import ShowRows
from tests.harness.activity import run_activity
from tests.harness.memory_lake import MemoryLake
from tests.harness.publish_input import publish_input

HERE = "here"
LATER = "2100-01-01T00:00:00+00:00"
PAST = "2026-01-01T00:00:00+00:00"
APPEND = Write.model_validate({"job": "job.py", "on_conflict": "rebase"})


class FakeWorkflows(RunningWorkflows):
    """A fake for the list of running workflows, which needs no Temporal."""

    def __init__(self, *running: str, is_away: bool = False) -> None:
        super().__init__(cast(Any, None), cast(Any, None))
        self._running, self._is_away = set(running), is_away

    def is_running(self, workflow_id: str, run_id: str | None = None) -> bool:
        """Return True if the workflow, or this run of it (as `workflow/run`), is one of the given ones."""
        if self._is_away:
            raise ServiceUnavailable("it is away")
        return (f"{workflow_id}/{run_id}" if run_id else workflow_id) in self._running


@dataclass
class LakeRun:
    """One run, executed step by step in the workflow's order."""

    lake: MemoryLake
    tables: Sequence[str] = ("t.x",)
    pipeline: str = "p"
    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    write: Write = APPEND
    checks: dict[str, list[Any]] = field(default_factory=dict)
    allow_partial: bool = False
    show_rows: ShowRows = "all"

    def __post_init__(self) -> None:
        """Name the run and its first attempt."""
        self.ref = RunRef(
            run_id=self.run_id,
            workflow_id=f"{self.pipeline}-{self.run_id[:12]}",
            pipeline=self.pipeline,
            label=self.pipeline,
            attempt=1,
        )

    @property
    def catalog(self) -> BranchCatalog:
        """The catalog of the lake."""
        return self.lake.catalog

    def open(self) -> BranchRef:
        """Create the branch of the attempt."""
        branch: BranchRef = run_activity(self._open)
        return branch

    def _open(self) -> BranchRef:
        with as_application_error():
            attempt = AttemptBranch(self.catalog, HERE, self.ref.branch)
            attempt.create(self.ref, "open")
            return attempt.ref(self.catalog.identity(), tables=())

    def append(self, branch: BranchRef, *ids: int, tables: Sequence[str] = ()) -> None:
        """Append rows to tables of the run, by default to all."""
        for table in tables or self.tables:
            self.lake.append(branch.name, table, ids, self.ref)

    def verify(self, branch: BranchRef) -> WriteResult:
        """Verify the write, as the workflow does."""
        input = VerifyWriteInput(
            run_ref=self.ref, branch=branch, write=self.write, tables=list(self.tables), job=JobReport()
        )
        result: WriteResult = run_activity(VerifyWriteActivity(self.catalog, {}).verify_write, input)
        return result

    def quarantine(
        self,
        branch: BranchRef,
        written: WriteResult | None,
        expires: str = LATER,
        installation: str = HERE,
        target: str = "",
    ) -> str:
        """Quarantine the attempt, as compensation does; return the name of the quarantine."""
        verified = verified_write(written, self.ref.attempt, self.write, rows_quarantined=False)
        head = written.head if written else ""
        properties = quarantine_properties(
            self.ref, branch.base, "audit", "bad rows", expires, head=head, verified=verified, target=target
        )
        name = quarantine_branch(self.pipeline, "2026-01-31", self.run_id)
        versions = written.versions if written else {}
        input = QuarantineBranchInput(branch=branch, head=head, name=name, properties=properties, versions=versions)
        kept: str = run_activity(QuarantineBranchActivity(self.catalog, installation).quarantine_branch, input)
        return kept

    def quarantined(self, *ids: int, **more: Any) -> str:
        """Write, verify and quarantine rows; return the name of the quarantine."""
        branch = self.open()
        self.append(branch, *ids)
        return self.quarantine(branch, self.verify(branch), **more)

    def resume(self, resume: Resume, write: Write | None = None) -> ExistingRowsResult:
        """Copy the rows of a quarantine onto the branch of the attempt."""
        input = ResumeBranchInput(
            run_ref=self.ref,
            resume=resume,
            write=write or self.write,
            tables=list(self.tables),
            allow_partial=self.allow_partial,
        )
        result: ExistingRowsResult = run_activity(ResumeBranchActivity(self.catalog, {}, HERE).resume_branch, input)
        return result

    def publish(
        self,
        branch: BranchRef,
        written: WriteResult,
        resume: Resume | None = None,
        restore: Restore | None = None,
        referenced: Sequence[str] = (),
    ) -> Publication:
        """Publish the attempt with its certificate."""
        tables = {table: {"checks": self.checks.get(table, [])} for table in self.tables}
        options = {"allow_partial": self.allow_partial}
        pipeline = {"name": self.pipeline, "write": {"job": "job.py"}, "tables": tables, "publish": options}
        request = RunRequest(
            pipeline=Pipeline.model_validate({**pipeline, "show_rows": self.show_rows}),
            input=RunInput(digest=self.run_id),
            starter="ana",
            resume=resume,
            restore=restore,
        )
        report = AuditReport(branch=branch.name, audited_hash=written.head)
        properties = certificate(
            request, self.ref, report, [], referenced_tables=referenced, guarantee=branch.guarantee
        )
        approval = MergeApproval(audit_digest=report.digest)
        input = publish_input(self.ref, branch, written.head, properties, approval=approval)
        publication: Publication = run_activity(
            PublishBranchActivity(self.catalog, ApprovalPolicy(self.catalog)).publish_branch, input
        )
        return publication

    def published(self, *ids: int, referenced: Sequence[str] = ()) -> Publication:
        """Write, verify and publish rows."""
        branch = self.open()
        self.append(branch, *ids)
        return self.publish(branch, self.verify(branch), referenced=referenced)


def plan_release(lake: MemoryLake, run: str, *statements: str, installation: str = HERE) -> Resume:
    """Plan the release of a quarantined run, as a worker does for the command line."""
    query = PlanReleaseInput(run=run, statements=list(statements))
    resume: Resume = run_activity(PlanReleaseActivity(lake.catalog, installation).plan_release, query).resume
    return resume
