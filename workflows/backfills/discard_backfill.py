"""The workflow that deletes the branches that ended backfills of a pipeline left."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.backfill import DiscardBackfillInput
    from workflows.activity_calls import ActivityCalls


@workflow.defn(name="DiscardBackfill")
class DiscardBackfill:
    """One request of a person to delete partitions that were collected but not published."""

    @workflow.run
    async def run(self, input: DiscardBackfillInput) -> list[str]:
        """Delete the branches; return their names."""
        return await ActivityCalls().discard_backfill(input)
