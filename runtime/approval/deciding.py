"""Make and send the decisions of people, in the same way for the command line and the page."""

from datetime import datetime, timezone

from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import FailureError

from runtime.approval.shown_report import shown_report
from runtime.run.find_run import Handle
from sluice.approval.decisions import ApprovalRecord, AwaitedDecision, Decision, refusal
from sluice.approval.signatures import sign
from sluice.approval.waiver_request import NO_WAIVER, WaiverRequest, make_waivers
from sluice.approval.waiving import waiver_refusal
from sluice.contracts.run import WAITING, RunStatus
from sluice.errors import InvalidPipeline
from sluice.secrets import read_secret
from sluice.setting_groups import ApprovalSettings
from workflows.write_audit_publish import WriteAuditPublish


def new_decision(
    status: RunStatus, *, approve: bool, by: str, reason: str, request: WaiverRequest = NO_WAIVER
) -> Decision:
    """Return an unsigned decision about the report that a status shows.

    Args:
        request: failed checks that the person waives, and the end of the waivers.

    Raises:
        InvalidPipeline: the run would refuse the decision, or a waiver names no failed check.
    """
    report = shown_report(status.result)
    now = datetime.now(timezone.utc)
    decision = Decision(
        approve=approve,
        by=by.strip(),
        reason=reason,
        audited_hash=report.audited_hash,
        audit_digest=report.digest if report.audited_hash else "",
        said_at=now.isoformat(timespec="seconds"),
    )
    if status.stage != WAITING:  # the run itself refuses the decision, with the reason
        return decision
    record = status.result.approval or ApprovalRecord(required=1)
    awaited = AwaitedDecision(
        audited_hash=report.audited_hash or None,
        audit_digest=report.digest,
        required=record.required,
        starter=record.excluded,
        to_waive=record.to_waive,
    )
    decision = decision.model_copy(update={"waivers": make_waivers(request, record.to_waive, reason)})
    # Refuse early, before a person reads the report. The run decides in any case.
    early = refusal(decision, awaited, record.decisions, status.stage)
    if why := early or waiver_refusal(decision, awaited, now):
        raise InvalidPipeline(f"the decision was refused: {why}")
    return decision


def with_signature(decision: Decision, run_id: str, settings: ApprovalSettings) -> Decision:
    """Return a decision, signed if the person has a key."""
    key = read_secret(settings.sluice_approval_key_file, "SLUICE_APPROVAL_KEY_FILE")
    return decision.model_copy(update={"signature": sign(decision, run_id, key)}) if key else decision


def as_signed(decision: Decision, signed: Decision) -> Decision:
    """Return a decision with the signature that a person made elsewhere, such as in the browser.

    Args:
        decision: the decision that the request states.
        signed: the decision that the signed text states.

    Raises:
        InvalidPipeline: they are not the same.
    """
    if signed.by != decision.by:
        raise InvalidPipeline(f"{signed.by[:100]} signed the decision, and {decision.by} sends it")
    if bool(signed.approve) != decision.approve:
        raise InvalidPipeline(f"the signature {'approves' if signed.approve else 'rejects'}, and the request does not")
    if signed.audited_hash != decision.audited_hash:
        raise InvalidPipeline(
            f"the signature is for the hash {signed.audited_hash[:12]}, but the run waits with "
            f"{decision.audited_hash[:12]}"
        )
    completed = decision.model_copy(update={"said_at": signed.said_at, "signature": signed.signature})
    if completed != signed:
        raise InvalidPipeline("the signed text states another decision than the request: sign it again")
    return completed


async def send_decision(handle: Handle, decision: Decision) -> Decision:
    """Send a decision to its run; return it as the run recorded it.

    Raises:
        InvalidPipeline: the run refused it.
    """
    try:
        return await handle.execute_update(WriteAuditPublish.decide, decision)
    except WorkflowUpdateFailedError as error:
        raise InvalidPipeline(f"the decision was refused: {refusal_in(error)}") from error


def refusal_in(error: WorkflowUpdateFailedError) -> str:
    """Return the reason why a run refused a decision, without the type of the error."""
    return error.cause.message if isinstance(error.cause, FailureError) else str(error.cause)
