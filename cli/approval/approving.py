"""Decisions of a person about the report that the person saw, signed if the person has a key."""

import getpass
import re
import sys
from datetime import datetime, timezone

import typer
from rich.console import Console
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import FailureError

from cli.approval.waiving import NO_WAIVER, WaiverRequest, make_waivers
from cli.run.report import print_report
from sluice.approval.decisions import ApprovalRecord, AwaitedDecision, Decision, refusal
from sluice.approval.signatures import sign
from sluice.approval.waiving import waiver_refusal
from sluice.checks.verdicts import AuditReport
from sluice.contracts.run import RunResult, RunStatus
from sluice.errors import InvalidPipeline, ServiceUnavailable
from sluice.secrets import read_secret
from sluice.setting_groups import ApprovalSettings

WAITING = "waiting for approval"
_NAMED = re.compile(r"(?P<hash>[0-9a-f]{12,64})(?::(?P<digest>[0-9a-f]{12,64}))?")
_SHOWN_DIGITS = 12


def make_decision(
    run_id: str,
    status: RunStatus | None,
    *,
    approve: bool,
    by: str | None,
    reason: str,
    named: str,
    settings: ApprovalSettings,
    console: Console,
    link: str,
    request: WaiverRequest = NO_WAIVER,
) -> Decision:
    """Return a decision about the audited hash and the report that the person named or confirmed.

    Args:
        status: status of the run, whose report is shown; None if no worker answers.
        named: hash, or hash and digest, of the report that the person saw; if empty, the report is shown and confirmed.
        request: failed checks that the person waives, and the end of the waivers.

    Raises:
        InvalidPipeline: the waiting report is not the named one, its waivers are wrong, or the person did not confirm.
        ServiceUnavailable: no worker answers.
    """
    if status is None:
        raise ServiceUnavailable("no worker answers for the run: start one with `python worker.py` or `make up`")
    report = shown_report(status.result)
    now = datetime.now(timezone.utc)
    decision = Decision(
        approve=approve,
        by=(getpass.getuser() if by is None else by).strip(),
        reason=reason,
        audited_hash=report.audited_hash,
        audit_digest=report.digest if report.audited_hash else "",
        said_at=now.isoformat(timespec="seconds"),
    )
    if status.stage == WAITING:  # else the run itself refuses the decision, with the reason
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
        if named:
            check_named_report(named, report)
        else:
            _show_and_ask(status.result, report, decision, console, link)
    key = read_secret(settings.sluice_approval_key_file, "SLUICE_APPROVAL_KEY_FILE")
    return decision.model_copy(update={"signature": sign(decision, run_id, key)}) if key else decision


def refusal_in(error: WorkflowUpdateFailedError) -> str:
    """Return the reason why a run refused a decision, without the type of the error."""
    return error.cause.message if isinstance(error.cause, FailureError) else str(error.cause)


def shown_report(result: RunResult) -> AuditReport:
    """Return the report that a status shows. Its digest is computed here, from the shown checks, not trusted."""
    return AuditReport(branch=result.branch or "", audited_hash=result.audited_hash or "", checks=result.checks)


def report_name(report: AuditReport) -> str:
    """Return the name of a report for `--hash`: the first digits of its hash and of its digest."""
    return f"{report.audited_hash[:_SHOWN_DIGITS]}:{report.digest[:_SHOWN_DIGITS]}"


def check_named_report(named: str, report: AuditReport) -> None:
    """Check that the named report is the waiting one.

    Raises:
        InvalidPipeline: the name is that of another report, or of none.
    """
    match = _NAMED.fullmatch(named.strip().lower())
    if match is None:
        raise InvalidPipeline(
            f"--hash {named[:140]!r} names no report: write the audited hash, or HASH:DIGEST as `status` shows it, "
            f"at least {_SHOWN_DIGITS} digits of each"
        )
    if not report.audited_hash.startswith(match["hash"]):
        raise InvalidPipeline(
            f"the decision was refused: it is for the hash {match['hash'][:_SHOWN_DIGITS]}, but the run waits with "
            f"{report.audited_hash[:_SHOWN_DIGITS]}: look again, with `status`"
        )
    if match["digest"] and not report.digest.startswith(match["digest"]):
        raise InvalidPipeline(
            "the decision was refused: the audit report changed since it was shown: look again, with `status`"
        )


def _show_and_ask(result: RunResult, report: AuditReport, decision: Decision, console: Console, link: str) -> None:
    what = "approve" if decision.approve else "reject"
    if not sys.stdin.isatty():
        raise InvalidPipeline(
            f"to {what} without a terminal, say which report you saw: add --hash HASH:DIGEST, which `status` shows"
        )
    print_report(result, link, console)
    waived = f" and waive {', '.join(each.check for each in decision.waivers)}" if decision.waivers else ""
    if not typer.confirm(f"{what.capitalize()} the report {report_name(report)}{waived}?", err=True):
        raise InvalidPipeline("nothing was decided")
