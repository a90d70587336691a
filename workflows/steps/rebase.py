"""What a run does when main moved under it: take over what it wrote, or else write again."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.activity_inputs import ForeseeOrder, RebaseOrder
    from sluice.contracts.merge_queue import Turn
    from workflows.activity_calls import Acts
    from workflows.failures import Stopped, heed_cancellation, is_cancelled
    from workflows.run_state import RunState
    from workflows.versions import FEWER_STEPS, REBASE, TURNS

_CROWD = timedelta(seconds=2)
"""How long a run that meets its first conflict steps back, at most; the more it met, the less it waits."""
_PATIENCE = timedelta(minutes=3)
"""How long a run waits for its turn, before it goes on without."""


async def foreseen(acts: Acts, state: RunState) -> list[str]:
    """Return what main changed meanwhile, so that a merge now would fail."""
    if not REBASE.is_in(state.request):
        return []
    assert state.branch and state.written
    state.enter("rebasing", "would it merge?")
    order = ForeseeOrder(branch=state.branch, head=state.written.head, looks_at=state.looks_at)
    found = await acts.foresee_conflicts(order)
    heed_cancellation()
    return found


async def rebase(acts: Acts, state: RunState, collided: list[str]) -> bool:
    """Take over what was written onto main as it is now; return False if it has to be written again.

    Raises:
        Stopped: main moved too often.
    """
    policy, tables = state.request.policy, ", ".join(collided)
    met = state.result.conflicts
    taken = sum(conflict.resolved == "taken over" for conflict in met)
    if taken >= policy.rebases or len(met) - taken >= policy.conflicts:
        raise Stopped("error", f"main changed {tables} each time before the merge")
    if not REBASE.is_in(state.request):
        state.collided(collided, "written again")
        return False
    if state.request.resume or state.request.restore:
        state.collided(collided, "taken over")
        return False  # it begins again from where its rows are kept
    assert state.branch and state.written
    state.enter("rebasing", f"main changed {tables} meanwhile")
    await _let_others_pass(acts, state, collided, taken)
    heed_cancellation()
    old = state.branch.name
    origin = state.origin.model_copy(update={"attempt": state.attempt + 1})
    state.spare = origin.branch
    order = RebaseOrder(
        origin=origin,
        branch=state.branch,
        written=state.written,
        write=state.request.pipeline.write,
        divided=bool(state.result.bad_rows),
    )
    rebased = await acts.rebase_branch(order)
    if rebased.branch is None or rebased.written is None:
        state.spare = ""
        state.collided(collided, "written again", rebased.why_not)
        return False
    state.rebased(rebased.branch, rebased.written)
    state.spare = old
    state.collided(collided, "taken over")
    await acts.discard_branch(old)
    state.spare = ""
    heed_cancellation()
    return True


async def _let_others_pass(acts: Acts, state: RunState, collided: list[str], taken: int) -> None:
    """Wait until it is this run's turn at the first table that it lost; one that waits for people has none.

    The first time it does not wait: most runs are overtaken once, by one that is gone by now, and a turn costs more
    than a take-over.
    """
    if not taken and FEWER_STEPS.is_in(state.request):
        return
    if state.request.pipeline.approval or not TURNS.is_in(state.request):
        await workflow.sleep(_CROWD * workflow.random().random() / (1 + taken) ** 2, summary="let others pass")
        return
    if state.turn:
        return  # it is this run's still
    origin, table = state.origin, min(collided)
    turn = Turn(table=table, run_id=origin.run_id, workflow_id=origin.workflow_id, attempt=origin.attempt)
    state.turn = turn
    try:
        await acts.ask_turn(turn)
        await workflow.wait_condition(
            lambda: state.turn_came == turn, timeout=_PATIENCE, timeout_summary=f"its turn at {table}"
        )
    except asyncio.TimeoutError:
        return  # nothing rests on it
    except FailureError as error:
        if is_cancelled(error):
            raise
        workflow.logger.warning("no turn at %s: %s", table, error)


async def give_back_turn(acts: Acts, state: RunState) -> None:
    """Let the next run pass, if this one has a turn or stands in line."""
    turn, state.turn = state.turn, None
    if turn is None:
        return
    try:
        await acts.give_back_turn(turn)
    except FailureError as error:  # it is taken away after a while
        workflow.logger.warning("the turn at %s could not be given back: %s", turn.table, error)
