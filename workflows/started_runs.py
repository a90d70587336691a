"""Waiting for the end of runs, and ending those that an earlier start of a workflow began."""

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.arrival_runs import WorkflowIds
    from sluice.contracts.starting import EndedRun, FindRunEndInput
    from workflows.activity_calls import ActivityCalls

_FIRST_DELAY, _MAX_DELAY = timedelta(seconds=2), timedelta(minutes=5)
"""The pause between two looks at a run: each is twice the one before."""


async def wait_for_end(calls: ActivityCalls, run: FindRunEndInput, input: object = None) -> EndedRun:
    """Wait until a run has ended that is no child of this workflow; return how.

    Args:
        input: what this workflow continues as new with if its history gets long, where it may.
    """
    delay = _FIRST_DELAY
    while (ended := (await calls.find_run_end(run)).ended) is None:
        if input is not None and workflow.info().is_continue_as_new_suggested():
            workflow.continue_as_new(input)
        await workflow.sleep(delay)
        delay = min(2 * delay, _MAX_DELAY)
    return ended


async def cancel_and_wait(calls: ActivityCalls, started_by: str) -> EndedRun:
    """Cancel the runs that a workflow started and that are under way; return how they ended.

    They outlive a workflow that is ended by force, and one that is started again under its id has other children.
    """
    ended = EndedRun(outcome="cancelled", cause="cancelled")
    for run in await calls.cancel_started_runs(WorkflowIds(ids=[started_by])):
        ended = await wait_for_end(calls, run)
    return ended
