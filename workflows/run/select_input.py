"""The step that selects the files of an attempt: the files of its source that main does not contain yet."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.input import SelectInputInput
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import raise_if_cancelled
    from workflows.run.run_state import RunState


async def select_input(calls: ActivityCalls, state: RunState) -> None:
    """Select the files that the attempt loads. Main may contain more of them than at the start of the run."""
    pipeline = state.request.pipeline
    assert state.attempt.branch
    if pipeline.write.source is None:
        return
    state.enter_stage("selecting input", "files that main does not contain yet")
    earlier = state.result.input
    input = SelectInputInput(
        run_ref=state.run_ref,
        branch=state.attempt.branch,
        source=pipeline.write.source,
        tables=list(pipeline.tables),
        input_digest=state.request.input.digest,
        scope=state.request.input.scope,
        policy=pipeline.write.loaded_files,
        order_matters=pipeline.write.traits.order_matters,
        replaces=pipeline.write.traits.replaces if pipeline.write.built_in else "",
        write=pipeline.write if pipeline.write.selects_files else None,
        order=state.request.order,
        again=state.request.again,
        reads_selection=pipeline.write.built_in,
        one_content_per_path=state.request.one_content_per_path,
        loads_all_contents=state.request.loads_all_contents,
        pipeline_digest=pipeline.digest,
        listed=earlier.manifest if earlier else None,
    )
    state.update_result(input=await calls.select_input(input))
    raise_if_cancelled()
