"""Decisions of a person about the report that the person saw, signed if the person has a key."""

import getpass
import sys

import typer
from rich.console import Console

from cli.run.report import print_report
from runtime.approval.deciding import new_decision, with_signature
from runtime.approval.shown_report import check_named_report, report_name, shown_report
from sluice.approval.decisions import Decision
from sluice.approval.waiver_request import NO_WAIVER, WaiverRequest
from sluice.checks.verdicts import AuditReport
from sluice.contracts.run import WAITING, RunResult, RunStatus
from sluice.errors import InvalidPipeline
from sluice.setting_groups import ApprovalSettings


def make_decision(
    run_id: str,
    status: RunStatus,
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
        status: status of the run, whose report is shown.
        named: hash, or hash and digest, of the report that the person saw; if empty, the report is shown and confirmed.
        request: failed checks that the person waives, and the end of the waivers.

    Raises:
        InvalidPipeline: the waiting report is not the named one, its waivers are wrong, or the person did not confirm.
    """
    report = shown_report(status.result)
    by = getpass.getuser() if by is None else by
    decision = new_decision(status, approve=approve, by=by, reason=reason, request=request)
    if status.stage == WAITING:
        if named:
            check_named_report(named, report)
        else:
            _show_and_ask(status.result, report, decision, console, link)
    return with_signature(decision, run_id, settings)


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
