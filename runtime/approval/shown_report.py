"""The audit report that a person saw, and its name in a decision."""

import re

from sluice.checks.verdicts import AuditReport
from sluice.contracts.run import RunResult
from sluice.errors import InvalidPipeline

_NAMED = re.compile(r"(?P<hash>[0-9a-f]{12,64})(?::(?P<digest>[0-9a-f]{12,64}))?")
_SHOWN_DIGITS = 12


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
