"""Waiting for runs that are no children of this workflow, and cancelling runs by the workflow that started them."""

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.starting import EndedRun, FindRunEndInput, StartedBy
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import raise_if_cancelled

_FIRST_DELAY, _MAX_DELAY = timedelta(seconds=2), timedelta(minutes=5)
"""The pause between two looks at a run: each is twice the one before."""
_LISTED_AFTER = timedelta(seconds=2)
"""When a run that has just started is listed by Temporal, and a report that has just been sent is here."""


async def wait_for_end(calls: ActivityCalls, run: FindRunEndInput, input: object = None) -> EndedRun:
    """Wait for the end of a run that is not a child of this workflow; return how it ended.

    Args:
        input: what the workflow continues as new with when its history gets long. None in a workflow that is cancelled
            and waits for what it cancelled.

    Raises:
        CancelledError: the workflow is cancelled, and has an `input`.
    """
    delay = _FIRST_DELAY
    while (ended := (await calls.find_run_end(run)).ended) is None:
        if input is not None:
            raise_if_cancelled()  # an activity that completes takes the cancel that it ended with
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(input)
        await workflow.sleep(delay)
        delay = min(2 * delay, _MAX_DELAY)
    return ended


async def cancel_and_wait(calls: ActivityCalls, started_by: str, since: str) -> EndedRun:
    """Cancel the runs that a workflow started and wait for their ends; return the best of these.

    A run goes on when the workflow that started it is terminated. If that is started again under its id, the run is not
    a child of the new one. Temporal still lists it as a child of that id.

    Args:
        started_by: the id of the workflow.
        since: when the runs were asked for, in ISO 8601. Runs that ended after this time count, too.
    """
    await workflow.sleep(_LISTED_AFTER)
    best = EndedRun(outcome="cancelled", cause="cancelled")
    for run in await calls.cancel_started_runs(StartedBy(workflow_id=started_by, since=since)):
        ended = await wait_for_end(calls, run)
        best = ended if ended.is_done or not best.is_done else best
    return best
