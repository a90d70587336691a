"""Verdicts for the page: a sentence first, then the same facts in the same order for every check."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from sluice.audit.observed import describe_observed
from sluice.checks.results import check_title
from sluice.checks.verdicts import CheckResult
from sluice.command_line import COMMAND
from sluice.contracts.run import RunResult
from sluice.contracts.run_request import RunRequest
from sluice.presentation.waivers import describe_waiver, waiver_of
from sluice.sizes import format_count
from web.templates import cell, numeric_columns

Look = Literal["failed", "unanswered", "warned", "passed", "notrun"]
LOOKS: dict[str, Look] = {"fail": "failed", "error": "unanswered", "warn": "warned", "pass": "passed"}
"""Looks of verdicts."""
WORDS: dict[Look, str] = {
    "failed": "Failed",
    "unanswered": "Could not be answered",
    "warned": "Warned",
    "passed": "Passed",
    "notrun": "Not run",
}
"""Words of the five verdicts, the worst first."""


@dataclass(frozen=True)
class BadRows:
    """Rows that broke a check."""

    columns: list[str]
    marked: frozenset[str]
    """Columns of the check."""
    rows: list[list[str]]
    total: int | None
    numeric: frozenset[str] = frozenset()
    """Columns of numbers, which are aligned to the right."""


@dataclass(frozen=True)
class RowsQueryView:
    """The query that finds the bad rows of a check, to copy."""

    sql: str
    command: str
    """Command that runs it; empty if none does."""
    notes: str
    """Sentences about where it runs and what it returns."""


@dataclass(frozen=True)
class VerdictView:
    """One verdict."""

    look: Look
    sentence: str
    check: str
    """Kind of the check with its columns or its name."""
    table: str
    expected: str
    observed: str = ""
    severity: str = ""
    effect: str = ""
    """Consequence of the verdict for the merge."""
    blocks: bool = False
    answered_by: str = ""
    bad_rows: BadRows | None = None
    rows_hidden: str = ""
    """Reason why there are bad rows and none is shown; empty otherwise."""
    query: RowsQueryView | None = None

    @property
    def word(self) -> str:
        """Word of the verdict."""
        return WORDS[self.look]


@dataclass(frozen=True)
class VerdictsView:
    """The verdicts of a run."""

    notable: list[VerdictView] = field(default_factory=list)
    """Verdicts that a person should read: failed, without an answer, or warned; the worst first."""
    others: list[VerdictView] = field(default_factory=list)
    """Verdicts of checks that passed or did not run."""

    @property
    def counts(self) -> list[tuple[Look, str]]:
        """Number of verdicts of each kind as `2 failed`, the worst first."""
        return _count([each.look for each in (*self.notable, *self.others)])

    @property
    def tables(self) -> list[str]:
        """Names of the tables that have a verdict."""
        return list(dict.fromkeys(each.table for each in (*self.notable, *self.others)))

    @property
    def others_heading(self) -> str:
        """Heading of the verdicts of checks that passed or did not run: `7 checks passed, 1 did not run`."""
        absent = sum(each.look == "notrun" for each in self.others)
        passed = len(self.others) - absent
        parts = [f"{format_count(passed, 'check')} passed"] if passed else []
        return ", ".join([*parts, *([f"{absent:,} did not run"] if absent else [])])

    @property
    def blocking(self) -> int:
        """Number of verdicts that block the merge."""
        return sum(each.blocks for each in self.notable)


def view_verdicts(result: RunResult, request: RunRequest | None, rows_hidden: str = "") -> VerdictsView:
    """Return the verdicts of a run. Without its request, the checks that did not run are not known.

    Args:
        rows_hidden: reason why the bad rows are not shown; empty if they are.
    """
    views = [_view(check, result, request, rows_hidden) for check in result.checks]
    order = list(WORDS)
    notable = [each for each in views if each.look in ("failed", "unanswered", "warned")]
    return VerdictsView(
        notable=sorted(notable, key=lambda each: order.index(each.look)),
        others=[each for each in views if each.look == "passed"] + _not_run(result, request),
    )


def _view(check: CheckResult, result: RunResult, request: RunRequest | None, rows_hidden: str) -> VerdictView:
    look = LOOKS[check.verdict]
    effect, blocks = _effect(check, result)
    return VerdictView(
        look=look,
        sentence=_sentence(check),
        check=check.title,
        table=check.table,
        expected=check.expected,
        observed=cell(describe_observed(check)) if look != "unanswered" else "",
        severity=_severity(check, request),
        effect=effect,
        blocks=blocks,
        answered_by=_answered_by(check),
        bad_rows=None if rows_hidden else _bad_rows(check),
        rows_hidden=rows_hidden if check.sample else "",
        query=_query(check, result),
    )


def _sentence(check: CheckResult) -> str:
    if check.verdict == "error":
        return f"No answer: {check.message}"
    observed = cell(describe_observed(check))
    if check.verdict == "pass":
        return observed
    return observed if observed.endswith(("bad row", "bad rows")) else f"Observed {observed}"


def _effect(check: CheckResult, result: RunResult) -> tuple[str, bool]:
    """Return what a verdict does to the run, and whether it blocks the merge."""
    if check.verdict == "error":
        return "blocks the merge, and nobody can waive it", True
    if check.verdict == "warn":
        return "does not block", False
    if check.verdict != "fail":
        return "", False
    if waived := waiver_of(check, result.waived):
        return f"does not block: {describe_waiver(waived)}", False
    to_waive = result.approval.to_waive if result.approval else []
    if any((each.table, each.index) == (check.table, check.index) for each in to_waive):
        return "blocks until an approval waives it", True
    return "blocks the merge", True


def _severity(check: CheckResult, request: RunRequest | None) -> str:
    table = request.pipeline.tables.get(check.table) if request else None
    if table is None or not 0 <= check.index < len(table.checks):
        return ""
    return table.checks[check.index].severity


def _answered_by(check: CheckResult) -> str:
    if check.answered_by is None:
        return ""
    return f"{check.answered_by}, {format_count(check.files, 'file')}" if check.files else check.answered_by


def _bad_rows(check: CheckResult) -> BadRows | None:
    """Return the sample of bad rows, with the columns of the check first."""
    if not check.sample:
        return None
    marked = frozenset(check.columns)
    names = list(check.sample[0])
    columns = sorted(names, key=lambda name: name not in marked)
    rows = [[cell(row.get(name)) for name in columns] for row in check.sample]
    return BadRows(columns, marked, rows, check.failed_rows, numeric_columns(check.sample))


def _query(check: CheckResult, result: RunResult) -> RowsQueryView | None:
    """Return the query that finds the bad rows; None if no branch has them any more."""
    query = check.bad_rows_query
    is_kept = result.outcome in (None, "published") or (result.outcome == "quarantined" and bool(result.branch))
    if query is None or not is_kept:
        return None
    is_on_main = result.outcome == "published"
    command, notes = "", []
    if query.dialect == "duckdb":
        command = f"{COMMAND} query SQL" + ("" if is_on_main else f" --ref {result.run_id}")
    else:
        branch = "main" if is_on_main else "the branch of this run"
        notes = [f"This is Spark SQL: run it in a session on {branch}."]
    change = result.tables.get(check.table)
    if check.scope == "added" and not (change and change.created):
        notes.append("It also returns bad rows that main had before this run.")
    return RowsQueryView(query.sql, command, " ".join(notes))


def _not_run(result: RunResult, request: RunRequest | None) -> list[VerdictView]:
    if request is None or result.outcome in (None, "skipped"):
        return []
    answered = {(check.table, check.index) for check in result.checks}
    return [
        VerdictView("notrun", "The audit did not reach it", check_title(check), name, check.expected)
        for name, table in request.pipeline.tables.items()
        for index, check in enumerate(table.checks)
        if (name, index) not in answered
    ]


def count_verdict_looks(checks: Sequence[CheckResult]) -> list[tuple[Look, str]]:
    """Return the number of verdicts of each kind as `2 failed`, the worst first."""
    return _count([LOOKS[check.verdict] for check in checks])


def _count(looks: Sequence[Look]) -> list[tuple[Look, str]]:
    number = Counter(looks)
    return [(look, f"{number[look]:,} {word[0].lower()}{word[1:]}") for look, word in WORDS.items() if number[look]]
