"""Base classes of checks with a `where` filter, and of checks in which each row passes or fails."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from sluice.checks.base import Check, CheckQuery, Evaluation, Metrics, expand_columns, type_problem
from sluice.checks.thresholds import contradiction, exceeds, is_share, threshold
from sluice.metadata.statistics import FileStatistics, TableStatistics
from sluice.sql.dialect import Dialect
from sluice.sql.expression import columns_of, expression_problem, without_comments


def _condition(text: str) -> str:
    why = expression_problem(text)
    if why:
        raise ValueError(why)
    return without_comments(text)


Condition = Annotated[str, AfterValidator(_condition)]
Threshold = Annotated[str, BeforeValidator(threshold)]


class Filtered(Check):
    """A check that can be restricted to some of the rows."""

    where: Condition | None = None
    """A condition in Spark SQL. The check considers only rows for which it is true."""

    @property
    def column_names(self) -> list[str]:
        return list(dict.fromkeys([*self.own_columns, *(columns_of(self.where) if self.where else [])]))

    @property
    @abstractmethod
    def own_columns(self) -> list[str]:
        """The columns that it reads, without those of `where`."""

    def filtered(self, sql: Dialect, types: Mapping[str, str]) -> str | None:
        """Return the condition of `where` in a dialect, or None."""
        return sql.translated(self.where, types) if self.where else None

    def filtered_column(self, column: str, sql: Dialect, types: Mapping[str, str]) -> str:
        """Return a column that is null in the rows which `where` excludes, so that aggregates ignore them."""
        where, quoted = self.filtered(sql, types), sql.column(column)
        return f"CASE WHEN {where} THEN {quoted} END" if where else quoted


class RowCheck(Filtered):
    """A check that counts bad rows: a row is bad by its own values, or as part of a group such as equal keys."""

    row_level = True

    mostly: float | None = Field(default=None, gt=0, le=1)
    """The share of rows that must pass."""
    max_failures: int | None = Field(default=None, ge=0)
    """The number of rows that may fail."""
    warn_if: Threshold | None = None
    fail_if: Threshold | None = None

    @model_validator(mode="after")
    def _one_threshold(self) -> "RowCheck":
        given = [name for name in ("mostly", "max_failures", "fail_if") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} contradict each other: give one of them")
        if self.severity == "warn" and self.fail_if:
            raise ValueError("severity: warn never fails, so fail_if has no effect: leave one of them out")
        if self.warn_if and self.fail_if and (why := contradiction(self.warn_if, self.fail_if)):
            raise ValueError(why)
        return self

    @property
    def expected(self) -> str:
        limits = {
            "mostly": f"in {self.mostly:.10g} of the rows" if self.mostly is not None else None,
            "max_failures": f"but for {self.max_failures} rows" if self.max_failures is not None else None,
            "warn_if": f"warn if {self.warn_if}" if self.warn_if else None,
            "fail_if": f"fail if {self.fail_if}" if self.fail_if else None,
            "where": f"where {self.where}" if self.where else None,
        }
        return ", ".join([self.demand, *(limit for limit in limits.values() if limit)])

    @property
    @abstractmethod
    def demand(self) -> str:
        """The expectation of each row, as a report shows it."""

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        """Return the condition that is true for each bad row, if rows are bad by their own values."""
        raise NotImplementedError(f"{self.check} has grouped queries")

    def bad_in(self, file: FileStatistics, types: Mapping[str, str]) -> int | None:
        """Return the number of bad rows in a file if its statistics prove it, or None."""
        return None

    @property
    def by_share(self) -> bool:
        """True if the evaluation needs the total number of rows."""
        limits = [limit for limit in (self.warn_if, self.fail_if) if limit]
        return self.mostly is not None or any(map(is_share, limits))

    def known_in(self, file: FileStatistics, types: Mapping[str, str]) -> int | None:
        """Return the proven number of bad rows in a file, with `where` and row-level deletes applied, or None."""
        if file.rows == 0:
            return 0
        failed = self.bad_in(file, types)
        inexact = failed and (self.where is not None or file.deletes)
        return None if inexact else failed

    def undecided_in(self, statistics: TableStatistics) -> list[FileStatistics]:
        """Return the files that a scan must read."""
        files = statistics.files(self.scope)
        undecided = [file for file in files if self.known_in(file, statistics.types) is None]
        if undecided and self.by_share:
            return list(files) if self.where else [f for f in files if f in undecided or f.deletes]
        return undecided

    def prove(self, statistics: TableStatistics) -> Evaluation | None:
        counts = [self.known_in(file, statistics.types) for file in statistics.files(self.scope)]
        if any(count is None for count in counts):
            return None
        failed = sum(count or 0 for count in counts)
        rows = statistics.rows(self.scope)
        return None if rows is None and failed else self.evaluate({"failed": failed, "rows": rows or 0}, statistics)

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        where, bad = self.filtered(sql, types), self.bad(sql, types)
        return CheckQuery(
            bad=f"{where} AND ({bad})" if where else bad,
            where=where if self.by_share else None,
            columns=self.column_names,
            show=self.column_names,
        )

    def evaluate(self, metrics: Metrics, statistics: TableStatistics) -> Evaluation:
        failed, rows = int(metrics["failed"]), int(metrics.get("rows") or 0)
        if self.mostly is not None:
            fails = Fraction(str(self.mostly)) * rows > rows - failed
        elif self.max_failures is not None:
            fails = failed > self.max_failures
        elif self.fail_if:
            fails = exceeds(failed, rows, self.fail_if)
        else:
            fails = failed > 0 and not self.warn_if
        warns = self.warn_if is not None and exceeds(failed, rows, self.warn_if)
        return Evaluation(level="fail" if fails else "warn" if warns else "pass", observed=failed, failed_rows=failed)


class ColumnRows(RowCheck):
    """A row check of one column. If a pipeline lists several columns, each gets a check of its own."""

    column: str = Field(min_length=1)
    kinds: ClassVar[tuple[str, ...]] = ()
    """The kinds of columns that it supports; empty means all."""

    @property
    def own_columns(self) -> list[str]:
        return [self.column]

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        return type_problem(self.column, types, self.kinds)

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> Sequence[dict[str, Any]]:
        return expand_columns(parameters)
