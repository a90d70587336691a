"""The rebase step: after a conflict, files are re-added on a newer main, or the run is rewritten."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.existing_rows import RebaseBranchInput
    from sluice.publishing.retries import conflict_limit_reached
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import RunStopped, raise_if_cancelled
    from workflows.run_state import RunState
    from workflows.steps.merge_queue import wait_for_merge_slot


async def rebase(calls: ActivityCalls, state: RunState, conflicts: list[str]) -> bool:
    """Rebase what was written onto main as it is now; return False if the run has to be rewritten.

    Raises:
        RunStopped: main changed tables of the run too often.
    """
    policy = state.request.policy
    if conflict_limit_reached(state.result.conflicts, policy.max_rebases, policy.max_rewrites):
        raise RunStopped("error", f"main changed {', '.join(conflicts)} each time before the merge")
    if state.request.resume or state.request.restore:
        state.record_conflict(conflicts, "rebased")
        return False  # the next attempt takes its rows again from the branch, or from main, that holds them
    assert state.branch and state.write_result
    state.enter_stage("rebasing", f"main changed {', '.join(conflicts)}")
    await wait_for_merge_slot(calls, state, conflicts)
    raise_if_cancelled()
    old_branch = state.branch.name
    run_ref = state.run_ref.model_copy(update={"attempt": state.attempt + 1})
    state.orphan_branch = run_ref.branch
    input = RebaseBranchInput(
        run_ref=run_ref,
        branch=state.branch,
        write_result=state.write_result,
        write=state.request.pipeline.write,
        rows_quarantined=bool(state.result.bad_rows),
    )
    rebased = await calls.rebase_branch(input)
    if rebased.branch is None or rebased.write_result is None:
        state.orphan_branch = ""
        state.record_conflict(conflicts, "rewritten", rebased.why_not)
        return False
    state.record_rebase(rebased.branch, rebased.write_result)
    state.orphan_branch = old_branch
    state.record_conflict(conflicts, "rebased")
    await calls.discard_branch(old_branch)
    state.orphan_branch = ""
    raise_if_cancelled()
    return True
