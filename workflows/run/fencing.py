"""The fencing step: prevent all further writes to an attempt's branch, and make sure that no merge is under way."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.publish import ConfirmPublicationInput, DiscardBranchInput
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import raise_if_cancelled
    from workflows.metrics import count_fence
    from workflows.run.run_state import RunState
    from workflows.workflow_task import end_workflow_task


async def fence_attempt(calls: ActivityCalls, state: RunState) -> bool:
    """Fence the attempt; return True if the run turns out to be published by an earlier merge request.

    Afterwards no process can write on the branch, and no merge of it can begin. `docs/fencing.md` lists all fencing
    mechanisms. The results of activities on the branch are in the history before its deletion. Otherwise, if a worker
    is killed after the deletion, the next worker would repeat these activities on a branch that does not exist.
    """
    assert state.attempt.branch
    await end_workflow_task(calls, state, "record earlier results before the branch is deleted")
    await discard(calls, state, state.attempt.branch.name)
    count_fence(state.request.pipeline.name)
    is_published = await adopt_publication(calls, state)
    if not is_published:
        raise_if_cancelled()
    return is_published


async def adopt_publication(calls: ActivityCalls, state: RunState) -> bool:
    """Find the publication of the run by any attempt, and record it; return True if the run is published.

    The branch is already deleted, so a merge that has not been requested yet fails. A merge that the catalog is
    processing is decided when the catalog's commit time-out is over. If a merge may be under way, the search waits for
    that time.
    """
    assert state.attempt.branch
    if state.attempt.is_publishing:
        await workflow.sleep(state.attempt.branch.commit_timeout, summary="wait for the outcome of a merge under way")
    input = ConfirmPublicationInput(
        run_id=state.result.run_id,
        since=state.first_base,
        head=state.attempt.write_result.head if state.attempt.write_result else "",
        base=state.attempt.branch.base,
        watched_tables=state.watched_tables,
        catalog_id=state.catalog_id,
    )
    publication = await calls.confirm_publication(input)
    state.attempt.is_publishing = False
    if publication.merged:
        state.record_publication(publication)
    return publication.merged


async def discard(calls: ActivityCalls, state: RunState, branch: str) -> None:
    """Delete a branch of this run's catalog."""
    await calls.discard_branch(DiscardBranchInput(branch=branch, catalog_id=state.catalog_id))
