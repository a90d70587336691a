"""The approval step: wait durably for decisions, and record each decision or the reason why it does not count."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.approval.decisions import Decision
    from sluice.approval.required import RequiredApproval
    from sluice.approval.waivers import describe_checks, waive_command
    from sluice.checks.verdicts import AuditReport
    from sluice.contracts.publish import RequireApprovalInput, VerifyDecisionInput
    from sluice.contracts.run import WAITING
    from sluice.durations import format_duration
    from sluice.times import format_time
    from workflows.activity_calls import ActivityCalls
    from workflows.audit.failed_audit import describe_failed_audit
    from workflows.failures import RunStopped, raise_if_cancelled, root_cause
    from workflows.run.finish import notify
    from workflows.run.run_state import RunState


async def find_required_approval(calls: ActivityCalls, state: RunState) -> RequiredApproval:
    """Return the approval that the run needs: the pipeline's, or more if a worker requires it for the changes."""
    assert state.attempt.branch and state.attempt.report
    input = RequireApprovalInput(
        branch=state.attempt.branch,
        head=state.attempt.report.audited_hash,
        terms=state.approval_terms,
        at_least=1 if state.approval.to_waive else 0,
    )
    required = await calls.require_approval(input)
    state.record_required_approval(required)
    raise_if_cancelled()
    return required


async def wait_for_approval(
    calls: ActivityCalls, state: RunState, approval: RequiredApproval, report: AuditReport
) -> None:
    """Wait until enough people approve the audited hash, and waive the failed checks that need a waiver.

    Raises:
        RunStopped: a person rejected the hash, or the time is over.
    """
    deadline = workflow.now() + timedelta(seconds=approval.timeout)
    state.request_decisions(deadline)
    why = f" ({approval.why})" if approval.why else ""
    note = f"{approval.required} needed until {format_time(deadline)}{why}"
    state.enter_stage(WAITING, "; ".join(filter(None, [note, _waiver_note(state)])))
    await notify(calls, state, deadline.isoformat())
    try:
        await workflow.wait_condition(
            lambda: state.approval.outcome is not None,
            timeout=max(deadline - workflow.now(), timedelta()),
            timeout_summary=f"wait for {approval.required} approval(s), at most {format_duration(approval.timeout)}",
        )
    except asyncio.TimeoutError:
        state.record_expiry()
        raise _stopped_by_time(state, approval, report) from None
    if state.approval.outcome is False:
        last = state.decisions[-1]
        raise RunStopped("rejected", f"rejected by {last.by}" + (f": {last.reason}" if last.reason else ""))
    state.record_granted_waivers()


def _waiver_note(state: RunState) -> str:
    """Return a note with the checks that need a waiver, and the command; empty if there are none."""
    to_waive = state.approval.to_waive
    if not to_waive:
        return ""
    return f"the audit failed, waive {describe_checks(to_waive)}: {waive_command(state.result.workflow_id, to_waive)}"


def _stopped_by_time(state: RunState, approval: RequiredApproval, report: AuditReport) -> RunStopped:
    """Return the end of a run without a decision in time: a failed audit if checks needed a waiver, else expired."""
    within = f"within {format_duration(approval.timeout)}"
    if not state.approval.to_waive:
        return RunStopped("expired", f"no decision {within}")
    waived = f"{len(state.decisions)} of {approval.required} people" if state.decisions else "nobody"
    return RunStopped("audit", f"{describe_failed_audit(state, report)}; {waived} waived that {within}")


async def take_decision(calls: ActivityCalls, state: RunState, decision: Decision) -> str | None:
    """Record a decision that counts, or record and return the reason why it does not count."""
    why = state.refusal(decision)
    if why is None:
        completed = state.complete(decision)
        why = await _verify(calls, state, completed) or state.refusal(completed)  # the run may have gone on meanwhile
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
