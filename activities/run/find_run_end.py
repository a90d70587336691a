"""Find the end of a run: its outcome, if it has ended."""

from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client

from runtime.run.find_run import describe_run, read_result
from sluice.contracts.run import RunResult
from sluice.contracts.starting import EndedRun, FindRunEndInput, RunEnd


@dataclass(frozen=True)
class FindRunEndActivity:
    """The activity `find_run_end`. Needs Temporal's client."""

    client: Client

    @activity.defn(name="find_run_end")
    async def find_run_end(self, input: FindRunEndInput) -> RunEnd:
        """Return the outcome of a run, if it has ended."""
        lookup = await describe_run(self.client, input.workflow_id, input.run_id or None)
        if lookup is None:  # Temporal deletes ended runs after a time
            reason = f"Temporal no longer has the run {input.workflow_id}"
            return RunEnd(ended=EndedRun(workflow_id=input.workflow_id, outcome="failed", cause="error", reason=reason))
        result = await read_result(self.client, lookup.description) if lookup.ended else None
        if result is None:
            return RunEnd()
        closed = lookup.description.close_time
        return RunEnd(
            ended=_ended_run(result, lookup.description.parent_id or ""),
            ended_at=closed.isoformat() if closed else "",
        )


def _ended_run(result: RunResult, started_by: str) -> EndedRun:
    """Return the parts of an ended run's result that other workflows need."""
    return EndedRun(
        workflow_id=result.workflow_id,
        run_id=result.run_id,
        outcome=result.outcome or "failed",
        cause=result.cause,
        reason=result.reason[:1000],
        branch=result.branch or "",
        rows_added=result.summary.added if result.summary else 0,
        started_by=started_by,
    )
