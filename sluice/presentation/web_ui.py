"""The details of a run as markdown, for the Temporal Web UI."""

from sluice.audit.verdicts import CheckResult, count_verdicts
from sluice.contracts.run import RunStatus
from sluice.contracts.write import TableChange
from sluice.presentation.changes import describe_change
from sluice.presentation.decisions import describe_wait
from sluice.publishing.retries import describe_attempts

_MAX_CHECKS = 30
"""The Web UI passes the details on in an address, so they are short: the checks that block come first."""

_SEVERITY = ("error", "fail", "warn", "pass")


def details(status: RunStatus) -> str:
    """Return stage or outcome, branch, tables and verdicts of a run."""
    result = status.result
    lines = [f"**{result.outcome or status.stage}**" + (f": {_cell(result.reason)}" if result.reason else "")]
    attempts = describe_attempts(result.attempts, result.lost_attempts)
    if result.branch:
        lines.append(f"\nbranch `{result.branch}`, attempt {attempts}")
    if result.audited_hash:
        lines.append(f"\naudited hash `{result.audited_hash[:16]}`")
    if status.stage == "waiting for approval":
        lines.append(f"\napproved: {describe_wait(status)}")
    if result.tables:
        lines += ["", "| table | operation | rows | rows after |", "|---|---|---|---:|"]
        lines += [_table_row(name, change) for name, change in result.tables.items()]
    if result.checks:
        lines += ["", f"Audit: {count_verdicts(result.checks)}", ""]
        lines += ["| verdict | table | check | observed | expected | answered by |", "|---|---|---|---|---|---|"]
        worst_first = sorted(result.checks, key=lambda check: _SEVERITY.index(check.verdict))
        lines += [_check_row(check) for check in worst_first[:_MAX_CHECKS]]
        if len(result.checks) > _MAX_CHECKS:
            lines.append(f"\nand {len(result.checks) - _MAX_CHECKS} more")
    return "\n".join(lines)


def _table_row(name: str, change: TableChange) -> str:
    total = "?" if change.total_rows is None else f"{change.total_rows:,}"
    return f"| {name} | {change.operation} | {describe_change(change)} | {total} |"


def _check_row(check: CheckResult) -> str:
    cells = (
        check.verdict if check.verdict == "pass" else f"**{check.verdict}**",
        check.table,
        check.title,
        check.message or str(check.observed),
        check.expected,
        check.answered_by or "",
    )
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    plain = " ".join(text.split()).replace("|", "\\|")
    return plain if len(plain) <= 160 else plain[:159] + "…"
