"""The planner: what metadata proves, what must be read for the rest, and by which engine.

For each check and data file, metadata proves how many rows are bad, or leaves it undecided. The undecided
files of all checks of one scope are read together, once; what was proven of the other files is added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sluice.audit.statistics import FileStatistics, Scope, TableStatistics
from sluice.checks.base import Check, CheckQuery, Finding, Other
from sluice.checks.rows import RowCheck
from sluice.contracts.spark_jobs import ScanAnswer
from sluice.sql.dialect import Dialect, NeedsSpark
from sluice.sql.values import FLOATS, kind_of

READABLE = (
    "boolean", "int", "long", "float", "double", "decimal", "date", "timestamp", "timestamptz", "string",
    "binary", "fixed",
)  # fmt: skip
"""Kinds of columns that DuckDB reads from a data file as Spark does."""


@dataclass(frozen=True)
class ScanGroup:
    """The questions of one scope that are still open, and the files that answer them."""

    scope: Scope
    facts: TableStatistics
    checks: Mapping[int, Check]
    files: Sequence[FileStatistics]
    questions: dict[int, CheckQuery] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether it reads every live row of the table, as far as is known."""
        known = self.facts.live or ()
        return len(self.files) == len(known)

    def over(self, files: Sequence[FileStatistics]) -> "ScanGroup":
        """Return the same questions about other files."""
        return replace(self, files=[file for file in files if file.rows])

    def finding(self, index: int, answer: ScanAnswer) -> Finding:
        """Join what the rows said with what was proven of the files that were not read."""
        check, read = self.checks[index], {file.path for file in self.files}
        others = [file for file in self.facts.files(self.scope) if file.path not in read]
        numbers = dict(answer.numbers)
        if "rows" in numbers:
            numbers["rows"] = int(numbers["rows"]) + sum(file.rows for file in others)
        if isinstance(check, RowCheck):
            proven = sum(check.known_in(file, self.facts.types) or 0 for file in others)
            numbers["failed"] = int(numbers["failed"]) + proven
        return check.judge(numbers, self.facts)

    def bytes_of(self, index: int) -> int:
        """Return how many bytes of the files hold the columns of a check."""
        columns = self.questions[index].columns
        total = 0
        for file in self.files:
            sizes = [file.column(name).size for name in columns]
            total += file.bytes if any(size is None for size in sizes) else sum(size or 0 for size in sizes)
        return total


def decide(checks: Sequence[Check], facts: TableStatistics) -> dict[int, Finding | None]:
    """Return the finding that metadata proves for each check, or None: undecided."""
    return {index: check.prove(facts) for index, check in enumerate(checks)}


def scan_groups(
    checks: Mapping[int, Check], facts: TableStatistics, sql: Dialect
) -> tuple[list[ScanGroup], dict[int, str]]:
    """Group undecided checks into readings; beside them, why some cannot be asked in this dialect."""
    found: list[ScanGroup] = []
    left: dict[int, str] = {}
    scopes: tuple[Scope, ...] = ("added", "table")
    for scope in scopes:
        asked: dict[int, CheckQuery] = {}
        for index, check in checks.items():
            if check.scope != scope:
                continue
            try:
                asked[index] = check.question(sql, facts.types)
            except NeedsSpark as reason:
                left[index] = str(reason)
        if asked:
            mine = {index: checks[index] for index in asked}
            found.append(ScanGroup(scope, facts, mine, files_for(list(mine.values()), facts, scope), asked))
    return found, left


def files_for(checks: Sequence[Check], facts: TableStatistics, scope: Scope) -> list[FileStatistics]:
    """Return the files of a scope that any of these checks leaves undecided, in the table's order."""
    wanted: set[str] = set()
    for check in checks:
        files = check.undecided_in(facts) if isinstance(check, RowCheck) else facts.files(scope)
        wanted.update(file.path for file in files)
    return [file for file in facts.files(scope) if file.path in wanted and file.rows]


def overlapping(
    files: Sequence[FileStatistics], column: str, with_files: Sequence[FileStatistics], theirs: str
) -> list[FileStatistics]:
    """Return the files whose values of `column` may lie between the bounds of `theirs` in the other files.

    A null never equals a key, so a file of nulls alone is left out too.
    """
    bounds = [(f.column(theirs).lower, f.column(theirs).upper) for f in with_files if f.rows and f.values(theirs) != 0]
    unknown = any(None in pair for pair in bounds)
    low, high = (None, None) if unknown or not bounds else (min(b[0] for b in bounds), max(b[1] for b in bounds))
    found = []
    for file in files:
        facts = file.column(column)
        if not file.rows or (not bounds and not unknown):
            continue
        try:
            apart = low is not None and (
                (facts.upper is not None and facts.upper < low) or (facts.lower is not None and facts.lower > high)
            )
        except TypeError:  # bounds of two types: nothing is known of their order
            apart = False
        if not apart:
            found.append(file)
    return found


def clusters(files: Sequence[FileStatistics], column: str, kind: str) -> list[list[FileStatistics]]:
    """Part files into groups such that no value of the column, nulls aside, can occur in two of them."""
    bounds = {file.path: (file.column(column).lower, file.column(column).upper) for file in files}
    if kind_of(kind) in FLOATS or any(None in pair for pair in bounds.values()):
        return [list(files)]
    found: list[list[FileStatistics]] = []
    reach: Any = None
    for file in sorted(files, key=lambda file: bounds[file.path][0]):
        low, high = bounds[file.path]
        if found and low <= reach:
            found[-1].append(file)
            reach = max(reach, high)
        else:
            found.append([file])
            reach = high
    return found


def duckdb_refusal(files: Sequence[FileStatistics], columns: Mapping[str, str], limit: int) -> str | None:
    """Return why DuckDB must not read these files, or None if it may."""
    if sum(file.bytes for file in files) > limit:
        return f"more than {limit} bytes are to be read"
    strange = [name for name, kind in columns.items() if kind_of(kind) not in READABLE]
    reasons = {_unreadable(file) for file in files} | {f"{name} is {columns[name]}" for name in strange}
    return next((reason for reason in reasons if reason), None)


def _unreadable(file: FileStatistics) -> str | None:
    if file.deletes:
        return "row-level deletes apply"
    if file.form != "PARQUET":
        return f"a file is {file.form}"
    if not file.path.removeprefix("file://").removeprefix("file:").startswith("/"):
        return "the files are not local"
    patterned = any(character in file.path for character in "*?[\0")
    return "the path of a file reads like a pattern" if patterned else None


def referenced_tables(checks: Sequence[Check]) -> list[Other]:
    """Return the other tables that checks name, each once, with all columns that are asked of it."""
    found: dict[str, Other] = {}
    for check in checks:
        if (other := check.other) is not None:
            known = found.get(other.key, other)
            columns = list(dict.fromkeys([*known.columns, *other.columns]))
            found[other.key] = other.model_copy(update={"columns": columns})
    return list(found.values())
