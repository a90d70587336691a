"""The write step: an attempt gets its rows from a Spark job, a quarantined branch, or the history of main."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.existing_rows import (
        ExistingRowsResult,
        Restore,
        RestoreTablesInput,
        Resume,
        ResumeBranchInput,
    )
    from sluice.contracts.load_order import ANY_ORDER
    from sluice.contracts.references import BranchRef
    from sluice.contracts.write import OpenBranchInput, VerifyWriteInput, WriteResult, WriteTableInput
    from sluice.pipeline.table_properties import tables_made_safe
    from sluice.pipeline.write import Write
    from sluice.publishing.retries import OpeningLimit
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import attempt_failure, raise_if_cancelled
    from workflows.run.run_state import RunState
    from workflows.run.select_input import select_input


async def write(calls: ActivityCalls, state: RunState) -> None:
    """Start an attempt: create its branch, and write verified rows to it."""
    resume, restore = state.request.resume, state.request.restore
    state.start_attempt()
    state.enter_stage("opening", f"attempt {state.attempt.number}")
    if resume:
        state.update_result(released=resume.run_id)
        written = await _resume_branch(calls, state, resume)
        if resume.statements:
            repair = Write(mode="sql", statements=resume.statements)
            await _run_job(calls, state, repair, since=written.head)
    elif restore:
        await _restore_tables(calls, state, restore)
    else:
        await _open_branch(calls, state)
        await select_input(calls, state)
        await _run_job(calls, state, state.request.pipeline.write)


async def _resume_branch(calls: ActivityCalls, state: RunState, resume: Resume) -> WriteResult:
    """Create a branch with the rows of a quarantined branch."""
    pipeline = state.request.pipeline
    input = ResumeBranchInput(
        run_ref=state.run_ref,
        resume=resume,
        write=pipeline.write,
        tables=list(pipeline.tables),
        allow_partial=pipeline.publish.allow_partial,
        catalog_id=state.catalog_id,
        input_properties=state.input_properties,
    )
    return _record_existing_rows(state, await calls.resume_branch(input))


async def _restore_tables(calls: ActivityCalls, state: RunState, restore: Restore) -> WriteResult:
    """Create a branch with earlier versions of tables from main."""
    input = RestoreTablesInput(
        run_ref=state.run_ref,
        restore=restore,
        allow_partial=state.request.pipeline.publish.allow_partial,
        catalog_id=state.catalog_id,
    )
    return _record_existing_rows(state, await calls.restore_tables(input))


def _record_existing_rows(state: RunState, result: ExistingRowsResult) -> WriteResult:
    state.record_branch(result.branch)
    state.record_write(result.write_result)
    raise_if_cancelled()
    return result.write_result


async def _open_branch(calls: ActivityCalls, state: RunState) -> None:
    pipeline = state.request.pipeline
    input = OpenBranchInput(
        run_ref=state.run_ref,
        tables=pipeline.tables,
        schema_is_fixed=pipeline.write.schema_is_fixed,
        input_digest=state.request.input.digest,
        again=state.request.again or pipeline.write.selects_files,
        tables_made_safe=tables_made_safe(pipeline.write.statements, list(pipeline.tables)),
        after_publish=pipeline.after_publish,
        write=pipeline.write,
        # Files that main contains already have no age: the order counts only for those that are left to load.
        order=ANY_ORDER if pipeline.write.selects_files else state.request.order,
        scope=state.request.input.scope,
        pipeline_digest=pipeline.digest,
        attempts=pipeline.write.attempts,
        publish=state.request.publish,
        allow_partial=pipeline.publish.allow_partial,
        catalog_id=state.catalog_id,
    )
    state.record_branch(await _try_to_open(calls, state, input))
    raise_if_cancelled()


async def _try_to_open(calls: ActivityCalls, state: RunState, input: OpenBranchInput) -> BranchRef:
    """Open a branch, and retry while the catalog is unavailable.

    A run that a person started gives up soon if it has no branch yet, because it has nothing to lose.
    """
    policy = state.request.policy
    limit = OpeningLimit(policy.open_timeout if state.catalog_id is None else policy.step_timeout, policy.wait_timeout)
    while True:
        try:
            return await calls.open_branch(input)
        except ActivityError as error:
            delay = limit.after(attempt_failure(error), workflow.now())
            if delay is None:
                raise
        raise_if_cancelled()
        await workflow.sleep(delay, summary="before the next try to open the branch")


async def _run_job(calls: ActivityCalls, state: RunState, write: Write, since: str = "") -> None:
    """Run the job on the branch, and read its write back from the branch."""
    pipeline = state.request.pipeline
    assert state.attempt.branch
    state.enter_stage("writing", f"on {state.attempt.branch.name}")
    input = WriteTableInput(
        run_ref=state.run_ref,
        branch=state.attempt.branch.name,
        write=write,
        tables=pipeline.tables,
        input_digest=state.request.input.digest,
        scope=state.request.input.scope,
        manifest=state.manifest,
        sorted_tables=state.attempt.branch.sorted_tables,
        folder=state.request.folder,
        runs_apart=state.runs_apart,
        show_values=pipeline.show_values,
        lineage_parent=state.request.lineage_parent,
    )
    job = await calls.write_table(input)
    state.update_result(types=job.types)
    raise_if_cancelled()
    state.enter_stage("verifying", "read the write back from the branch")
    verify = VerifyWriteInput(
        run_ref=state.run_ref,
        branch=state.attempt.branch,
        write=write,
        tables=list(pipeline.tables),
        job=job,
        since=since,
        repairs=state.request.resume is not None,
        over_younger=state.request.order.over_younger,
    )
    written = await calls.verify_write(verify)
    state.record_write(written)
    state.update_result(repaired=written.repaired)
    raise_if_cancelled()
