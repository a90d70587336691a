"""The approval step: wait durably for people's decisions, and record each decision or why it does not count."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.approval.decisions import Decision
    from sluice.approval.required import RequiredApproval
    from sluice.contracts.publish import RequireApprovalInput, VerifyDecisionInput
    from sluice.pipeline.durations import format_duration
    from sluice.times import format_time
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import RunStopped, raise_if_cancelled, root_cause
    from workflows.run_state import RunState
    from workflows.steps.finish import notify


async def find_required_approval(calls: ActivityCalls, state: RunState) -> RequiredApproval:
    """Return the approval that the run needs: its pipeline's, or more that a worker demands for what it changed."""
    assert state.branch and state.report
    input = RequireApprovalInput(branch=state.branch, head=state.report.audited_hash, terms=state.approval_terms)
    required = await calls.require_approval(input)
    state.record_required_approval(required)
    raise_if_cancelled()
    return required


async def wait_for_approval(calls: ActivityCalls, state: RunState, approval: RequiredApproval) -> None:
    """Wait until enough people approve the audited hash.

    Raises:
        RunStopped: a person rejected it, or the time is over.
    """
    deadline = workflow.now() + timedelta(seconds=approval.timeout)
    state.request_decisions(deadline)
    why = f" ({approval.why})" if approval.why else ""
    state.enter_stage("waiting for approval", f"{approval.required} needed until {format_time(deadline)}{why}")
    await notify(calls, state, deadline.isoformat())
    try:
        await workflow.wait_condition(
            lambda: state.approval_outcome() is not None,
            timeout=max(deadline - workflow.now(), timedelta()),
            timeout_summary=f"wait for {approval.required} approval(s), at most {format_duration(approval.timeout)}",
        )
    except asyncio.TimeoutError:
        state.record_expiry()
        raise RunStopped("expired", f"no decision within {format_duration(approval.timeout)}") from None
    if state.approval_outcome() is False:
        last = state.decisions[-1]
        raise RunStopped("rejected", f"rejected by {last.by}" + (f": {last.reason}" if last.reason else ""))


async def take_decision(calls: ActivityCalls, state: RunState, decision: Decision) -> str | None:
    """Record a decision that counts, or record why it does not and return that."""
    why = state.refusal(decision)
    if why is None:
        completed = state.complete(decision)
        why = await _verify(calls, state, completed) or state.refusal(completed)  # the run went on meanwhile
        if not why:
            state.record_decision(completed)
            return None
    state.record_refusal(decision, why)
    return why


async def _verify(calls: ActivityCalls, state: RunState, decision: Decision) -> str:
    try:
        return await calls.verify_decision(VerifyDecisionInput(run_id=state.result.run_id, decision=decision))
    except ActivityError as error:
        return f"its signature could not be verified: {root_cause(error)[1]}"
