"""The waiver step: find the waivers in force for failed checks, and require that they are valid at the merge."""

from collections.abc import Sequence

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.approval.waivers import WaivableCheck
    from sluice.approval.waiving import describe_ended, ended_waivers
    from sluice.checks.verdicts import AuditReport
    from sluice.contracts.publish import FindWaiversInput
    from workflows.activity_calls import ActivityCalls
    from workflows.audit.failed_audit import describe_failed_audit
    from workflows.failures import RunStopped, raise_if_cancelled
    from workflows.run.run_state import RunState


async def find_waivers(
    calls: ActivityCalls, state: RunState, report: AuditReport, failed: Sequence[WaivableCheck]
) -> None:
    """Record the waivers in force for failed checks, and the checks that people have to waive before the merge."""
    assert state.attempt.branch
    input = FindWaiversInput(
        run_ref=state.run_ref,
        branch=state.attempt.branch,
        head=report.audited_hash,
        terms=state.approval_terms,
        checks=list(failed),
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
