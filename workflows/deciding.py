"""Waiting for people, durably."""

import asyncio
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.durations import spoken
    from sluice.pipeline import Approval
    from workflows.acts import Acts
    from workflows.breaks import Stopped
    from workflows.ending import notify
    from workflows.state import RunState


async def decision(acts: Acts, state: RunState, approval: Approval) -> None:
    """Wait for people, durably. No answer in time means no."""
    state.await_decisions(workflow.now() + timedelta(seconds=approval.timeout))
    state.enter("waiting for approval", f"until {state.deadline:%Y-%m-%d %H:%M} UTC")
    assert state.deadline
    await notify(acts, state, state.deadline.isoformat())
    left = state.deadline - workflow.now()
    try:
        await workflow.wait_condition(
            lambda: state.settled() is not None,
            timeout=max(left, timedelta()),
            timeout_summary=f"approval by {approval.required}, for {spoken(approval.timeout)}",
        )
    except asyncio.TimeoutError:
        if state.approval:
            state.approval = state.approval.model_copy(update={"expired": True})
        state.update(approval=state.approval)
        raise Stopped("expired", f"nobody decided within {spoken(approval.timeout)}") from None
    if state.settled() is False:
        last = state.rulings[-1]
        raise Stopped("rejected", f"rejected by {last.by}" + (f": {last.reason}" if last.reason else ""))
