"""The fencing step: delete an attempt's branch before the next attempt, so that a late writer of it fails."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import raise_if_cancelled
    from workflows.metrics import count_fence
    from workflows.run_state import RunState


async def fence_attempt(calls: ActivityCalls, state: RunState, why: str) -> None:
    """Delete the branch of the attempt: from now on no process can write on it. `docs/fencing.md` lists the others."""
    assert state.branch
    state.enter_stage("compensating", why)
    await calls.discard_branch(state.branch.name)
    count_fence(state.request.pipeline.name)
    raise_if_cancelled()
