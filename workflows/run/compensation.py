"""The compensation step: end a run that does not publish, and quarantine or delete its branch."""

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.publish import DiscardBranchInput
    from sluice.contracts.quarantine import QuarantineBranchInput
    from sluice.identifiers import quarantine_branch
    from sluice.publishing.branch_properties import quarantine_properties
    from sluice.publishing.load_properties import requeue_properties
    from sluice.publishing.outcomes import RunEnding, ending
    from sluice.publishing.release import (
        describe_untouched_quarantine,
        name_failed_statement,
        verified_write,
    )
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import explain_error, root_cause
    from workflows.run.fencing import adopt_publication, discard
    from workflows.run.run_state import RunState
    from workflows.workflow_task import end_workflow_task


async def compensate(calls: ActivityCalls, state: RunState, error: BaseException) -> None:
    """End a run that failed, was stopped or was cancelled, and clean up its branch."""
    if state.is_published:
        return  # after the merge there is nothing to compensate
    cause, reason = explain_error(error)
    request = state.request
    stage = state.stage
    rows_are_kept_already = request.resume or request.restore
    end = ending(cause, request.pipeline.on_failure, may_keep=request.publish and not rows_are_kept_already)
    state.enter_stage("cleaning up", _fate(end) if state.attempt.branch else "")
    await end_workflow_task(calls, state, "record why the run ends before its branch is deleted")
    try:
        kept = await _keep_or_discard(calls, state, end, reason)
        if state.attempt.branch and state.attempt.is_publishing and await adopt_publication(calls, state):
            if kept:
                await discard(calls, state, kept)
            return
    except ActivityError as failure:
        kept = state.attempt.branch.name if state.attempt.branch else ""
        if kept:
            reason += f" (and the branch {kept} could not be quarantined or deleted: {root_cause(failure)[1]})"
    if not state.is_published:
        outcome = end.final_outcome(is_kept=bool(kept))
        if request.resume and stage == "writing" and end.cause != "cancelled":
            reason = name_failed_statement(reason, request.resume)
        if request.resume and (stage == "writing" or end.cause in ("audit", "rejected", "expired", "cancelled")):
            reason += f"; {describe_untouched_quarantine(request.resume)}"
        if request.restore and end.cause == "audit":
            reason += "; to use other checks for the roll-back, name a pipeline file by --pipeline"
        state.update_result(outcome=outcome, cause=end.cause, reason=reason, branch=kept or None)


def _fate(end: RunEnding) -> str:
    """Return what happens to the branch. The reason of the run says why."""
    return "quarantine the branch" if end.keep_branch else "delete the branch"


async def _keep_or_discard(calls: ActivityCalls, state: RunState, end: RunEnding, reason: str) -> str:
    """Quarantine or discard the branch of the last attempt; return the name of the quarantine, if any."""
    if state.orphan_branch:
        await discard(calls, state, state.orphan_branch)
    if state.attempt.branch and end.keep_branch:
        return await _quarantine(calls, state, end, reason)
    if state.attempt.branch:
        await discard(calls, state, state.attempt.branch.name)
    elif state.attempt.number and end.cause != "already_published":  # it may exist, if the answer was lost
        unconfirmed = DiscardBranchInput(branch=state.run_ref.branch, catalog_id=state.catalog_id)
        await calls.discard_unconfirmed_branch(unconfirmed)
    return ""


async def _quarantine(calls: ActivityCalls, state: RunState, end: RunEnding, reason: str) -> str:
    """Quarantine the branch by pipeline, date and run; return the name, or "" if the branch has no changes."""
    assert state.attempt.branch
    now, run_ref = workflow.now(), state.run_ref
    expires = now + timedelta(seconds=state.request.pipeline.keep)
    written, write = state.attempt.write_result, state.request.pipeline.write
    head = written.head if written else ""
    verified = verified_write(written, state.attempt.number, write, rows_quarantined=bool(state.result.bad_rows))
    input = QuarantineBranchInput(
        branch=state.attempt.branch,
        head=head,
        name=quarantine_branch(run_ref.pipeline, now.date().isoformat(), run_ref.run_id),
        properties=quarantine_properties(
            run_ref,
            state.attempt.branch.base,
            end.cause,
            reason,
            expires.isoformat(),
            head=head,
            audited_hash=state.result.audited_hash,
            input=state.input_properties,
            checks=state.result.checks,
            verified=verified,
            target=state.request.target,
            requeued=requeue_properties(state.request.order, state.request.resume),
        ),
        versions=state.attempt.write_result.versions if state.attempt.write_result else {},
    )
    return await calls.quarantine_branch(input)
