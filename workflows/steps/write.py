"""How an attempt begins: rows come to its branch by a write, from a branch that was kept, or from earlier on main."""

from collections.abc import Awaitable, Callable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.activity_inputs import (
        OpenBranchInput,
        RebaseResult,
        ResumeInput,
        VerifyWriteInput,
        WriteTableInput,
    )
    from sluice.pipeline.write import Write
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import raise_if_cancelled
    from workflows.run_state import RunState


async def begin(calls: ActivityCalls, state: RunState) -> None:
    """Come to a branch that holds what is to be published, verified."""
    resume, restore = state.request.resume, state.request.restore
    if resume:
        await _take_up(calls, state, calls.resume_branch)
        if resume.statements and state.write_result:
            await _write(calls, state, Write(mode="sql", statements=resume.statements), since=state.write_result.head)
    elif restore:
        await _take_up(calls, state, calls.restore_tables)
    else:
        await _open(calls, state)
        await _write(calls, state, state.request.pipeline.write)


async def _take_up(
    calls: ActivityCalls, state: RunState, act: Callable[[ResumeInput], Awaitable[RebaseResult]]
) -> None:
    state.start_attempt()
    state.enter("opening", f"attempt {state.attempt}")
    input = ResumeInput(
        run_ref=state.run_ref,
        resume=state.request.resume,
        restore=state.request.restore,
        write=state.request.pipeline.write,
        tables=list(state.request.pipeline.tables),
        catalog_id=state.catalog_id,
    )
    taken = await act(input)
    assert taken.branch and taken.write_result
    state.opened(taken.branch)
    state.found(taken.write_result)
    raise_if_cancelled()


async def _open(calls: ActivityCalls, state: RunState) -> None:
    pipeline = state.request.pipeline
    state.start_attempt()
    state.enter("opening", f"attempt {state.attempt}")
    input = OpenBranchInput(
        run_ref=state.run_ref,
        tables=pipeline.tables,
        schema_is_fixed=pipeline.write.schema_is_fixed,
        input_digest=state.request.input.digest,
        again=state.request.again,
        catalog_id=state.catalog_id,
    )
    state.opened(await calls.open_branch(input))
    raise_if_cancelled()


async def _write(calls: ActivityCalls, state: RunState, write: Write, since: str = "") -> None:
    pipeline = state.request.pipeline
    assert state.branch
    state.enter("writing", state.branch.name)
    input = WriteTableInput(
        run_ref=state.run_ref,
        branch=state.branch.name,
        write=write,
        tables=pipeline.tables,
        input_digest=state.request.input.digest,
        sorted_tables=state.branch.sorted_tables,
        folder=state.request.folder,
    )
    job = await calls.write_table(input)
    raise_if_cancelled()
    state.enter("verifying")
    verify = VerifyWriteInput(
        run_ref=state.run_ref,
        branch=state.branch,
        write=write,
        tables=list(pipeline.tables),
        job=job,
        since=since,
    )
    state.found(await calls.verify_write(verify))
    raise_if_cancelled()
