"""Checks that an aggregate of a column lies in a range: mean, sum, standard deviation, quantile.

Floating-point results are compared by 12 significant digits, because engines add in different orders.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from sluice.checks.base import (
    CheckQuery,
    Evaluation,
    Metrics,
    between,
    expand_columns,
    pass_or_fail,
    require_range,
    type_problem,
)
from sluice.checks.rows import Filtered
from sluice.checks.values import Bound, enclosed
from sluice.metadata.statistics import FileStatistics, TableStatistics
from sluice.sql.dialect import Dialect
from sluice.sql.values import NUMBERS, kind_of, plain, typed

Interval = tuple[Any, Any]
RANGE_ALIASES = {"min_value": "min", "max_value": "max"}
"""Names of the bounds of a range in Great Expectations."""


class AggregateCheck(Filtered):
    """An aggregate that must lie in a range, and the interval that metadata proves for it."""

    kinds: ClassVar[Sequence[str]] = NUMBERS
    term: ClassVar[str]
    observes_values = True

    column: str = Field(min_length=1)
    min: Bound | None = None
    max: Bound | None = None

    @model_validator(mode="after")
    def _a_range(self) -> "AggregateCheck":
        require_range(self.min, self.max)
        return self

    @property
    def own_columns(self) -> list[str]:
        return [self.column]

    @property
    def expected(self) -> str:
        return f"{self.term} {between(self.min, self.max)}"

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        problems = type_problem(self.column, types, self.kinds)
        try:
            low, high = (None, None) if problems else self.limits(types)
        except ValueError as error:
            return [f"{self.term} of {self.column!r}: {error}"]
        if low is not None and high is not None and low > high:
            return [f"min {self.min} is above max {self.max}"]
        return problems

    def limits(self, types: Mapping[str, str]) -> Interval:
        """Return the bounds of the range as exact numbers."""
        low, high = (None if each is None else Fraction(str(typed(each, "decimal"))) for each in (self.min, self.max))
        return low, high

    @abstractmethod
    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        """Return the aggregate of a quoted column."""

    def interval(self, files: Sequence[FileStatistics], kind: str) -> Interval | None:
        """Return the interval that metadata proves for the aggregate, or None."""
        return None

    def prove(self, statistics: TableStatistics) -> Evaluation | None:
        kind = statistics.types[self.column]
        files = [file for file in statistics.files(self.scope) if file.rows and file.values(self.column) != 0]
        if self.where or not files or any(file.values(self.column) is None for file in files):
            return None
        interval = self.interval(files, kind)
        if interval is None:
            return None
        low, high = self.limits(statistics.types)
        observed = (
            f"between {shown(interval[0])} and {shown(interval[1])}"
            if interval[0] != interval[1]
            else shown(interval[0])
        )
        if (low is None or low <= interval[0]) and (high is None or interval[1] <= high):
            return pass_or_fail(True, observed)
        if (low is not None and interval[1] < low) or (high is not None and interval[0] > high):
            return pass_or_fail(False, observed)
        return None

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        chosen = self.filtered_column(self.column, sql, types)
        return CheckQuery(
            aggregates={"value": self.aggregate(sql, chosen, types[self.column])}, columns=self.column_names
        )

    def evaluate(self, metrics: Metrics, statistics: TableStatistics) -> Evaluation:
        value = metrics["value"]
        if value is None:
            return pass_or_fail(False, "no values")
        if str(value).lower() == "nan":
            return pass_or_fail(False, "NaN")
        low, high = self.limits(statistics.types)
        infinite = str(value) in ("inf", "-inf")
        exact = float(value) if infinite else self.exact(value, statistics.types[self.column])
        return pass_or_fail((low is None or low <= exact) and (high is None or exact <= high), shown(exact))

    def exact(self, value: Any, kind: str) -> Any:
        """Return the value of a scan as a number that can be compared with the limits."""
        return Fraction(f"{value:.12g}" if isinstance(value, float) else str(value))

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        return list(expand_columns(parameters))


def _sum_interval(column: str, files: Sequence[FileStatistics], kind: str) -> tuple[Interval, int] | None:
    """Return the interval of the sum and the number of values, or None if metadata does not bound the sum."""
    low = high = Fraction(0)
    count = 0
    for file in files:
        bounds, values = enclosed(file.column(column), kind), file.values(column)
        if (
            bounds is None
            or values is None
            or file.deletes
            or float(bounds[0]) in _INFINITE
            or float(bounds[1]) in _INFINITE
        ):
            return None
        low, high, count = low + values * Fraction(bounds[0]), high + values * Fraction(bounds[1]), count + values
    return (low, high), count


_INFINITE = (float("inf"), float("-inf"))


class MeanInRange(AggregateCheck):
    """The mean of the values must lie in a range."""

    aliases = {"expect_column_mean_to_be_between": RANGE_ALIASES}
    term = "a mean"
    proof = "the bounds of the files enclose it tightly enough"

    check: Literal["mean_in_range"] = "mean_in_range"

    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        return f"avg(CAST({column} AS DOUBLE))"

    def interval(self, files: Sequence[FileStatistics], kind: str) -> Interval | None:
        total = _sum_interval(self.column, files, kind)
        return (total[0][0] / total[1], total[0][1] / total[1]) if total and total[1] else None


class SumInRange(AggregateCheck):
    """The sum of the values must lie in a range."""

    aliases = {"expect_column_sum_to_be_between": RANGE_ALIASES}
    term = "a sum"
    proof = "the bounds of the files enclose it tightly enough; not of floats"

    check: Literal["sum_in_range"] = "sum_in_range"

    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        return sql.total(column, kind)

    def interval(self, files: Sequence[FileStatistics], kind: str) -> Interval | None:
        total = _sum_interval(self.column, files, kind) if kind_of(kind) in ("int", "long", "decimal") else None
        return total[0] if total else None


class StddevInRange(AggregateCheck):
    """The sample standard deviation of the values must lie in a range."""

    aliases = {"expect_column_stdev_to_be_between": RANGE_ALIASES}
    term = "a standard deviation"

    check: Literal["stddev_in_range"] = "stddev_in_range"

    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        return f"stddev_samp(CAST({column} AS DOUBLE))"


class QuantileInRange(AggregateCheck):
    """A quantile of the values must lie in a range. It is interpolated between its neighbours; 0.5 is the median."""

    term = "a quantile"

    check: Literal["quantile_in_range"] = "quantile_in_range"
    quantile: float = Field(ge=0, le=1)
    aliases = {"expect_column_median_to_be_between": {**RANGE_ALIASES, "+quantile": "0.5"}}
    proof = "all values of all files lie in the range"

    @property
    def expected(self) -> str:
        return f"a {self.quantile:g} quantile {between(self.min, self.max)}"

    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        return sql.quantile(f"CAST({column} AS DOUBLE)", self.quantile)

    def interval(self, files: Sequence[FileStatistics], kind: str) -> Interval | None:
        bounds = [enclosed(file.column(self.column), kind) for file in files]
        ends = [end for pair in bounds if pair for end in pair]
        infinite = any(float(end) in _INFINITE for end in ends)
        if infinite or any(pair is None for pair in bounds) or all(file.deletes for file in files):
            return None
        return Fraction(min(ends)), Fraction(max(ends))


def shown(value: Any) -> Any:
    """Return an observed value as a report shows it."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(f"{float(value):.12g}")
    return plain(value)
