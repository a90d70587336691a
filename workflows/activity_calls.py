"""The activities as the workflow sees them: typed, each with its time-outs, retries and summary."""

from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import FailureError, is_cancelled_exception
from temporalio.workflow import ActivityCancellationType

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.activity_inputs import (
        SCAN_TRIES,
        AuditInput,
        AuditPlan,
        BranchRef,
        ConfirmPublicationInput,
        FindConflictsInput,
        JobReport,
        OpenBranchInput,
        Publication,
        PublishBranchInput,
        QuarantineBranchInput,
        QuarantineRowsInput,
        QuarantineRowsResult,
        RebaseBranchInput,
        RebaseResult,
        ResumeInput,
        RunRef,
        ScanInput,
        VerifyDecisionInput,
        VerifyWriteInput,
        WriteResult,
        WriteTableInput,
    )
    from sluice.contracts.merge_queue import MergeTicket
    from sluice.contracts.run import Notification, RecordRunInput, RunRequest
    from sluice.identifiers import quarantine_branch

_WAIT = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
"""A cancel waits until the act is over: clean-up must not begin while Spark still writes."""
_DECISION = timedelta(minutes=2)
_SHORT = timedelta(seconds=5)
"""How long a short hop may take, before it is done as a step of its own."""
_PERHAPS = timedelta(seconds=10)
_PATIENT = RetryPolicy(initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=10))
_ONCE = RetryPolicy(maximum_attempts=1)
_FEW = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=3)
_SCANS = RetryPolicy(
    initial_interval=timedelta(seconds=2), maximum_interval=timedelta(minutes=1), maximum_attempts=SCAN_TRIES
)
_T = TypeVar("_T")


class ActivityCalls:
    """Every act of a run on the outside world."""

    def __init__(self, request: RunRequest) -> None:
        policy = request.policy
        self._heartbeat = timedelta(seconds=policy.heartbeat_timeout)
        self._opening = timedelta(seconds=policy.open_timeout)
        self._step = timedelta(seconds=policy.step_timeout)
        self._spark_queue = policy.spark_queue or None
        self._one_try = timedelta(seconds=policy.act_timeout)

    async def open_branch(self, input: OpenBranchInput) -> BranchRef:
        """Make the branch of an attempt. Only the first is impatient: nothing is there to lose yet."""
        summary = f"attempt {input.run_ref.attempt} for {', '.join(input.tables)}"
        patience = self._opening if input.catalog_id is None else self._step
        return await self._hop("open_branch", input, BranchRef, summary, patience)

    async def write_table(self, input: WriteTableInput) -> JobReport:
        """Run the Spark job once: the workflow counts the attempts, each on a branch of its own."""
        summary = f"{input.write.job.rsplit('/', 1)[-1]} on {input.branch}"
        return await self._run_long("write_table", input, JobReport, summary, _ONCE, input.write.timeout, spark=True)

    async def verify_write(self, input: VerifyWriteInput) -> WriteResult:
        """Read the write back from the branch."""
        return await self._hop("verify_write", input, WriteResult, f"snapshots on {input.branch.name}")

    async def audit_branch(self, input: AuditInput, *, again: bool = False) -> AuditPlan:
        """Answer from metadata what it can answer. Once `again`, of rows that were taken over, is a short hop."""
        checks = sum(len(table.checks) for table in input.tables.values())
        summary = f"{checks} checks at {input.head[:12]}"
        if again:
            return await self._hop("audit_branch", input, AuditPlan, summary)
        return await self._ask("audit_branch", input, AuditPlan, summary)

    async def scan_files(self, input: ScanInput) -> AuditPlan:
        """Ask the rows by DuckDB, in the worker. It only reads, so it may be repeated."""
        summary = f"{sum(map(len, input.undecided.values()))} checks by DuckDB"
        return await self._run_long("scan_files", input, AuditPlan, summary, _SCANS, self._step.total_seconds())

    async def scan_branch(self, input: ScanInput) -> AuditPlan:
        """Ask the rows the rest, by Spark. It only reads, so it may be repeated."""
        summary = f"{sum(map(len, input.undecided.values()))} checks by one Spark pass"
        seconds = self._step.total_seconds()
        return await self._run_long("scan_branch", input, AuditPlan, summary, _SCANS, seconds, spark=True)

    async def quarantine_rows(self, input: QuarantineRowsInput) -> QuarantineRowsResult:
        """Set bad rows apart, once: an attempt that breaks off here is written again."""
        summary = f"bad rows of {', '.join(input.failing)}"
        seconds = self._step.total_seconds()
        return await self._run_long("quarantine_rows", input, QuarantineRowsResult, summary, _ONCE, seconds, spark=True)

    async def find_conflicts(self, input: FindConflictsInput) -> list[str]:
        """Find out whether a merge now would fail, and for which tables."""
        return await self._hop("find_conflicts", input, list[str], f"would {input.head[:12]} merge?")

    async def resume_branch(self, input: ResumeInput) -> RebaseResult:
        """Take up what a kept branch holds."""
        return await self._ask("resume_branch", input, RebaseResult, input.resume.branch if input.resume else "")

    async def restore_tables(self, input: ResumeInput) -> RebaseResult:
        """Take tables back to what they were."""
        summary = ", ".join(input.restore.tables) if input.restore else ""
        return await self._ask("restore_tables", input, RebaseResult, summary)

    async def rebase_branch(self, input: RebaseBranchInput) -> RebaseResult:
        """Take over what an attempt wrote onto main as it is now."""
        summary = f"{input.branch.name} onto a newer main"
        return await self._hop("rebase_branch", input, RebaseResult, summary)

    async def acquire_merge_slot(self, turn: MergeTicket) -> None:
        """Stand in line at a table."""
        await self._hop("acquire_merge_slot", turn, type(None), turn.table, _PERHAPS)

    async def release_merge_slot(self, turn: MergeTicket) -> None:
        """Let the next run at a table have its turn."""
        await self._hop("release_merge_slot", turn, type(None), turn.table, _PERHAPS)

    async def verify_decision(self, input: VerifyDecisionInput) -> str:
        """Find out whether a decision is its author's; return why it is not."""
        return await self._hop("verify_decision", input, str, f"{input.ruled.by} decides", _DECISION)

    async def publish_branch(self, input: PublishBranchInput) -> Publication:
        """Merge the audited hash."""
        return await self._ask("publish_branch", input, Publication, f"merge {input.head[:12]} into main")

    async def confirm_publication(self, branch: BranchRef, head: str) -> Publication:
        """Look whether main holds a hash."""
        input = ConfirmPublicationInput(base=branch.base, head=head)
        return await self._ask("confirm_publication", input, Publication, f"is {head[:12]} in main?")

    async def discard_branch(self, name: str, *, perhaps: bool = False) -> None:
        """Delete a branch for good. One that is there only `perhaps` is not waited for long."""
        await self._hop("discard_branch", name, type(None), name, _PERHAPS if perhaps else self._step)

    async def quarantine_branch(self, run_ref: RunRef, branch: BranchRef, head: str, said: dict[str, str]) -> str:
        """Keep what a branch holds, under a name that says pipeline, date and run; return the name."""
        name = quarantine_branch(run_ref.pipeline, workflow.now().date().isoformat(), run_ref.run_id)
        input = QuarantineBranchInput(branch=branch, head=head, name=name, said=said)
        return await self._ask("quarantine_branch", input, str, name)

    async def record_run(self, input: RecordRunInput) -> str:
        """Write down what became of the run. Whoever calls this ignores its failure."""
        return await self._hop("record_run", input, str, input.result.outcome or "", timedelta(seconds=60))

    async def notify(self, notice: Notification) -> None:
        """Tell people, if there is a way to. Whoever calls this ignores its failure."""
        summary = notice.result.outcome or "waiting for approval"
        if not await self._hop("can_notify", notice, bool, summary, _PERHAPS):
            return
        await workflow.execute_activity(
            "notify",
            notice,
            start_to_close_timeout=timedelta(seconds=20),
            schedule_to_close_timeout=timedelta(seconds=60),
            retry_policy=_FEW,
            summary=summary,
        )

    async def _hop(
        self,
        name: str,
        input: object,
        answer: type[_T],
        summary: str,
        patience: timedelta | None = None,
    ) -> _T:
        """Ask what is answered quickly, within the workflow's own task.

        What was not is asked again, patiently, in a step of its own, so that a failure is seen where people look.
        The first may still go on then: these acts are idempotent.
        """
        try:
            found: _T = await workflow.execute_local_activity(
                name,
                input,
                result_type=answer,
                start_to_close_timeout=_SHORT,
                retry_policy=_ONCE,
                cancellation_type=_WAIT,
                summary=summary,
            )
            return found
        except FailureError as error:  # as it was raised, and not within an ActivityError
            if is_cancelled_exception(error):
                raise
        return await self._ask(name, input, answer, summary, patience)

    async def _ask(
        self, name: str, input: object, answer: type[_T], summary: str, patience: timedelta | None = None
    ) -> _T:
        """Ask something of the catalog, as often as it takes within `patience`."""
        found: _T = await workflow.execute_activity(
            name,
            input,
            result_type=answer,
            start_to_close_timeout=self._one_try,
            schedule_to_close_timeout=patience or self._step,
            retry_policy=_PATIENT,
            cancellation_type=_WAIT,
            summary=summary,
        )
        return found

    async def _run_long(
        self,
        name: str,
        input: object,
        answer: type[_T],
        summary: str,
        retry: RetryPolicy,
        seconds: float,
        *,
        spark: bool = False,
    ) -> _T:
        """Run what takes its time, and must give signs of life."""
        found: _T = await workflow.execute_activity(
            name,
            input,
            result_type=answer,
            start_to_close_timeout=timedelta(seconds=seconds),
            heartbeat_timeout=self._heartbeat,
            task_queue=self._spark_queue if spark else None,
            retry_policy=retry,
            cancellation_type=_WAIT,
            summary=summary,
        )
        return found
