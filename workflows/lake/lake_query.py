"""The workflow of a query about the lake. The command line starts it, and an activity of a worker answers."""

from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.lake_queries import LakeQueryRequest
    from sluice.contracts.lake_query import LAKE_QUERY
    from workflows.activity_calls import ActivityCalls


@workflow.defn(name=LAKE_QUERY)
class LakeQuery:
    """One query about the lake. It changes nothing."""

    @workflow.run
    async def run(self, request: LakeQueryRequest) -> Any:
        """Run the activity that the query names; return its result, a model of `RESULTS`."""
        return await getattr(ActivityCalls(), request.query.kind)(request.query)
