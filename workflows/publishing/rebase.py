"""The rebase step: after a conflict, add the written files to the newer main, or rewrite the run."""

from typing import Literal

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.existing_rows import RebaseBranchInput
    from sluice.publishing.rebase import describe_compacted
    from sluice.publishing.retries import conflict_limit_reached, history_is_full
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import RunStopped, raise_if_cancelled
    from workflows.publishing.merge_slot import wait_for_merge_slot
    from workflows.run.fencing import fence_attempt
    from workflows.run.run_state import RunState

Resolution = Literal["published", "rebased", "rewrite"]
"""The resolution of a conflict: the run turns out to be published, continues with its write, or writes again."""


async def resolve_conflict(calls: ActivityCalls, state: RunState, conflicts: list[str]) -> Resolution:
    """Fence the attempt. If main does not contain the run then, rebase its write onto the current main.

    The order matters. A merge of the attempt may still be under way, for instance in a worker that was paused before
    its request. The same files may only be added again when no such merge can happen any more, and main does not
    contain the run.

    Raises:
        RunStopped: main changed tables of the run, or tables that its checks read, too often.
    """
    policy = state.request.policy
    changed = f"main changed {', '.join(conflicts)}"
    if conflict_limit_reached(state.result.conflicts, policy.max_rebases, policy.max_rewrites):
        raise RunStopped("error", f"{changed} each time before the merge")
    if history_is_full(workflow.info().get_current_history_size()):
        raise RunStopped("error", f"{changed} again, and the history of the run is too large for another attempt")
    state.enter_stage("rebasing", changed)
    if await fence_attempt(calls, state):
        return "published"
    if state.request.resume or state.request.restore:
        state.record_conflict(conflicts, "rebased")
        return "rewrite"  # the next attempt gets its rows again from the quarantined branch or from main
    return await _rebase(calls, state, conflicts)


async def _rebase(calls: ActivityCalls, state: RunState, conflicts: list[str]) -> Resolution:
    """Add the write of the attempt, whose branch is already deleted, to the branch of a new attempt."""
    assert state.attempt.branch and state.attempt.write_result
    await wait_for_merge_slot(calls, state, conflicts)
    raise_if_cancelled()
    run_ref = state.run_ref.model_copy(update={"attempt": state.attempt.number + 1})
    state.orphan_branch = run_ref.branch
    input = RebaseBranchInput(
        run_ref=run_ref,
        branch=state.attempt.branch,
        write_result=state.attempt.write_result,
        write=state.request.pipeline.write,
        rows_quarantined=bool(state.result.bad_rows),
        conflicts=conflicts,
        first_base=state.first_base,
        published=state.publication_check,
        input_properties=state.input_properties,
    )
    rebased = await calls.rebase_branch(input)
    state.orphan_branch = ""
    compacted = describe_compacted(rebased.compacted)
    if rebased.branch is None or rebased.write_result is None:
        state.record_conflict(conflicts, "rewritten", "; ".join(filter(None, (rebased.why_not, compacted))))
        raise_if_cancelled()
        return "rewrite"
    state.record_rebase(rebased.branch, rebased.write_result)
    state.record_conflict(conflicts, "rebased", compacted)
    raise_if_cancelled()
    return "rebased"
