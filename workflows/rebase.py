"""What a run does when main moved under it: take over what it wrote, or else write again."""

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.orders import ForeseeOrder, RebaseOrder
    from workflows.acts import Acts
    from workflows.breaks import Stopped, heed_cancellation
    from workflows.state import RunState

_PATCH = "rebase"
"""Runs that began before there was a rebase write again."""
_CROWD = timedelta(seconds=2)
"""How long a run that meets its first conflict steps back, at most; the more it met, the less it waits."""


async def foreseen(acts: Acts, state: RunState) -> list[str]:
    """Return what main changed meanwhile, so that a merge now would fail."""
    if not workflow.patched(_PATCH):
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
    if not workflow.patched(_PATCH):
        state.collided(collided, "written again")
        return False
    if state.request.resume or state.request.restore:
        state.collided(collided, "taken over")
        return False  # it begins again from where its rows are kept
    assert state.branch and state.written
    state.enter("rebasing", f"main changed {tables} meanwhile")
    await workflow.sleep(_CROWD * workflow.random().random() / (1 + taken) ** 2, summary="let others pass")
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
