"""The audit step: answer every check at the verified hash, and quarantine bad rows if only these block."""

import itertools
from collections.abc import Awaitable, Callable

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.checks.results import missing_verdicts
    from sluice.checks.verdicts import AuditReport, short_verdicts
    from sluice.contracts.audit import SCAN_ATTEMPTS, AuditInput, AuditResult, QuarantineRowsInput, ScanInput
    from sluice.contracts.write import JobReport, VerifyWriteInput
    from sluice.publishing.bad_rows import (
        add_bad_rows,
        add_broken_checks,
        describe_above_cap,
        quarantinable_checks,
    )
    from sluice.publishing.retries import AttemptLimit
    from sluice.sizes import format_count
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import RunStopped, raise_if_cancelled
    from workflows.run.retries import try_again_after
    from workflows.run.run_state import RunState


async def audit(calls: ActivityCalls, state: RunState) -> AuditReport:
    """Audit the write. If only bad rows block the merge and may be quarantined, quarantine them and audit the rest."""
    report = await _answer_checks(calls, state)
    if _is_repaired(state):
        return report  # a repair may have rewritten rows that the run did not add
    if failing := quarantinable_checks(report.checks, state.request.pipeline.tables):
        await _quarantine_rows(calls, state, failing)
        report = await _answer_checks(calls, state)
    return report


async def _answer_checks(calls: ActivityCalls, state: RunState) -> AuditReport:
    """Answer every check: first by metadata, then by DuckDB, and the rest by Spark."""
    input = _audit_input(state)
    state.enter_stage("auditing", f"{format_count(input.check_count, 'check')} at {input.head[:12]}")
    plan = await (calls.audit_rebased_branch(input) if state.attempt.previous_audit else calls.audit_branch(input))
    verdicts, left = plan.decided, dict(plan.undecided)
    state.record_verdicts(verdicts)
    raise_if_cancelled()
    input = input.model_copy(update={"previous_audit": None})  # it does not answer the checks of the scans
    if plan.files:
        scan = ScanInput(audit=input, undecided=plan.files)
        state.enter_stage("scanning", f"{format_count(scan.check_count, 'check')} by DuckDB")
        scanned = await _scan(calls.scan_files, state, scan)
        verdicts = [*verdicts, *scanned.decided]
        for name, indexes in scanned.undecided.items():
            left[name] = [*left.get(name, []), *indexes]
        state.record_verdicts(verdicts)
        raise_if_cancelled()
    if left:
        scan = ScanInput(audit=input, undecided=left)
        state.enter_stage("scanning", f"{format_count(scan.check_count, 'check')} by Spark")
        scanned = await _scan(calls.scan_branch, state, scan)
        verdicts = [*verdicts, *scanned.decided]
        state.record_verdicts(verdicts)
        raise_if_cancelled()
    checks = {name: table.checks for name, table in state.request.pipeline.tables.items()}
    missing = short_verdicts(missing_verdicts(checks, verdicts), input.check_count)  # activities shorten theirs
    return state.record_audit([*verdicts, *missing])


async def _scan(call: Callable[[ScanInput], Awaitable[AuditResult]], state: RunState, scan: ScanInput) -> AuditResult:
    """Scan, and retry a failed scan. Retries of a scan that was lost with its worker or a service do not count."""
    limit = AttemptLimit(SCAN_ATTEMPTS, state.request.policy.wait_timeout)
    stage_note = f"{format_count(scan.check_count, 'check')} again"

    async def show(why: str, _: bool) -> None:
        state.enter_stage("scanning", f"{stage_note}: {why}")

    for try_number in itertools.count(1):
        is_last = limit.failed + 1 >= SCAN_ATTEMPTS
        given = {"try_number": try_number, "is_last_try": is_last, "runs_apart": state.runs_apart}
        try:
            return await call(scan.model_copy(update=given))
        except ActivityError as error:
            await try_again_after(error, limit, state, show)
    raise AssertionError("unreachable")


async def _quarantine_rows(calls: ActivityCalls, state: RunState, failing: dict[str, list[int]]) -> None:
    """Move bad rows to quarantine tables on the branch, and verify that the branch has no other changes.

    After a rebase, the result already counts the rows that earlier audits moved. The cap includes them.

    Raises:
        RunStopped: a table has more bad rows than the pipeline allows.
    """
    pipeline = state.request.pipeline
    assert state.attempt.branch and state.attempt.write_result
    state.enter_stage("quarantining rows", f"bad rows of {', '.join(failing)}")
    before, broken_before = state.result.bad_rows, state.result.broken_checks
    result = await calls.quarantine_rows(
        QuarantineRowsInput(
            audit=_audit_input(state), failing=failing, moved_before=before, runs_apart=state.runs_apart
        )
    )
    raise_if_cancelled()
    if result.above_cap:
        raise RunStopped("audit", describe_above_cap(result.bad_rows, result.above_cap, before))
    verify = VerifyWriteInput(
        run_ref=state.run_ref,
        branch=state.attempt.branch,
        write=pipeline.write,
        tables=list(pipeline.tables),
        job=JobReport(),
        since=state.attempt.write_result.head,
        quarantined_rows=result.bad_rows,
    )
    state.record_write(await calls.verify_write(verify))
    state.update_result(
        bad_rows=add_bad_rows(before, result.bad_rows),
        broken_checks=add_broken_checks(broken_before, result.broken_checks),
    )
    raise_if_cancelled()


def _is_repaired(state: RunState) -> bool:
    return state.request.resume is not None and bool(state.request.resume.statements)


def _audit_input(state: RunState) -> AuditInput:
    assert state.attempt.branch and state.attempt.write_result
    return AuditInput(
        run_ref=state.run_ref,
        branch=state.attempt.branch.name,
        base=state.attempt.branch.base,
        head=state.attempt.write_result.head,
        catalog_id=state.catalog_id,
        tables=state.request.pipeline.tables,
        now=workflow.now().isoformat(),
        keys=state.request.pipeline.write.keys,
        requeued=state.request.pipeline.write.traits.moves_quarantined_rows,
        rows_were_quarantined=bool(state.result.bad_rows),
        show_values=state.request.pipeline.show_values,
        previous_audit=state.attempt.previous_audit,
    )
