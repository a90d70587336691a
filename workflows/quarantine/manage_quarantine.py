"""The workflow that discards a quarantined branch, or changes its expiry."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.quarantine import ManageQuarantineInput
    from workflows.activity_calls import ActivityCalls


@workflow.defn(name="ManageQuarantine")
class ManageQuarantine:
    """One request of a person about one quarantined branch. Temporal's history has the person and the time."""

    @workflow.run
    async def run(self, input: ManageQuarantineInput) -> str:
        """Carry out the request; return the name of the branch, or "" if it was deleted."""
        return await ActivityCalls().manage_quarantine(input)
