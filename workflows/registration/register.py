"""The step after the merge: start the registrations of a publication, and wait briefly for their end."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.registration import PublicationEvent, Registration, StartRegistrationsInput
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import root_cause
    from workflows.run.run_state import RunState


async def register(calls: ActivityCalls, state: RunState) -> None:
    """Start the registrations of a published run. A failed registration does not change the outcome of the run."""
    result, targets = state.result, state.request.pipeline.after_publish
    event = PublicationEvent(
        run_id=result.run_id,
        workflow_id=result.workflow_id,
        pipeline=result.pipeline,
        published_at=workflow.now().isoformat(),
        main_before=result.main_before or "",
        main_after=result.main_after or "",
        audited_hash=result.audited_hash or "",
        publish=result.publish,
        tables=result.tables,
    )
    try:
        started = await calls.start_registrations(StartRegistrationsInput(event=event, targets=targets))
    except ActivityError as error:
        why = f"it could not be started: {root_cause(error)[1]}"
        state.record_registrations([Registration(target=name, state="failed", reason=why) for name in targets])
        return
    if not started:
        return
    state.enter_stage("registering", ", ".join(dict.fromkeys(each.target for each in started)))
    state.record_registrations(started)
    try:
        wait = timedelta(seconds=state.request.policy.registration_wait)
        await workflow.wait_condition(
            lambda: all(each.state != "pending" for each in state.result.registrations),
            timeout=wait,
            timeout_summary="wait for registrations, which may continue after the run",
        )
    except asyncio.TimeoutError:
        return
