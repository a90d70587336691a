"""Describe the decisions of people: given and missing approvals, and the author of each decision."""

from sluice.approval.decisions import ApprovalRecord, Decision
from sluice.approval.waivers import Waiver, parse_until
from sluice.contracts.run import WAITING, RunStatus
from sluice.sizes import format_count
from sluice.times import format_time

NOT_VERIFIED = "The name is not verified: approvers have no keys here (docs/approvals.md)."
"""Note on a decision without a signature."""


def describe_wait(status: RunStatus) -> str:
    """Describe the progress of a run's approval: `1 of 2 approvals, waits until 2026-11-22 07:45 UTC`."""
    record = status.result.approval
    approvals, required = _count(record), record.required if record else 1
    given = f"{approvals} of {format_count(required, 'approval')}"
    waits = approvals < required and status.deadline
    return f"{given}, waits until {format_time(status.deadline)}" if waits else given


def describe_excluded(status: RunStatus) -> str:
    """Return a sentence about the person who may not decide; empty if everybody may."""
    record = status.result.approval
    return f"{record.excluded} started the run and may not decide" if record and record.excluded else ""


def describe_missing(record: ApprovalRecord) -> str:
    """Return a sentence about the missing approvals: `1 approval is missing. 1 of 2 is given.`."""
    given, missing = _count(record), record.required - _count(record)
    already = f" {given} of {record.required} {'is' if given == 1 else 'are'} given." if given else ""
    return ("1 approval is missing." if missing == 1 else f"{missing} approvals are missing.") + already


def describe_state(status: RunStatus) -> str:
    """Return the stage of a run, with the progress of its approval if it waits for that."""
    if status.stage != WAITING:
        return status.stage
    record = status.result.approval
    waiver = ", a failed check waits for a waiver" if record and record.to_waive else ""
    return f"{status.stage} ({_count(record)} of {record.required if record else 1}{waiver})"


def describe_decisions(record: ApprovalRecord | None) -> str:
    """Describe each approval and rejection, with its author, time and reason; empty if nobody decided."""
    return "; ".join(
        f"{'approved' if decision.approve else 'rejected'} by {decision.by} at {format_time(decision.at)}"
        + (f": {decision.reason}" if decision.reason else "")
        + describe_waivers(decision)
        for decision in (record.decisions if record else [])
    )


def describe_waivers(decision: Decision) -> str:
    """Describe the waivers of an approval: ` (waives unique(id) of t.x until 2026-12-01 23:59 UTC)`."""
    if not decision.waivers:
        return ""
    each = [f"{waiver.check} of {waiver.table} until {_end(waiver)}" for waiver in decision.waivers]
    return f" (waives {', '.join(each)})"


def _end(waiver: Waiver) -> str:
    try:
        return format_time(parse_until(waiver.until))
    except ValueError:
        return waiver.until


def _count(record: ApprovalRecord | None) -> int:
    return sum(bool(decision.approve) for decision in record.decisions) if record else 0
