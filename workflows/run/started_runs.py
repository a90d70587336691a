"""Wait for runs that are not children of this workflow, and cancel the runs that a workflow started."""

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.starting import EndedRun, FindRunEndInput, StartedBy
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import raise_if_cancelled

_FIRST_DELAY, _MAX_DELAY = timedelta(seconds=2), timedelta(minutes=5)
"""First and maximum pause between two checks of a run. Each pause is twice the one before."""
_LISTED_AFTER = timedelta(seconds=2)
"""Time until Temporal lists a new run, and until a report that was just sent has arrived."""


async def wait_for_end(calls: ActivityCalls, run: FindRunEndInput, input: object = None) -> EndedRun:
    """Wait for the end of a run that is not a child of this workflow; return its result.

    Args:
        input: the input to continue this workflow as new when its history gets long. None in a cancelled workflow that
            waits for the runs it cancelled.

    Raises:
        CancelledError: the workflow is cancelled, and `input` is given.
    """
    delay = _FIRST_DELAY
    while (ended := (await calls.find_run_end(run)).ended) is None:
        if input is not None:
            raise_if_cancelled()  # an activity that completes during a cancellation does not raise it
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(input)
        await workflow.sleep(delay)
        delay = min(2 * delay, _MAX_DELAY)
    return ended


async def cancel_and_wait(calls: ActivityCalls, started_by: str, since: str) -> EndedRun:
    """Cancel the runs that a workflow started and wait for their ends; return the best result.

    A run goes on when the workflow that started it is terminated. If that workflow is started again under its id, the
    run is not a child of the new execution, but Temporal still lists it as a child of this id.

    Args:
        started_by: the id of the workflow.
        since: the time of the request for the runs, in ISO 8601. Runs that ended after this time count, too.
    """
    await workflow.sleep(_LISTED_AFTER)
    best = EndedRun(outcome="cancelled", cause="cancelled")
    for run in await calls.cancel_started_runs(StartedBy(workflow_id=started_by, since=since)):
        ended = await wait_for_end(calls, run)
        best = ended if ended.is_done or not best.is_done else best
    return best
