"""Showing runs to a person: the report of one, the list of many."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from sluice.audit.verdicts import CheckResult, count_verdicts
from sluice.contracts.activity_inputs import TableChange
from sluice.contracts.run import RunResult, RunStatus

_COLOURS = {"pass": "green", "warn": "yellow", "fail": "red", "error": "red"}
_OUTCOMES = {"published": "green", "quarantined": "red", "discarded": "red", "cancelled": "yellow", "failed": "red"}


def report(result: RunResult, link: str, console: Console) -> None:
    """Print how a run ended, with all its evidence."""
    outcome = result.outcome or "under way"
    console.print()
    console.print(f"[bold {_OUTCOMES.get(outcome, 'cyan')}]{outcome}[/]  {escape(result.reason)}", highlight=False)
    if result.tables:
        console.print(_tables(result.tables))
    if result.checks:
        console.print(_checks(result.checks))
        for check in result.checks:
            if check.sample:
                console.print(_sample(check))
    facts = {
        "main before": result.main_before,
        "main after": result.main_after or ("unchanged by this run" if result.outcome else None),
        "audited": result.audited_hash,
        "branch": result.branch,
        "approved by": _approvers(result),
        "attempts": str(result.attempts),
        "conflicts": _conflicts(result),
        "seconds": ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in result.timings.items()),
        "run": result.workflow_id,
        "report": result.report,
        "Web UI": link,
    }
    for name, value in facts.items():
        if value:
            console.print(f"[dim]{name:>12}[/]  {escape(value)}", highlight=False, soft_wrap=True)


def verdict_line(check: CheckResult) -> Text:
    """Return one verdict on one line."""
    found = check.message or f"found {check.observed}, expected {check.expected}"
    line = Text("          ")
    line.append(f"{check.verdict:5}", style=_COLOURS[check.verdict])
    line.append(f" {check.table} {check.title}: {found}")
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
    """Print how a run that goes on stands."""
    console.print(f"[bold]{status.stage}[/]  {escape(progress)}", highlight=False)
    if status.deadline and status.stage == "waiting for approval":
        console.print(f"[dim]until[/] {status.deadline}", highlight=False)


def _tables(changes: dict[str, TableChange]) -> Table:
    table = Table(box=None, header_style="bold")
    table.add_column("table")
    table.add_column("operation")
    for name in ("added", "changed", "removed", "rows after", "files added", "bytes added"):
        table.add_column(name, justify="right")
    table.add_column("spread")
    for name, change in changes.items():
        # A rewritten row is counted as deleted and added; what is both is shown as changed.
        changed = min(change.added_rows, change.deleted_rows)
        counts = (change.added_rows - changed, changed, change.deleted_rows - changed, change.total_rows)
        table.add_row(
            escape(name),
            change.operation + (", created" if change.created else ""),
            *("?" if count is None else f"{count:,}" for count in counts),
            f"{change.added_files:,}",
            size(change.added_bytes),
            change.distribution,
        )
    return table


def _checks(checks: list[CheckResult]) -> Table:
    table = Table(box=None, header_style="bold", title=f"audit: {count_verdicts(checks)}", title_justify="left")
    for name in ("verdict", "table", "check", "observed", "expected", "answered by"):
        table.add_column(name, overflow="fold")
    for check in checks:
        table.add_row(
            Text(check.verdict, style=_COLOURS[check.verdict]),
            escape(check.table),
            escape(check.title),
            escape(check.message or str(check.observed)),
            escape(check.expected),
            _answered(check),
        )
    return table


def _answered(check: CheckResult) -> str:
    """Say by what a check was answered, and how much was read for it."""
    read = f", {check.files} file{'s' * (check.files != 1)}, {size(check.bytes)}" if check.files else ""
    return f"{check.answered_by or 'nobody'}{read}"


def size(number: float) -> str:
    """Write a number of bytes for a person."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1024
    raise AssertionError(number)


def _sample(check: CheckResult) -> Table:
    title = f"{check.table} {check.title}: {len(check.sample)} of {check.failed_rows} bad rows"
    table = Table(box=None, header_style="dim", title=Text(title), title_justify="left")
    for name in check.sample[0]:
        table.add_column(escape(str(name)), overflow="fold")
    for row in check.sample:
        table.add_row(*("null" if value is None else escape(str(value)) for value in row.values()))
    return table


def _conflicts(result: RunResult) -> str:
    """Say how often main moved under the run, and what the run did about it."""
    counts = Counter(conflict.resolved for conflict in result.conflicts)
    return ", ".join(f"{count} {resolved}" for resolved, count in counts.items())


def _approvers(result: RunResult) -> str:
    decisions = result.approval.decisions if result.approval else []
    return ", ".join(f"{each.by} at {each.at[:19]}" for each in decisions if each.approve)
