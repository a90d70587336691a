"""Print the report of a run, and its status."""

from collections import Counter
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from cli.context import CommandContext
from cli.layout import Column, print_command, print_detail, print_line, print_rows, visible
from cli.program import program
from cli.run.verdicts import WAIVED_STYLE, print_checks
from sluice.checks.verdicts import CheckResult
from sluice.contracts.run import WAITING, RunResult, RunStatus
from sluice.presentation.cells import shown_value
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
from sluice.presentation.checks import describe_warnings, hint_at_combinations
from sluice.presentation.decisions import describe_decisions, describe_excluded, describe_wait
from sluice.presentation.guessed_types import describe_types
from sluice.presentation.next_steps import hint_at_rehearsal, next_steps
from sluice.presentation.registrations import registration_lines
from sluice.presentation.waivers import (
    WAIVED,
    count_audit,
    how_to_waive,
    waiting_lines,
    waiver_lines,
)
from sluice.publishing.exit_codes import exit_code
from sluice.publishing.retries import describe_attempts
from sluice.sizes import format_count, format_size

_WITH_FILES = 100
"""Minimum width, in characters, at which a report also shows the numbers of files added and read."""
_OUTCOME_COLOURS = {
    "published": "green",
    "checked": "green",
    "skipped": "yellow",
    "quarantined": "red",
    "discarded": "red",
    "cancelled": "yellow",
    "failed": "red",
}


def report_result(
    context: CommandContext,
    result: RunResult,
    *,
    with_verdicts: bool = True,
    released: str = "",
    may_decide: bool = True,
) -> int:
    """Print the result of a run in the form that the command was asked for; return its exit code.

    Args:
        with_verdicts: True to print each verdict; False for a run that was followed, whose verdicts are printed.
        released: the run whose quarantine this one releases or repairs; empty if it does neither.
        may_decide: False if the quarantine of the run is no longer kept.
    """
    link = context.link(result.workflow_id, result.run_id)
    if context.as_json:
        print(result.model_dump_json())
    elif context.report:
        from sluice.presentation.markdown import markdown_report  # noqa: PLC0415  # it needs all checks; only --report does

        print(markdown_report(result, link))
    else:
        page = context.settings.installation.page_of_run(result.workflow_id, result.run_id)
        print_report(result, link, context.console, page=page, with_verdicts=with_verdicts)
        if may_decide:  # last, so that long samples of rows do not push the commands off the screen
            for purpose, step in next_steps(result, released, program()).items():
                print_command(context.console, purpose, step)
    return exit_code(result)


def print_report(result: RunResult, link: str, console: Console, *, page: str = "", with_verdicts: bool = True) -> None:
    """Print the result of a run: outcome, reason, main and branch, then tables, checks with bad rows, and details.

    Args:
        link: address of the run in the Temporal Web UI.
        page: address of the run on the page; empty if the address of the page is not set.
    """
    outcome = result.outcome or "under way"
    console.print()
    heading = Text(outcome, style=f"bold {_OUTCOME_COLOURS.get(outcome, 'cyan')}")
    print_line(console, Text.assemble(heading, "  "), result.reason)
    _print_details(console, {"main after": _describe_main(result), "branch": _describe_branch(result)})
    for line in waiver_lines(result):
        print_line(console, Text(f"{WAIVED}  ", style=WAIVED_STYLE), line)
    if result.input and result.input.summary:
        print_line(console, Text(), result.input.summary)
    with_files = console.width >= _WITH_FILES
    if result.tables:
        _print_tables(console, result, with_files=with_files)
    if result.checks and with_verdicts:
        print_checks(console, result, with_files=with_files)
    for check in result.checks:
        print_bad_rows(console, check)
    for hint in [*hint_at_combinations(result.checks), *filter(None, [hint_at_rehearsal(result)])]:
        print_line(console, Text("hint  ", style="yellow"), hint)
    details = {
        summary_heading(result): describe_summary(result),
        "types": describe_types(result.types),
        "releases": describe_release(result),
        "message": describe_message(result),
        "metadata": describe_metadata(result),
        "guarantee": describe_kept_guarantee(result),
        "main before": result.main_before if result.main_after or not result.outcome else None,
        "audited hash": result.audited_hash,
        "audit": count_audit(result) if result.checks and not with_verdicts else None,
        "decisions": describe_decisions(result.approval),
        "registered": "; ".join(registration_lines(result.registrations)),
        "attempts": describe_attempts(result.attempts, result.lost_attempts),
        "conflicts": _conflicts(result),
        "duration": _durations(result.timings),
        "run": result.workflow_id,
        "report": result.report,
        "page": page,
        "Web UI": link,
        "warned": describe_warnings(result.checks) if result.outcome in ("published", "checked") else None,
    }
    _print_details(console, details)


def print_status(status: RunStatus, progress: str, console: Console) -> None:
    """Print the stage and progress of a run that has not ended."""
    console.print(f"[bold]{status.stage}[/]  {escape(progress)}", highlight=False)
    if status.result.attempts > 1:
        attempts = describe_attempts(status.result.attempts, status.result.lost_attempts)
        console.print(f"[dim]attempt[/] {attempts}", highlight=False)
    if status.stage == WAITING:
        console.print(f"[dim]approval[/] {escape(describe_wait(status))}", highlight=False)
        if excluded := describe_excluded(status):
            console.print(f"         {escape(excluded)}", highlight=False)
        for line in waiting_lines(status.result):
            print_line(console, Text("waiver   ", style=WAIVED_STYLE), line)
        if command := how_to_waive(status.result, program()):
            console.print(visible(command), highlight=False, soft_wrap=True)


def _print_details(console: Console, details: Mapping[str, str | None]) -> None:
    for name, value in details.items():
        if value:
            print_detail(console, name, value)


def _describe_main(result: RunResult) -> str:
    """Return the hash of main after a run, or a note that the run did not change main; empty if it has not ended."""
    return result.main_after or ("unchanged by this run" if result.outcome else "")


def _describe_branch(result: RunResult) -> str:
    """Return the branch of a run, or a note that it was not kept; empty if the run needs none any more."""
    is_stopped = result.outcome in ("quarantined", "discarded", "cancelled", "failed")
    return result.branch or ("not kept" if is_stopped else "")


def _print_tables(console: Console, result: RunResult, *, with_files: bool) -> None:
    changes = result.tables
    columns: list[Column | str] = ["table", "operation", "rows", Column(rows_heading(result), "right")]
    if with_files:
        columns += [Column("files added", "right"), Column("bytes added", "right"), "distribution"]
    rows = []
    for name, change in changes.items():
        operation = change.operation + (", created" if change.created else "")
        files = (f"{change.added_files:,}", format_size(change.added_bytes), change.distribution)
        numbers = (describe_change(change), describe_rows_after(change))
        rows.append([name, operation, *numbers, *(files if with_files else ())])
    print_rows(console, columns, rows)
    for name, change in changes.items():
        if change.hint:
            print_line(console, Text("hint  ", style="yellow"), f"{name}: {change.hint}")


def print_bad_rows(console: Console, check: CheckResult, limit: int | None = None) -> None:
    """Print the bad rows of a verdict, at most `limit`."""
    sample = check.sample[:limit]
    if not sample:
        return
    bad = format_count(len(sample), "bad row")
    all_bad = check.failed_rows or 0
    shown = f"{len(sample)} of {all_bad:,} bad rows" if len(sample) < all_bad else bad
    title = f"{check.table} {check.title}: {shown}"
    rows = [[shown_value(value) for value in row.values()] for row in sample]
    print_rows(console, [str(name) for name in sample[0]], rows, title=title, dim=True)


def _conflicts(result: RunResult) -> str:
    """Return the number of times that main moved during the run, by the reaction of the run."""
    counts = Counter((each.resolved, f" ({each.why})" if each.why else "") for each in result.conflicts)
    return ", ".join(f"{count} {resolved}{why}" for (resolved, why), count in counts.items())


def _durations(timings: dict[str, float]) -> str:
    """Return the duration of the run, and of each of its stages."""
    stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in timings.items() if stage != "total")
    if "total" not in timings:
        return stages
    return f"{timings['total']:.1f} s" + (f": {stages}" if stages else "")
