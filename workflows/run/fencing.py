"""The fencing step: no process can write on an attempt's branch any more, and no merge of it is under way."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.publish import ConfirmPublicationInput, DiscardBranchInput
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import raise_if_cancelled
    from workflows.metrics import count_fence
    from workflows.run.run_state import RunState
    from workflows.workflow_task import end_workflow_task


async def fence_attempt(calls: ActivityCalls, state: RunState) -> bool:
    """Fence the attempt, and return whether the run turns out to be published: an earlier request merged it.

    From now on no process can write on its branch, and no merge of it can begin: `docs/fencing.md` lists the others.
    What was learned from the branch is in the history before it is deleted. Otherwise a worker that is killed after the
    deletion leaves the next one to look at a branch that does not exist.
    """
    assert state.branch
    await end_workflow_task(calls, state, "what was learned is recorded before the branch is deleted")
    await discard(calls, state, state.branch.name)
    count_fence(state.request.pipeline.name)
    is_published = await adopt_publication(calls, state)
    if not is_published:
        raise_if_cancelled()
    return is_published


async def adopt_publication(calls: ActivityCalls, state: RunState) -> bool:
    """Look on main for the run, by whichever attempt, once no merge of it is under way; record it if it is there.

    The branch is deleted before, so that a merge which was not requested yet fails; one that the catalog works on
    already is decided when its commit time-out is over.
    """
    assert state.branch
    if state.is_publishing:
        await workflow.sleep(state.branch.commit_timeout, summary="until a merge in flight is decided")
    input = ConfirmPublicationInput(
        run_id=state.result.run_id,
        since=state.first_base,
        head=state.write_result.head if state.write_result else "",
        base=state.branch.base,
        watched_tables=state.watched_tables,
        catalog_id=state.catalog_id,
    )
    publication = await calls.confirm_publication(input)
    state.is_publishing = False
    if publication.merged:
        state.record_publication(publication)
    return publication.merged


async def discard(calls: ActivityCalls, state: RunState, branch: str) -> None:
    """Delete a branch of this run's catalog."""
    await calls.discard_branch(DiscardBranchInput(branch=branch, catalog_id=state.catalog_id))
