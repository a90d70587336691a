"""Wait in the merge queue of a table, so that runs with repeated conflicts publish one after the other."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.merge_queue import MergeTicket
    from sluice.publishing.retries import count_rebases, needs_merge_slot
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import is_cancelled
    from workflows.run.run_state import RunState

_MAX_WAIT = timedelta(minutes=3)
"""Maximum wait of a run for the merge slot. Then it continues without the slot."""


async def wait_for_merge_slot(calls: ActivityCalls, state: RunState, conflicts: list[str]) -> None:
    """Wait until this run gets the merge slot of the first conflicting table, for a limited time.

    A run that needs no slot does not wait. A run that has the slot asks again at each conflict, and keeps it.
    Correctness does not depend on the slot.
    """
    rebases = count_rebases(state.result.conflicts)
    if not (state.request.policy.merge_queue and needs_merge_slot(rebases)):
        return
    table = state.merge_slot.requested.table if state.merge_slot.requested else min(conflicts)
    run_ref = state.run_ref
    ticket = MergeTicket(table=table, run_id=run_ref.run_id, workflow_id=run_ref.workflow_id, rebases=rebases)
    state.merge_slot.requested = ticket
    try:
        await calls.acquire_merge_slot(ticket)
        await workflow.wait_condition(
            lambda: state.merge_slot.is_held, timeout=_MAX_WAIT, timeout_summary=f"wait for the merge slot of {table}"
        )
    except asyncio.TimeoutError:
        return
    except FailureError as error:
        if is_cancelled(error):
            raise
        workflow.logger.warning("the run continues without the merge slot of %s: %s", table, error)


async def release_merge_slot(calls: ActivityCalls, state: RunState) -> None:
    """Release the merge slot for the next run, or leave the queue."""
    ticket, state.merge_slot.requested = state.merge_slot.requested, None
    if ticket is None:
        return
    try:
        await calls.release_merge_slot(ticket)
    except FailureError as error:  # the queue takes the slot back after a while
        workflow.logger.warning("the merge slot of %s could not be released: %s", ticket.table, error)
