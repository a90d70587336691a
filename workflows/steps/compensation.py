"""The compensation step: how a run that does not publish ends, and what becomes of its branch."""

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.publish import ConfirmPublicationInput
    from sluice.contracts.quarantine import QuarantineBranchInput
    from sluice.identifiers import quarantine_branch
    from sluice.publishing.certificate import quarantine_properties
    from sluice.publishing.outcomes import RunEnding, ending
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import explain_error, root_cause
    from workflows.run_state import RunState


async def compensate(calls: ActivityCalls, state: RunState, error: BaseException) -> None:
    """End a run that failed, was stopped or was cancelled, and leave nothing half done."""
    if state.is_published:
        return  # after the merge there is nothing to compensate
    cause, reason = explain_error(error)
    request = state.request
    end = ending(
        cause, request.pipeline.on_failure, rows_are_kept_already=bool(request.resume) or bool(request.restore)
    )
    state.enter_stage("compensating", reason)
    try:
        kept = await _keep_or_discard(calls, state, end, reason)
        if state.branch and state.is_publishing and await _is_merged(calls, state):
            if kept:
                await calls.discard_branch(kept)
            return
    except ActivityError as failure:
        kept = state.branch.name if state.branch else ""
        if kept:
            reason += f" (and the branch {kept} could not be quarantined or deleted: {root_cause(failure)[1]})"
    if not state.is_published:
        outcome = end.final_outcome(is_kept=bool(kept))
        state.update_result(outcome=outcome, cause=end.cause, reason=reason, branch=kept or None)


async def _keep_or_discard(calls: ActivityCalls, state: RunState, end: RunEnding, reason: str) -> str:
    """Quarantine or discard the branch of the last attempt; return the name of the quarantine, if any."""
    if state.orphan_branch:
        await calls.discard_branch(state.orphan_branch)
    if state.branch and end.keep_branch:
        return await _quarantine(calls, state, end, reason)
    if state.branch:
        await calls.discard_branch(state.branch.name)
    elif state.attempt and end.cause != "already_published":  # perhaps it was created, and the answer lost
        await calls.discard_unconfirmed_branch(state.run_ref.branch)
    return ""


async def _quarantine(calls: ActivityCalls, state: RunState, end: RunEnding, reason: str) -> str:
    """Keep what the branch holds under a name with pipeline, date and run; return the name, or "" if it is empty."""
    assert state.branch
    now, run_ref = workflow.now(), state.run_ref
    expires = now + timedelta(seconds=state.request.pipeline.keep)
    head = state.write_result.head if state.write_result else ""
    input = QuarantineBranchInput(
        branch=state.branch,
        head=head,
        name=quarantine_branch(run_ref.pipeline, now.date().isoformat(), run_ref.run_id),
        properties=quarantine_properties(
            run_ref,
            state.branch.base,
            end.cause,
            reason,
            expires.isoformat(),
            head=head,
            audited_hash=state.result.audited_hash,
        ),
    )
    return await calls.quarantine_branch(input)


async def _is_merged(calls: ActivityCalls, state: RunState) -> bool:
    """Find out whether a merge whose answer was lost happened: main alone decides. Record it if so."""
    assert state.branch and state.write_result
    await workflow.sleep(state.branch.commit_timeout, summary="until a merge in flight is decided")
    input = ConfirmPublicationInput(base=state.branch.base, head=state.write_result.head)
    publication = await calls.confirm_publication(input)
    if publication.merged:
        state.record_publication(publication)
    return publication.merged
