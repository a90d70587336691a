"""Housekeeping beside runs: a person's orders about quarantines, and the reaper that a schedule starts."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.quarantine import ManageQuarantineInput, ReapBranchesInput, ReapBranchesResult
    from workflows.metrics import reaped as note

_RETRY = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(minutes=1))


@workflow.defn(name="ManageQuarantine")
class ManageQuarantine:
    """One order about one quarantined branch; Temporal keeps who gave it and when."""

    @workflow.run
    async def run(self, input: ManageQuarantineInput) -> str:
        """Do it; return the branch that is there now, if any."""
        left: str = await workflow.execute_activity(
            "manage_quarantine",
            input,
            result_type=str,
            start_to_close_timeout=timedelta(minutes=1),
            schedule_to_close_timeout=timedelta(minutes=10),
            retry_policy=_RETRY,
            summary=f"{input.action} {input.branch}",
        )
        return left


@workflow.defn(name="ReapBranches")
class ReapBranches:
    """Deals with what nobody deals with any more."""

    @workflow.run
    async def run(self, input: ReapBranchesInput) -> ReapBranchesResult:
        """Look once; the schedule comes again."""
        reaped: ReapBranchesResult = await workflow.execute_activity(
            "reap_branches",
            input,
            result_type=ReapBranchesResult,
            start_to_close_timeout=timedelta(minutes=10),
            schedule_to_close_timeout=timedelta(hours=1),
            retry_policy=_RETRY,
        )
        note(reaped.kept, reaped.kept_bytes)
        workflow.set_current_details(reaped.model_dump_json(indent=1))
        return reaped
