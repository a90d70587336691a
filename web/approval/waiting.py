"""The decision that a run waits for, as one person sees it."""

from dataclasses import dataclass

from runtime.approval.shown_report import report_name, shown_report
from sluice.approval.decisions import ApprovalRecord, earlier_decision, is_same_person
from sluice.approval.waivers import WaivableCheck, waiver_names
from sluice.contracts.run import WAITING, RunStatus
from sluice.presentation.decisions import describe_missing


@dataclass(frozen=True)
class AwaitedView:
    """The decision that a run waits for."""

    report: str
    """Name of the report that the page shows; the decision is about this report only."""
    audited_hash: str
    deadline: str
    needed: str
    """Sentence about the approvals that are missing."""
    refused: str
    """Reason why this person may not decide; empty if the person may."""
    to_waive: list[tuple[str, WaivableCheck]]
    """Failed checks that an approval must waive, each with its name in a decision."""
    why: str


def awaited_decision(status: RunStatus, person: str) -> AwaitedView | None:
    """Return the decision that a run waits for, or None if it does not wait."""
    if status.stage != WAITING:
        return None
    report = shown_report(status.result)
    record = status.result.approval or ApprovalRecord(required=1)
    names = waiver_names(record.to_waive)
    distinct = list({check.key: check for check in record.to_waive}.values())
    return AwaitedView(
        report=report_name(report),
        audited_hash=report.audited_hash,
        deadline=status.deadline,
        needed=describe_missing(record),
        refused=_refused(record, person),
        to_waive=list(zip(names, distinct, strict=True)),
        why=record.why,
    )


def _refused(record: ApprovalRecord, person: str) -> str:
    if record.excluded and is_same_person(person, record.excluded):
        return f"{record.excluded} started the run, and four eyes are required: another person has to decide."
    if decided := earlier_decision(person, record.decisions):
        return f"You {'approved' if decided.approve else 'rejected'} it already. Another person has to decide, too."
    return ""
