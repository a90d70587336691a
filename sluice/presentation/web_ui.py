"""Details of a run as markdown, for the Temporal Web UI."""

from sluice.contracts.run import WAITING, RunStatus
from sluice.presentation.changes import describe_kept_guarantee, describe_message
from sluice.presentation.decisions import describe_wait
from sluice.presentation.markdown import cell, check_table, summary_line, table_row, waiver_list
from sluice.presentation.waivers import count_audit, waiting_lines
from sluice.publishing.retries import describe_attempts

_MAX_CHECKS = 30
"""Maximum number of checks, worst verdicts first. Details are short: the Web UI passes them in an address."""

_MAX_WAIVED, _LONGEST_WAIVER = 5, 200
"""Maximum number of waivers, and of characters of each, for the same reason. The report has them all."""


def details(status: RunStatus) -> str:
    """Return stage or outcome, branch, tables and verdicts of a run."""
    result = status.result
    lines = [f"**{result.outcome or status.stage}**" + (f": {cell(result.reason)}" if result.reason else "")]
    attempts = describe_attempts(result.attempts, result.lost_attempts)
    if result.branch:
        lines.append(f"\nbranch `{result.branch}`, attempt {attempts}")
    if result.audited_hash:
        lines.append(f"\naudited hash `{result.audited_hash[:16]}`")
    if status.stage == WAITING:
        lines.append(f"\napproval: {describe_wait(status)}")
        lines += [f"\n{cell(line)}" for line in waiting_lines(result)[:_MAX_WAIVED]]
    lines += waiver_list(result, limit=_MAX_WAIVED, longest=_LONGEST_WAIVER)
    if result.tables:
        lines += ["", "| table | operation | rows | rows after |", "|---|---|---|---:|"]
        lines += [table_row(name, change) for name, change in result.tables.items()]
        lines += ["", summary_line(result)]
    if guarantee := describe_kept_guarantee(result):
        lines += ["", f"Guarantee: {guarantee}"]
    if message := describe_message(result):
        lines += ["", f"Message: {cell(message)}"]
    if result.checks:
        lines += ["", f"Audit: {count_audit(result)}", ""]
        lines += check_table(result.checks, limit=_MAX_CHECKS, show_values=True, waived=result.waived)
    return "\n".join(lines)
