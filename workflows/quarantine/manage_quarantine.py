"""The workflow that discards a quarantined branch or extends how long it is kept."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.quarantine import ManageQuarantineInput
    from workflows.activity_calls import ActivityCalls


@workflow.defn(name="ManageQuarantine")
class ManageQuarantine:
    """One request of a person about one quarantined branch; Temporal keeps who made it, and when."""

    @workflow.run
    async def run(self, input: ManageQuarantineInput) -> str:
        """Carry out the request; return the branch that exists afterwards, if any."""
        return await ActivityCalls().manage_quarantine(input)
