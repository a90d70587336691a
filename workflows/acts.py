"""The activities as the workflow sees them: typed, each with its time-outs, retries and summary."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.workflow import ActivityCancellationType

with workflow.unsafe.imports_passed_through():
    from sluice.names import quarantine_branch
    from sluice.run import (
        AuditOrder,
        AuditPlan,
        ConfirmOrder,
        JobReport,
        Notice,
        OpenBranch,
        OpenOrder,
        Origin,
        Policy,
        Publication,
        PublishOrder,
        QuarantineOrder,
        ScanOrder,
        VerifyOrder,
        WriteOrder,
        Written,
    )

_WAIT = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
_ONE_TRY = timedelta(minutes=3)
_PERHAPS = timedelta(seconds=10)
_PATIENT = RetryPolicy(initial_interval=timedelta(milliseconds=500), maximum_interval=timedelta(seconds=10))
_ONCE = RetryPolicy(maximum_attempts=1)
_SCANS = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=3)
_NOTICES = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=3)


class Acts:
    """Every act of a run on the outside world."""

    def __init__(self, policy: Policy) -> None:
        self._heartbeat = timedelta(seconds=policy.heartbeat_timeout)
        self._opening = timedelta(seconds=policy.open_timeout)
        self._step = timedelta(seconds=policy.step_timeout)

    async def open_branch(self, order: OpenOrder) -> OpenBranch:
        """Make the branch of an attempt. Only the first is impatient: nothing is there to lose yet."""
        return await workflow.execute_activity(
            "open_branch",
            order,
            result_type=OpenBranch,
            start_to_close_timeout=_ONE_TRY,
            schedule_to_close_timeout=self._opening if order.catalogue is None else self._step,
            retry_policy=_PATIENT,
            cancellation_type=_WAIT,
            summary=f"attempt {order.origin.attempt} for {', '.join(order.tables)}",
        )

    async def write_table(self, order: WriteOrder) -> JobReport:
        """Run the Spark job once: the workflow counts the attempts, each on a branch of its own."""
        return await workflow.execute_activity(
            "write_table",
            order,
            result_type=JobReport,
            start_to_close_timeout=timedelta(seconds=order.write.timeout),
            heartbeat_timeout=self._heartbeat,
            retry_policy=_ONCE,
            cancellation_type=_WAIT,
            summary=f"{order.write.job} on {order.branch}",
        )

    async def verify_write(self, order: VerifyOrder) -> Written:
        """Read the write back from the branch."""
        return await workflow.execute_activity(
            "verify_write",
            order,
            result_type=Written,
            start_to_close_timeout=_ONE_TRY,
            schedule_to_close_timeout=self._step,
            retry_policy=_PATIENT,
            cancellation_type=_WAIT,
            summary=f"snapshots on {order.branch.name}",
        )

    async def audit_branch(self, order: AuditOrder) -> AuditPlan:
        """Answer from metadata what it can answer."""
        return await workflow.execute_activity(
            "audit_branch",
            order,
            result_type=AuditPlan,
            start_to_close_timeout=_ONE_TRY,
            schedule_to_close_timeout=self._step,
            retry_policy=_PATIENT,
            cancellation_type=_WAIT,
            summary=f"{sum(len(table.checks) for table in order.tables.values())} checks at {order.head[:12]}",
        )

    async def scan_branch(self, order: ScanOrder) -> AuditPlan:
        """Ask the rows the rest. It only reads, so it may be repeated."""
        return await workflow.execute_activity(
            "scan_branch",
            order,
            result_type=AuditPlan,
            start_to_close_timeout=self._step,
            heartbeat_timeout=self._heartbeat,
            retry_policy=_SCANS,
            cancellation_type=_WAIT,
            summary=f"{sum(map(len, order.undecided.values()))} checks by one Spark pass",
        )

    async def publish_branch(self, order: PublishOrder) -> Publication:
        """Merge the audited hash."""
        return await workflow.execute_activity(
            "publish_branch",
            order,
            result_type=Publication,
            start_to_close_timeout=_ONE_TRY,
            schedule_to_close_timeout=self._step,
            retry_policy=_PATIENT,
            cancellation_type=_WAIT,
            summary=f"merge {order.head[:12]} into main",
        )

    async def confirm_publication(self, branch: OpenBranch, head: str) -> Publication:
        """Look whether main holds a hash."""
        return await workflow.execute_activity(
            "confirm_publication",
            ConfirmOrder(base=branch.base, head=head),
            result_type=Publication,
            start_to_close_timeout=_ONE_TRY,
            schedule_to_close_timeout=self._step,
            retry_policy=_PATIENT,
            summary=f"is {head[:12]} in main?",
        )

    async def discard_branch(self, name: str, *, perhaps: bool = False) -> None:
        """Delete a branch for good. One that is there only `perhaps` is not waited for long."""
        await workflow.execute_activity(
            "discard_branch",
            name,
            start_to_close_timeout=_ONE_TRY,
            schedule_to_close_timeout=_PERHAPS if perhaps else self._step,
            retry_policy=_PATIENT,
            summary=name,
        )

    async def quarantine_branch(self, origin: Origin, branch: OpenBranch, head: str) -> str:
        """Keep what a branch holds, under a name that says pipeline, date and run; return the name."""
        name = quarantine_branch(origin.pipeline, workflow.now().date().isoformat(), origin.run_id)
        return await workflow.execute_activity(
            "quarantine_branch",
            QuarantineOrder(branch=branch, head=head, name=name),
            result_type=str,
            start_to_close_timeout=_ONE_TRY,
            schedule_to_close_timeout=self._step,
            retry_policy=_PATIENT,
            summary=name,
        )

    async def notify(self, notice: Notice) -> None:
        """Tell people. Whoever calls this ignores its failure."""
        await workflow.execute_activity(
            "notify",
            notice,
            start_to_close_timeout=timedelta(seconds=20),
            schedule_to_close_timeout=timedelta(seconds=60),
            retry_policy=_NOTICES,
            summary=notice.result.outcome or "waiting for approval",
        )
