"""What a run does when main moved under it: take over what it wrote, or else write again."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.activity_inputs import FindConflictsInput, RebaseBranchInput
    from sluice.contracts.merge_queue import MergeTicket
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import RunStopped, is_cancelled, raise_if_cancelled
    from workflows.run_state import RunState

_CROWD = timedelta(seconds=2)
"""How long a run that meets its first conflict steps back, at most; the more it met, the less it waits."""
_PATIENCE = timedelta(minutes=3)
"""How long a run waits for its turn, before it goes on without."""


async def premerge_check(calls: ActivityCalls, state: RunState) -> list[str]:
    """Return what main changed meanwhile, so that a merge now would fail."""
    assert state.branch and state.write_result
    state.enter("rebasing", "would it merge?")
    input = FindConflictsInput(
        branch=state.branch, head=state.write_result.head, referenced_tables=state.referenced_tables
    )
    found = await calls.find_conflicts(input)
    raise_if_cancelled()
    return found


async def rebase(calls: ActivityCalls, state: RunState, record_conflict: list[str]) -> bool:
    """Take over what was written onto main as it is now; return False if it has to be written again.

    Raises:
        Stopped: main moved too often.
    """
    policy, tables = state.request.policy, ", ".join(record_conflict)
    met = state.result.conflicts
    taken = sum(conflict.resolved == "taken over" for conflict in met)
    if taken >= policy.rebases or len(met) - taken >= policy.conflicts:
        raise RunStopped("error", f"main changed {tables} each time before the merge")
    if state.request.resume or state.request.restore:
        state.record_conflict(record_conflict, "taken over")
        return False  # it begins again from where its rows are kept
    assert state.branch and state.write_result
    state.enter("rebasing", f"main changed {tables} meanwhile")
    await _let_others_pass(calls, state, record_conflict, taken)
    raise_if_cancelled()
    old = state.branch.name
    run_ref = state.run_ref.model_copy(update={"attempt": state.attempt + 1})
    state.spare = run_ref.branch
    input = RebaseBranchInput(
        run_ref=run_ref,
        branch=state.branch,
        write_result=state.write_result,
        write=state.request.pipeline.write,
        divided=bool(state.result.bad_rows),
    )
    rebased = await calls.rebase_branch(input)
    if rebased.branch is None or rebased.write_result is None:
        state.spare = ""
        state.record_conflict(record_conflict, "written again", rebased.why_not)
        return False
    state.rebased(rebased.branch, rebased.write_result)
    state.spare = old
    state.record_conflict(record_conflict, "taken over")
    await calls.discard_branch(old)
    state.spare = ""
    raise_if_cancelled()
    return True


async def _let_others_pass(calls: ActivityCalls, state: RunState, record_conflict: list[str], taken: int) -> None:
    """Wait until it is this run's turn at the first table that it lost; one that waits for people has none.

    The first time it does not wait: most runs are overtaken once, by one that is gone by now, and a turn costs more
    than a take-over.
    """
    if not taken:
        return
    if state.request.pipeline.approval:
        await workflow.sleep(_CROWD * workflow.random().random() / (1 + taken) ** 2, summary="let others pass")
        return
    if state.turn:
        return  # it is this run's still
    run_ref, table = state.run_ref, min(record_conflict)
    turn = MergeTicket(table=table, run_id=run_ref.run_id, workflow_id=run_ref.workflow_id, attempt=run_ref.attempt)
    state.turn = turn
    try:
        await calls.acquire_merge_slot(turn)
        await workflow.wait_condition(
            lambda: state.turn_came == turn, timeout=_PATIENCE, timeout_summary=f"its turn at {table}"
        )
    except asyncio.TimeoutError:
        return  # nothing rests on it
    except FailureError as error:
        if is_cancelled(error):
            raise
        workflow.logger.warning("no turn at %s: %s", table, error)


async def release_merge_slot(calls: ActivityCalls, state: RunState) -> None:
    """Let the next run pass, if this one has a turn or stands in line."""
    turn, state.turn = state.turn, None
    if turn is None:
        return
    try:
        await calls.release_merge_slot(turn)
    except FailureError as error:  # it is taken away after a while
        workflow.logger.warning("the turn at %s could not be given back: %s", turn.table, error)
