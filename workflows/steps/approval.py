"""Waiting for people, durably."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.approval.decisions import Decision
    from sluice.contracts.activity_inputs import VerifyDecisionInput
    from sluice.pipeline.durations import format_duration
    from sluice.pipeline.model import Approval
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import RunStopped, root_cause
    from workflows.run_state import RunState
    from workflows.steps.compensation import notify


async def decision(calls: ActivityCalls, state: RunState, approval: Approval) -> None:
    """Wait for people, durably. No answer in time means no."""
    state.await_decisions(workflow.now() + timedelta(seconds=approval.timeout))
    state.enter("waiting for approval", f"until {state.deadline:%Y-%m-%d %H:%M} UTC")
    assert state.deadline
    await notify(calls, state, state.deadline.isoformat())
    left = state.deadline - workflow.now()
    try:
        await workflow.wait_condition(
            lambda: state.settled() is not None,
            timeout=max(left, timedelta()),
            timeout_summary=f"approval by {approval.required}, for {format_duration(approval.timeout)}",
        )
    except asyncio.TimeoutError:
        if state.approval:
            state.approval = state.approval.model_copy(update={"expired": True})
        state.update(approval=state.approval)
        raise RunStopped("expired", f"nobody decided within {format_duration(approval.timeout)}") from None
    if state.settled() is False:
        last = state.rulings[-1]
        raise RunStopped("rejected", f"rejected by {last.by}" + (f": {last.reason}" if last.reason else ""))


async def decided(calls: ActivityCalls, state: RunState, decision: Decision, *, approve: bool) -> str | None:
    """Count a decision, or note why it does not count and return that."""
    ruled = state.ruled(decision, approve)
    if ruled:
        try:
            why = await calls.verify_decision(VerifyDecisionInput(run_id=state.result.run_id, ruled=ruled))
        except ActivityError as error:
            why = f"its statement could not be checked: {root_cause(error)[1]}"
        if why:
            return state.refused(decision, why)
    return state.decide(decision, approve)
