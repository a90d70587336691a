"""The audit of one attempt: by metadata, by the rows where it must be, and once more where bad rows are set apart."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.audit.bad_rows import quarantine_of
    from sluice.audit.verdicts import AuditReport
    from sluice.contracts.activity_inputs import AuditOrder, DivideOrder, JobReport, ScanOrder, VerifyOrder
    from workflows.activity_calls import Acts
    from workflows.failures import Stopped, heed_cancellation
    from workflows.run_state import RunState


async def audit(acts: Acts, state: RunState) -> AuditReport:
    """Answer every check on the branch at the hash that was verified; of rows that were taken over, what is new."""
    order = _order(state)
    state.enter("auditing", f"at {order.head[:12]}")
    plan = await acts.audit_branch(order, again=state.earlier is not None)
    decided, left = plan.decided, dict(plan.undecided)
    report = state.audited(decided)
    heed_cancellation()
    if plan.files:
        state.enter("scanning", f"{sum(map(len, plan.files.values()))} checks by DuckDB")
        scanned = await acts.scan_files(ScanOrder(audit=order, undecided=plan.files))
        decided = [*decided, *scanned.decided]
        for name, beyond in scanned.undecided.items():
            left[name] = [*left.get(name, []), *beyond]
        report = state.audited(decided)
        heed_cancellation()
    if left:
        state.enter("scanning", f"{sum(map(len, left.values()))} checks by Spark")
        scanned = await acts.scan_branch(ScanOrder(audit=order, undecided=left))
        report = state.audited([*decided, *scanned.decided])
        heed_cancellation()
    return report


async def divide(acts: Acts, state: RunState, failing: dict[str, list[int]]) -> None:
    """Set the bad rows apart on the branch, and find that nothing else was done to it.

    Raises:
        Stopped: a table has more of them than its cap.
    """
    pipeline = state.request.pipeline
    assert state.branch
    state.enter("dividing", f"bad rows of {', '.join(failing)}")
    division = await acts.divide_rows(DivideOrder(audit=_order(state), failing=failing))
    heed_cancellation()
    if division.above_cap:
        counts = ", ".join(f"{division.bad_rows[table]} of {table}" for table in division.above_cap)
        raise Stopped("audit", f"more bad rows than may be set apart: {counts}")
    moved = {quarantine_of(table): rows for table, rows in division.bad_rows.items()}
    changes = state.written.tables if state.written else {}

    def written_before(name: str) -> int:
        return changes[name].added_rows if name in changes else 0

    verify = VerifyOrder(
        origin=state.origin,
        branch=state.branch,
        write=pipeline.write,
        tables=list(pipeline.tables),
        job=JobReport(),
        since=state.written.head if state.written else "",
        set_apart={name: written_before(name) + rows for name, rows in moved.items()},
    )
    state.found(await acts.verify_write(verify))
    state.update(bad_rows=division.bad_rows)
    heed_cancellation()


def _order(state: RunState) -> AuditOrder:
    assert state.branch and state.written
    return AuditOrder(
        origin=state.origin,
        branch=state.branch.name,
        base=state.branch.base,
        head=state.written.head,
        tables=state.request.pipeline.tables,
        now=workflow.now().isoformat(),
        earlier=state.earlier,
    )
