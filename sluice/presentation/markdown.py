"""Report of a run as markdown, for the comment of a pull request or for a page.

It contains no rows. They stay with the run: `status` and `quarantine show` print them.
"""

import re
from collections.abc import Sequence

from sluice.approval.waivers import WaivedCheck
from sluice.audit.observed_values import observed_text
from sluice.checks.verdicts import CheckResult
from sluice.contracts.run import RunResult
from sluice.contracts.table_changes import TableChange
from sluice.lines import shortened_line
from sluice.presentation.changes import (
    describe_change,
    describe_kept_guarantee,
    describe_message,
    describe_metadata,
    describe_release,
    describe_rows_after,
    describe_summary,
    rows_heading,
    summary_heading,
)
from sluice.presentation.guessed_types import describe_types
from sluice.presentation.registrations import registration_lines
from sluice.presentation.waivers import WAIVED, count_audit, shown_verdict, waiver_lines
from sluice.publishing.retries import describe_attempts

_SEVERITY = ("error", "fail", "warn", "pass")
_LONGEST_CELL = 160
_LONGEST_SUMMARY = 1000
_MARKUP = re.compile(r"[\\`|*\[\]]")


def markdown_report(result: RunResult, link: str) -> str:
    """Return outcome, tables, verdicts and details of a run; `link` leads to it in the Temporal Web UI."""
    lines = [f"## {result.pipeline}: {result.outcome or 'under way'}"]
    if result.reason:
        lines += ["", cell(result.reason, 1000)]
    lines += waiver_list(result)
    if result.tables:
        lines += ["", f"| table | operation | rows | {rows_heading(result)} |", "|---|---|---|---:|"]
        lines += [table_row(name, change) for name, change in result.tables.items()]
        lines += ["", summary_line(result)]
    if result.checks:
        table = check_table(result.checks, show_values=False, waived=result.waived)
        lines += ["", f"Audit: {count_audit(result)}", "", *table]
    attempts = describe_attempts(result.attempts, result.lost_attempts)
    details = {
        "types": cell(describe_types(result.types), 1000),
        "releases": cell(describe_release(result), 1000),
        "guarantee": cell(describe_kept_guarantee(result), 200),
        "message": cell(describe_message(result), 1000),
        "metadata": cell(describe_metadata(result), 1000),
        "run": f"[{result.workflow_id}]({link})",
        "branch": f"`{result.branch}`" if result.branch else "",
        "main": f"`{result.main_after[:16]}`" if result.main_after else "unchanged by this run",
        "registered": cell("; ".join(registration_lines(result.registrations)), 1000),
        "attempts": attempts,
    }
    lines += ["", *(f"- {name}: {value}" for name, value in details.items() if value)]
    return "\n".join(lines)


def summary_line(result: RunResult) -> str:
    """Return the totals over the tables of a run, with their heading."""
    return f"{summary_heading(result).capitalize()}: {cell(describe_summary(result), _LONGEST_SUMMARY)}"


def waiver_list(result: RunResult, limit: int | None = None, longest: int = 1000) -> list[str]:
    """Return the waived checks of a run as a list, each with author, end and reason.

    Args:
        limit: maximum number of checks; None for all.
        longest: maximum number of characters of each entry.
    """
    listed = [f"- **{WAIVED}** {cell(line, longest)}" for line in waiver_lines(result)[:limit]]
    if limit is not None and len(result.waived) > limit:
        listed.append(f"- and {len(result.waived) - limit} more")
    return ["", *listed] if listed else []


def check_table(
    checks: Sequence[CheckResult],
    limit: int | None = None,
    *,
    show_values: bool,
    waived: Sequence[WaivedCheck] = (),
) -> list[str]:
    """Return a table of verdicts, the worst first, with at most `limit` rows."""
    worst_first = sorted(checks, key=lambda check: _SEVERITY.index(check.verdict))
    lines = ["| verdict | table | check | observed | expected | answered by |", "|---|---|---|---|---|---|"]
    lines += [_check_row(check, show_values, waived) for check in worst_first[:limit]]
    if limit is not None and len(checks) > limit:
        lines.append(f"\nand {len(checks) - limit} more")
    return lines


def table_row(name: str, change: TableChange) -> str:
    """Return the change of a table as a row of a markdown table."""
    operation = change.operation + (", created" if change.created else "")
    return f"| {name} | {operation} | {describe_change(change)} | {describe_rows_after(change)} |"


def cell(text: str, limit: int = _LONGEST_CELL) -> str:
    """Return a text as the content of a table cell: on one line, shortened, and with its markup escaped."""
    return _MARKUP.sub(r"\\\g<0>", shortened_line(text, limit)).replace("<", "&lt;").replace("@", "&#64;")


def _check_row(check: CheckResult, show_values: bool, waived: Sequence[WaivedCheck]) -> str:
    verdict = check.verdict if check.verdict == "pass" else f"**{shown_verdict(check, waived)}**"
    cells = (
        check.table,
        check.title,
        check.message or observed_text(check, show_values=show_values),
        check.expected,
        check.answered_by or "",
    )
    return f"| {verdict} | " + " | ".join(map(cell, cells)) + " |"
