"""What a person reads about runs: the report of one, its status, and the list of many."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from sluice.audit.verdicts import CheckResult, count_verdicts
from sluice.contracts.run import RunResult, RunStatus
from sluice.contracts.write import TableChange

_VERDICT_COLOURS = {"pass": "green", "warn": "yellow", "fail": "red", "error": "red"}
_WITH_FILES = 100
"""From this width on, the report shows files too: what was added, and what was read."""
_OUTCOME_COLOURS = {
    "published": "green",
    "quarantined": "red",
    "discarded": "red",
    "cancelled": "yellow",
    "failed": "red",
}


def print_report(result: RunResult, link: str, console: Console) -> None:
    """Print how a run ended: outcome and reason, tables, checks with samples of bad rows, and details."""
    outcome = result.outcome or "under way"
    console.print()
    console.print(
        f"[bold {_OUTCOME_COLOURS.get(outcome, 'cyan')}]{outcome}[/]  {escape(result.reason)}", highlight=False
    )
    if result.tables:
        console.print(_tables(result.tables, with_files=console.width >= _WITH_FILES))
    if result.checks:
        console.print(_checks(result.checks, with_files=console.width >= _WITH_FILES))
        for check in result.checks:
            if check.sample:
                title = f"{check.table} {check.title}: {len(check.sample)} of {check.failed_rows} bad rows"
                console.print(Text(title, style="italic"))
                console.print(_sample(check))
    details = {
        "main before": result.main_before,
        "main after": result.main_after or ("unchanged by this run" if result.outcome else None),
        "audited hash": result.audited_hash,
        "branch": result.branch,
        "approved by": _approvers(result),
        "attempts": str(result.attempts),
        "conflicts": _conflicts(result),
        "duration": _durations(result.timings),
        "run": result.workflow_id,
        "report": result.report,
        "Web UI": link,
    }
    for name, value in details.items():
        if value:
            console.print(f"[dim]{name:>12}[/]  {escape(value)}", highlight=False, soft_wrap=True)


def verdict_line(check: CheckResult) -> Text:
    """Return one verdict on one line."""
    evidence = check.message or f"observed {check.observed}, expected {check.expected}"
    line = Text("          ")
    line.append(f"{check.verdict:5}", style=_VERDICT_COLOURS[check.verdict])
    line.append(f" {check.table} {check.title}: {evidence}")
    line.append(f" ({check.answered_by})" if check.answered_by else "", style="dim")
    return line


def runs_table(rows: Sequence[tuple[str, ...]]) -> Table:
    """Return the list of runs."""
    table = Table(box=None, header_style="bold")
    for name in ("run", "pipeline", "state", "started", "tables"):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    return table


def print_status(status: RunStatus, progress: str, console: Console) -> None:
    """Print the stage and progress of a run that has not ended."""
    console.print(f"[bold]{status.stage}[/]  {escape(progress)}", highlight=False)
    if status.deadline and status.stage == "waiting for approval":
        console.print(f"[dim]until[/] {status.deadline}", highlight=False)


def _tables(changes: dict[str, TableChange], *, with_files: bool) -> Table:
    table = Table(box=None, header_style="bold")
    table.add_column("table", overflow="fold")
    table.add_column("operation", overflow="fold")
    for name in ("added", "changed", "removed", "rows after"):
        table.add_column(name, justify="right")
    if with_files:
        table.add_column("files added", justify="right")
        table.add_column("bytes added", justify="right")
        table.add_column("distribution")
    for name, change in changes.items():
        # A rewritten row is counted as deleted and added; what is both is shown as changed.
        changed = min(change.added_rows, change.deleted_rows)
        counts = (change.added_rows - changed, changed, change.deleted_rows - changed, change.total_rows)
        files = (f"{change.added_files:,}", format_size(change.added_bytes), change.distribution)
        table.add_row(
            escape(name),
            change.operation + (", created" if change.created else ""),
            *("?" if count is None else f"{count:,}" for count in counts),
            *(files if with_files else ()),
        )
    return table


def _checks(checks: list[CheckResult], *, with_files: bool) -> Table:
    table = Table(box=None, header_style="bold", title=f"audit: {count_verdicts(checks)}", title_justify="left")
    for name in ("verdict", "table", "check", "observed", "expected", "answered by"):
        table.add_column(name, overflow="fold", no_wrap=name in ("verdict", "answered by"))
    for check in checks:
        table.add_row(
            Text(check.verdict, style=_VERDICT_COLOURS[check.verdict]),
            escape(check.table),
            escape(check.title),
            escape(check.message or str(check.observed)),
            escape(check.expected),
            _answered(check) if with_files else check.answered_by or "not answered",
        )
    return table


def _answered(check: CheckResult) -> str:
    """Return what answered a check, and how much was read for it."""
    read = f", {check.files} file{'s' * (check.files != 1)}, {format_size(check.bytes)}" if check.files else ""
    return f"{check.answered_by or 'not answered'}{read}"


def format_size(number: float) -> str:
    """Write a number of bytes for a person."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    raise AssertionError(number)


def _sample(check: CheckResult) -> Table:
    table = Table(box=None, header_style="dim")
    for name in check.sample[0]:
        table.add_column(escape(str(name)), overflow="fold")
    for row in check.sample:
        table.add_row(*("null" if value is None else escape(str(value)) for value in row.values()))
    return table


def _conflicts(result: RunResult) -> str:
    """Return how often main moved during the run, and what the run did about it."""
    counts = Counter(conflict.resolved for conflict in result.conflicts)
    return ", ".join(f"{count} {resolved}" for resolved, count in counts.items())


def _durations(timings: dict[str, float]) -> str:
    """Return how long the run took, and each of its stages."""
    stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in timings.items() if stage != "total")
    if "total" not in timings:
        return stages
    return f"{timings['total']:.1f} s" + (f": {stages}" if stages else "")


def _approvers(result: RunResult) -> str:
    decisions = result.approval.decisions if result.approval else []
    return ", ".join(f"{each.by} at {each.at[:19]}" for each in decisions if each.approve)
