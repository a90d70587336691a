"""Decisions of people as messages show them: how many are there, how many are missing, and who decided what."""

from sluice.approval.decisions import ApprovalRecord
from sluice.contracts.run import RunStatus
from sluice.times import format_time


def describe_wait(status: RunStatus) -> str:
    """Return how far the approval of a run is: `1 of 2; one more until 2026-11-22 07:45 UTC`."""
    record = status.result.approval
    approvals, required = _count(record), record.required if record else 1
    if approvals >= required:
        return f"{approvals} of {required}"
    missing = required - approvals
    more = f"{'one' if missing == 1 else missing} more" if approvals else f"{required} needed"
    until = f" until {format_time(status.deadline)}" if status.deadline else ""
    return f"{approvals} of {required}; {more}{until}"


def describe_state(status: RunStatus) -> str:
    """Return the stage of a run, and how far its approval is where it waits for that."""
    if status.stage != "waiting for approval":
        return status.stage
    record = status.result.approval
    return f"{status.stage} ({_count(record)} of {record.required if record else 1})"


def describe_decisions(record: ApprovalRecord | None) -> str:
    """Return who approved and who rejected, when, and why; empty if nobody decided."""
    return "; ".join(
        f"{'approved' if decision.approve else 'rejected'} by {decision.by} at {format_time(decision.at)}"
        + (f": {decision.reason}" if decision.reason else "")
        for decision in (record.decisions if record else [])
    )


def _count(record: ApprovalRecord | None) -> int:
    return sum(bool(decision.approve) for decision in record.decisions) if record else 0
