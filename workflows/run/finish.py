"""The last step of every run: delete a published branch, record the run, and notify people."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.quarantine import DiscardQuarantineInput
    from sluice.contracts.run import Notification, RecordRunInput
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import is_cancelled, root_cause
    from workflows.lineage.lineage import LineageEvents
    from workflows.metrics import count_run
    from workflows.registration.register import register
    from workflows.run.fencing import discard
    from workflows.run.run_state import RunState
    from workflows.search_attributes import OUTCOME


async def finish(calls: ActivityCalls, state: RunState, lineage: LineageEvents) -> None:
    """Delete the branches of a published run, record and count the run, notify people, and finish open updates."""
    if state.is_published:
        await _delete_published_branches(calls, state)
        if not state.request.target:
            await register(calls, state)
    await _record_run(calls, state)
    state.enter_stage("ended", state.result.outcome or "")
    state.set_search_attribute(OUTCOME.value_set(state.result.outcome or ""))
    count_run(state.result, state.request.target)
    lineage.report_end()
    is_quiet = state.is_published and state.request.target  # main has not changed yet
    if state.request.publish and not is_quiet:  # a person who starts a run without publication watches it
        await notify(calls, state)
    await lineage.wait_until_sent()
    await workflow.wait_condition(workflow.all_handlers_finished)


async def notify(calls: ActivityCalls, state: RunState, waiting_until: str = "") -> None:
    """Notify people, if notifications are set up. A failure does not affect the run."""
    tables = list(state.request.pipeline.tables)
    notification = Notification(result=state.result, waiting_until=waiting_until, tables=tables)
    try:
        if await calls.can_notify(notification):
            await calls.notify(notification)
    except ActivityError as error:
        if is_cancelled(error):
            raise
        workflow.logger.warning("the notification failed: %s", root_cause(error)[1])


async def _delete_published_branches(calls: ActivityCalls, state: RunState) -> None:
    if state.attempt.branch is None:
        return
    state.enter_stage("cleaning up", f"delete {state.attempt.branch.name}")
    resume, name = state.request.resume, state.attempt.branch.name
    try:
        await discard(calls, state, name)
        if resume:
            name = resume.branch
            catalog_id = state.attempt.branch.catalog_id
            left = await calls.discard_quarantine(
                DiscardQuarantineInput(branch=name, head=resume.head, catalog_id=catalog_id)
            )
            if left:
                state.update_result(reason=f"published; {left}")
    except ActivityError as error:
        state.update_result(reason=f"published; the branch {name} could not be deleted: {root_cause(error)[1]}")


async def _record_run(calls: ActivityCalls, state: RunState) -> None:
    """Store the report and the audit results, if possible. A failure does not affect the run."""
    if state.result.cause == "unreachable":
        return  # the catalog is unavailable, so nothing can be stored
    head = state.attempt.write_result.head if state.attempt.write_result else ""
    ended_at = workflow.now().isoformat()
    input = RecordRunInput(
        run_ref=state.run_ref, result=state.result, catalog_id=state.catalog_id, head=head, ended_at=ended_at
    )
    try:
        state.update_result(report=await calls.record_run(input))
    except ActivityError as error:
        workflow.logger.warning("the report could not be stored: %s", root_cause(error)[1])
