"""How an attempt begins: rows come to its branch by a write, from a branch that was kept, or from earlier on main."""

from collections.abc import Awaitable, Callable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.activity_inputs import OpenOrder, Rebased, TakeUpOrder, VerifyOrder, WriteOrder
    from sluice.pipeline.model import Write
    from workflows.activity_calls import Acts
    from workflows.failures import heed_cancellation
    from workflows.run_state import RunState


async def begin(acts: Acts, state: RunState) -> None:
    """Come to a branch that holds what is to be published, verified."""
    resume, restore = state.request.resume, state.request.restore
    if resume:
        await _take_up(acts, state, acts.resume_branch)
        if resume.statements and state.written:
            await _write(acts, state, Write(mode="sql", statements=resume.statements), since=state.written.head)
    elif restore:
        await _take_up(acts, state, acts.restore_tables)
    else:
        await _open(acts, state)
        await _write(acts, state, state.request.pipeline.write)


async def _take_up(acts: Acts, state: RunState, act: Callable[[TakeUpOrder], Awaitable[Rebased]]) -> None:
    state.begin_attempt()
    state.enter("opening", f"attempt {state.attempt}")
    order = TakeUpOrder(
        origin=state.origin,
        resume=state.request.resume,
        restore=state.request.restore,
        write=state.request.pipeline.write,
        tables=list(state.request.pipeline.tables),
        catalogue=state.catalogue,
    )
    taken = await act(order)
    assert taken.branch and taken.written
    state.opened(taken.branch)
    state.found(taken.written)
    heed_cancellation()


async def _open(acts: Acts, state: RunState) -> None:
    pipeline = state.request.pipeline
    state.begin_attempt()
    state.enter("opening", f"attempt {state.attempt}")
    keeps_columns = pipeline.write.built_in and pipeline.write.mode != "sql"
    order = OpenOrder(
        origin=state.origin,
        tables=pipeline.tables,
        keeps_columns=keeps_columns,
        input_digest=state.request.input.digest,
        again=state.request.again,
        catalogue=state.catalogue,
    )
    state.opened(await acts.open_branch(order))
    heed_cancellation()


async def _write(acts: Acts, state: RunState, write: Write, since: str = "") -> None:
    pipeline = state.request.pipeline
    assert state.branch
    state.enter("writing", state.branch.name)
    order = WriteOrder(
        origin=state.origin,
        branch=state.branch.name,
        write=write,
        tables=pipeline.tables,
        input_digest=state.request.input.digest,
        in_order=state.branch.in_order,
        folder=state.request.folder,
    )
    job = await acts.write_table(order)
    heed_cancellation()
    state.enter("verifying")
    verify = VerifyOrder(
        origin=state.origin,
        branch=state.branch,
        write=write,
        tables=list(pipeline.tables),
        job=job,
        since=since,
    )
    state.found(await acts.verify_write(verify))
    heed_cancellation()
