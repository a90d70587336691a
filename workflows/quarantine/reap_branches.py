"""The workflow of the reaper for orphan branches and expired quarantines, started by a schedule."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.quarantine import ReapBranchesInput, ReapBranchesResult
    from workflows.activity_calls import ActivityCalls
    from workflows.metrics import record_quarantines


@workflow.defn(name="ReapBranches")
class ReapBranches:
    """One round of the reaper: delete or quarantine branches of ended runs, and delete expired quarantines."""

    @workflow.run
    async def run(self, input: ReapBranchesInput) -> ReapBranchesResult:
        """Reap once, and report the result in the metrics and in the Web UI."""
        result = await ActivityCalls().reap_branches(input)
        record_quarantines(result.kept, result.kept_bytes)
        workflow.set_current_details(result.model_dump_json(indent=1))
        return result
