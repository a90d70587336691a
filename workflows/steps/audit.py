"""The audit step: answer every check at the verified hash, and quarantine bad rows where only they block."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.audit.bad_rows import quarantinable_checks, quarantine_table
    from sluice.audit.verdicts import AuditReport, missing_verdicts
    from sluice.contracts.audit import AuditInput, QuarantineRowsInput, ScanInput
    from sluice.contracts.write import JobReport, VerifyWriteInput
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import RunStopped, raise_if_cancelled
    from workflows.run_state import RunState


async def audit(calls: ActivityCalls, state: RunState) -> AuditReport:
    """Audit the write. If bad rows may be quarantined so that the rest passes, do that and audit the rest."""
    report = await _answer_checks(calls, state)
    if failing := quarantinable_checks(report.checks, state.request.pipeline.tables):
        await _quarantine_rows(calls, state, failing)
        report = await _answer_checks(calls, state)
    return report


async def _answer_checks(calls: ActivityCalls, state: RunState) -> AuditReport:
    """Answer every check: by metadata, then by DuckDB, then by Spark what is left."""
    input = _audit_input(state)
    state.enter_stage("auditing", f"{input.check_count} checks at {input.head[:12]}")
    plan = await (calls.audit_rebased_branch(input) if state.previous_audit else calls.audit_branch(input))
    verdicts, left = plan.decided, dict(plan.undecided)
    state.record_verdicts(verdicts)
    raise_if_cancelled()
    if plan.files:
        scan = ScanInput(audit=input, undecided=plan.files)
        state.enter_stage("scanning", f"{scan.check_count} checks by DuckDB")
        scanned = await calls.scan_files(scan)
        verdicts = [*verdicts, *scanned.decided]
        for name, indexes in scanned.undecided.items():
            left[name] = [*left.get(name, []), *indexes]
        state.record_verdicts(verdicts)
        raise_if_cancelled()
    if left:
        scan = ScanInput(audit=input, undecided=left)
        state.enter_stage("scanning", f"{scan.check_count} checks by Spark")
        scanned = await calls.scan_branch(scan)
        verdicts = [*verdicts, *scanned.decided]
        state.record_verdicts(verdicts)
        raise_if_cancelled()
    checks = {name: table.checks for name, table in state.request.pipeline.tables.items()}
    return state.record_audit([*verdicts, *missing_verdicts(checks, verdicts)])


async def _quarantine_rows(calls: ActivityCalls, state: RunState, failing: dict[str, list[int]]) -> None:
    """Move bad rows to quarantine tables on the branch, and verify that nothing else was done to it.

    Raises:
        RunStopped: a table has more of them than the pipeline allows.
    """
    pipeline = state.request.pipeline
    assert state.branch and state.write_result
    state.enter_stage("quarantining rows", f"bad rows of {', '.join(failing)}")
    result = await calls.quarantine_rows(QuarantineRowsInput(audit=_audit_input(state), failing=failing))
    raise_if_cancelled()
    if result.above_cap:
        counts = ", ".join(f"{result.bad_rows[table]} of {table}" for table in result.above_cap)
        raise RunStopped("audit", f"more bad rows than the pipeline allows to quarantine: {counts}")
    changes = state.write_result.tables

    def rows_written_before(table: str) -> int:
        return changes[table].added_rows if table in changes else 0

    targets = {quarantine_table(table): rows for table, rows in result.bad_rows.items()}
    verify = VerifyWriteInput(
        run_ref=state.run_ref,
        branch=state.branch,
        write=pipeline.write,
        tables=list(pipeline.tables),
        job=JobReport(),
        since=state.write_result.head,
        quarantined_rows={table: rows_written_before(table) + rows for table, rows in targets.items()},
    )
    state.record_write(await calls.verify_write(verify))
    state.update_result(bad_rows=result.bad_rows)
    raise_if_cancelled()


def _audit_input(state: RunState) -> AuditInput:
    assert state.branch and state.write_result
    return AuditInput(
        run_ref=state.run_ref,
        branch=state.branch.name,
        base=state.branch.base,
        head=state.write_result.head,
        tables=state.request.pipeline.tables,
        now=workflow.now().isoformat(),
        previous_audit=state.previous_audit,
    )
