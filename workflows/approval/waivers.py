"""The waiver step: handle a failed audit whose failed checks may be waived."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.approval.waivers import MAX_WAIVED, waivable_checks
    from sluice.approval.waiving import describe_ended, ended_waivers
    from sluice.checks.verdicts import AuditReport
    from sluice.contracts.publish import FindWaiversInput
    from sluice.publishing.outcomes import describe_blocking_checks
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import RunStopped, raise_if_cancelled
    from workflows.run.run_state import RunState


async def find_waivers(calls: ActivityCalls, state: RunState, report: AuditReport) -> None:
    """Record the waivers in force for failed checks, and the checks that people have to waive before the merge.

    Raises:
        RunStopped: the audit failed by checks that may not be waived.
    """
    request, pipeline = state.request, state.request.pipeline
    failed = waivable_checks(report.checks, pipeline.tables, pipeline.name)
    if not failed or not request.publish:
        raise RunStopped("audit", describe_failed_audit(state, report))
    if len(failed) > MAX_WAIVED:
        many = f"{len(failed)} checks failed, and at most {MAX_WAIVED} may be waived"
        raise RunStopped("audit", f"{describe_failed_audit(state, report)}; {many}")
    assert state.branch
    input = FindWaiversInput(
        run_ref=state.run_ref,
        branch=state.branch,
        head=report.audited_hash,
        terms=state.approval_terms,
        checks=failed,
    )
    in_force = await calls.find_waivers(input)
    covered = {each.key for each in in_force}
    state.record_waivers(in_force, [check for check in failed if check.key not in covered])
    raise_if_cancelled()


def check_waivers_hold(state: RunState, report: AuditReport) -> None:
    """Check that no waiver of the run ended while the run waited for people.

    Raises:
        RunStopped: a waiver ended.
    """
    if ended := ended_waivers(state.result.waived, workflow.now()):
        raise RunStopped("audit", f"{describe_failed_audit(state, report)}; {describe_ended(ended)}")


def describe_failed_audit(state: RunState, report: AuditReport) -> str:
    """Return a message with the checks that block the merge."""
    return describe_blocking_checks(report.checks, show_values=state.request.pipeline.show_values)
