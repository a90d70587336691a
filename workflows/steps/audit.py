"""The audit of one attempt: by metadata, by the rows where it must be, and once more where bad rows are set apart."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.audit.bad_rows import quarantine_table
    from sluice.audit.verdicts import AuditReport
    from sluice.contracts.activity_inputs import AuditInput, JobReport, QuarantineRowsInput, ScanInput, VerifyWriteInput
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import RunStopped, raise_if_cancelled
    from workflows.run_state import RunState


async def audit(calls: ActivityCalls, state: RunState) -> AuditReport:
    """Answer every check on the branch at the hash that was verified; of rows that were taken over, what is new."""
    input = _order(state)
    state.enter("auditing", f"at {input.head[:12]}")
    plan = await calls.audit_branch(input, again=state.earlier is not None)
    decided, left = plan.decided, dict(plan.undecided)
    report = state.audited(decided)
    raise_if_cancelled()
    if plan.files:
        state.enter("scanning", f"{sum(map(len, plan.files.values()))} checks by DuckDB")
        scanned = await calls.scan_files(ScanInput(audit=input, undecided=plan.files))
        decided = [*decided, *scanned.decided]
        for name, beyond in scanned.undecided.items():
            left[name] = [*left.get(name, []), *beyond]
        report = state.audited(decided)
        raise_if_cancelled()
    if left:
        state.enter("scanning", f"{sum(map(len, left.values()))} checks by Spark")
        scanned = await calls.scan_branch(ScanInput(audit=input, undecided=left))
        report = state.audited([*decided, *scanned.decided])
        raise_if_cancelled()
    return report


async def divide(calls: ActivityCalls, state: RunState, failing: dict[str, list[int]]) -> None:
    """Set the bad rows apart on the branch, and find that nothing else was done to it.

    Raises:
        Stopped: a table has more of them than its cap.
    """
    pipeline = state.request.pipeline
    assert state.branch
    state.enter("dividing", f"bad rows of {', '.join(failing)}")
    division = await calls.quarantine_rows(QuarantineRowsInput(audit=_order(state), failing=failing))
    raise_if_cancelled()
    if division.above_cap:
        counts = ", ".join(f"{division.bad_rows[table]} of {table}" for table in division.above_cap)
        raise RunStopped("audit", f"more bad rows than may be set apart: {counts}")
    moved = {quarantine_table(table): rows for table, rows in division.bad_rows.items()}
    changes = state.write_result.tables if state.write_result else {}

    def written_before(name: str) -> int:
        return changes[name].added_rows if name in changes else 0

    verify = VerifyWriteInput(
        run_ref=state.run_ref,
        branch=state.branch,
        write=pipeline.write,
        tables=list(pipeline.tables),
        job=JobReport(),
        since=state.write_result.head if state.write_result else "",
        set_apart={name: written_before(name) + rows for name, rows in moved.items()},
    )
    state.found(await calls.verify_write(verify))
    state.update(bad_rows=division.bad_rows)
    raise_if_cancelled()


def _order(state: RunState) -> AuditInput:
    assert state.branch and state.write_result
    return AuditInput(
        run_ref=state.run_ref,
        branch=state.branch.name,
        base=state.branch.base,
        head=state.write_result.head,
        tables=state.request.pipeline.tables,
        now=workflow.now().isoformat(),
        earlier=state.earlier,
    )
