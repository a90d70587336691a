"""How a run ends: compensation, tidying up, and telling."""

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.run import Notification, RecordRunInput
    from sluice.publishing.certificate import quarantine_properties
    from sluice.publishing.outcomes import RunEnding, ending
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import explain_error, is_cancelled, root_cause
    from workflows.metrics import count_run
    from workflows.run_state import RunState
    from workflows.search_attributes import OUTCOME


async def compensate(calls: ActivityCalls, state: RunState, error: BaseException) -> None:
    """Bring a run that broke off to an end that leaves nothing half done."""
    if state.is_published:
        return  # after the merge there is nothing to compensate
    cause, reason = explain_error(error)
    end = ending(cause, state.request.pipeline.on_failure)
    if state.request.resume or state.request.restore:
        end = end.model_copy(update={"keep_branch": False})  # its rows are kept where they came from
    state.enter("compensating", reason)
    try:
        kept = await _settle(calls, state, end, reason)
    except ActivityError as failure:
        kept = state.branch.name if state.branch else ""
        if kept:
            reason += f" (and {kept} is left, since it could not be dealt with: {root_cause(failure)[1]})"
    if not state.is_published:
        outcome = "discarded" if end.outcome == "quarantined" and not kept else end.outcome
        state.update(outcome=outcome, cause=end.cause, reason=reason, branch=kept or None)


async def _settle(calls: ActivityCalls, state: RunState, end: RunEnding, reason: str) -> str:
    """Quarantine or discard the branch; then, if a merge was under way, believe main alone."""
    kept = ""
    head = state.write_result.head if state.write_result else ""
    if state.spare:
        await calls.discard_branch(state.spare)
    if state.branch and end.keep_branch:
        expires = workflow.now() + timedelta(seconds=state.request.pipeline.keep)
        said = quarantine_properties(state.run_ref, state.branch.base, end.cause, reason, expires.isoformat())
        kept = await calls.quarantine_branch(state.run_ref, state.branch, head, said)
    elif state.branch:
        await calls.discard_branch(state.branch.name)
    elif state.attempt and end.cause != "already_published":
        # The branch was made, perhaps, and the answer lost.
        await calls.discard_branch(state.run_ref.branch, perhaps=True)
    if state.branch and state.publishing:
        await workflow.sleep(state.branch.commit_timeout, summary="a merge in flight is decided after this")
        publication = await calls.confirm_publication(state.branch, head)
        if publication.merged:
            state.published(publication)
            if kept:
                await calls.discard_branch(kept)
            return ""
    return kept


async def close(calls: ActivityCalls, state: RunState) -> None:
    """Tidy up, tell people, and let whoever is deciding still get an answer."""
    if state.is_published and state.branch:
        state.enter("cleaning up")
        try:
            await calls.discard_branch(state.branch.name)
            for name in state.request.resume.done_with if state.request.resume else ():
                await calls.discard_branch(name)
        except ActivityError as error:
            state.update(reason=f"published; its branch {state.branch.name} is left: {root_cause(error)[1]}")
    await _record(calls, state)
    state.enter("ended", state.result.outcome or "")
    state.index(OUTCOME.value_set(state.result.outcome or ""))
    count_run(state.result)
    await notify(calls, state)
    await workflow.wait_condition(workflow.all_handlers_finished)


async def _record(calls: ActivityCalls, state: RunState) -> None:
    """Write the run down, where that is possible; it changes nothing about how the run ended."""
    if state.result.cause == "unreachable":
        return  # where the catalog is away, there is nothing to write to
    input = RecordRunInput(run_ref=state.run_ref, result=state.result, ended_at=workflow.now().isoformat())
    try:
        state.update(report=await calls.record_run(input))
    except ActivityError as error:
        workflow.logger.warning("the run could not be written down: %s", root_cause(error)[1])


async def notify(calls: ActivityCalls, state: RunState, waiting_until: str = "") -> None:
    try:
        await calls.notify(Notification(result=state.result, waiting_until=waiting_until))
    except ActivityError as error:
        if is_cancelled(error):
            raise
        workflow.logger.warning("nobody could be told: %s", root_cause(error)[1])
