"""The end of a run whose audit failed, unless people may waive each failed check."""

from collections.abc import Sequence

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.approval.waivable import waivable_checks
    from sluice.approval.waivers import MAX_WAIVED, WaivableCheck
    from sluice.checks.verdicts import AuditReport
    from sluice.publishing.outcomes import describe_blocking_checks
    from workflows.failures import RunStopped
    from workflows.run.run_state import RunState


def stop_unless_waivable(state: RunState, report: AuditReport) -> Sequence[WaivableCheck]:
    """Return the failed checks if people may waive all of them; stop the run otherwise.

    Raises:
        RunStopped: the audit failed.
    """
    pipeline = state.request.pipeline
    failed = waivable_checks(report.checks, pipeline.tables, pipeline.name)
    if not failed or not state.request.publish:
        raise RunStopped("audit", describe_failed_audit(state, report))
    if len(failed) > MAX_WAIVED:
        many = f"{len(failed)} checks failed, and at most {MAX_WAIVED} may be waived"
        raise RunStopped("audit", f"{describe_failed_audit(state, report)}; {many}")
    return failed


def describe_failed_audit(state: RunState, report: AuditReport) -> str:
    """Return a message with the checks that block the merge."""
    return describe_blocking_checks(report.checks, show_values=state.request.pipeline.show_values)
