"""Checks that one number, computed from the values of a column, lies in a range.

Floating-point results are judged by 12 significant digits: engines add in different orders.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from sluice.audit.statistics import FileStatistics, TableStatistics
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
from sluice.checks.values import Bound, bound_of, enclosed
from sluice.sql.dialect import Dialect
from sluice.sql.values import NUMBERS, ORDERED, kind_of, plain, typed

Interval = tuple[Any, Any]
_BOUNDS = {"min_value": "min", "max_value": "max"}
_SQLMESH = {"min_v": "min", "max_v": "max"}


class _Metric(Filtered):
    """The base: an aggregate, and where metadata encloses it, the interval."""

    kinds: ClassVar[Sequence[str]] = NUMBERS
    words: ClassVar[str]

    column: str = Field(min_length=1)
    min: Bound | None = None
    max: Bound | None = None

    @model_validator(mode="after")
    def _a_range(self) -> "_Metric":
        require_range(self.min, self.max)
        return self

    @property
    def own_columns(self) -> list[str]:
        return [self.column]

    @property
    def expected(self) -> str:
        return f"{self.words} {between(self.min, self.max)}"

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        problems = type_problem(self.column, types, self.kinds)
        try:
            low, high = (None, None) if problems else self.limits(types)
        except ValueError as error:
            return [f"{self.words} of {self.column!r}: {error}"]
        if low is not None and high is not None and low > high:
            return [f"min {self.min} is above max {self.max}"]
        return problems

    def limits(self, types: Mapping[str, str]) -> Interval:
        """The bounds as exact numbers; checks of values in their order read them by the column's type."""
        low, high = (None if each is None else Fraction(str(typed(each, "decimal"))) for each in (self.min, self.max))
        return low, high

    @abstractmethod
    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        """Return the aggregate over a quoted column."""

    def interval(self, files: Sequence[FileStatistics], kind: str) -> Interval | None:
        """Return two numbers between which metadata proves the aggregate to lie, or None."""
        return None

    def prove(self, statistics: TableStatistics) -> Evaluation | None:
        kind = statistics.types[self.column]
        files = [file for file in statistics.files(self.scope) if file.rows and file.values(self.column) != 0]
        if self.where or not files or any(file.values(self.column) is None for file in files):
            return None
        found = self.interval(files, kind)
        if found is None:
            return None
        low, high = self.limits(statistics.types)
        observed = f"between {shown(found[0])} and {shown(found[1])}" if found[0] != found[1] else shown(found[0])
        if (low is None or low <= found[0]) and (high is None or found[1] <= high):
            return pass_or_fail(True, observed)
        if (low is not None and found[1] < low) or (high is not None and found[0] > high):
            return pass_or_fail(False, observed)
        return None

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        chosen = self.chosen(self.column, sql, types)
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
        endless = str(value) in ("inf", "-inf")
        exact = float(value) if endless else self.exact(value, statistics.types[self.column])
        return pass_or_fail((low is None or low <= exact) and (high is None or exact <= high), shown(exact))

    def exact(self, value: Any, kind: str) -> Any:
        """Return what a scan found as a number that can be compared with the limits."""
        return Fraction(f"{value:.12g}" if isinstance(value, float) else str(value))

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        return list(expand_columns(parameters))


class _Extreme(_Metric):
    kinds = ORDERED
    proof = "the bounds of the files enclose it tightly enough"

    def limits(self, types: Mapping[str, str]) -> Interval:
        return bound_of(self.min, types[self.column]), bound_of(self.max, types[self.column])

    def exact(self, value: Any, kind: str) -> Any:
        return typed(value, kind)

    def bounds(self, files: Sequence[FileStatistics], kind: str) -> tuple[list[Interval], list[Interval]] | None:
        """Return the bounds of all files, and of those in which a value occurs for certain."""
        found = [enclosed(file.column(self.column), kind) for file in files]
        if any(each is None for each in found):
            return None
        certain = [pair for file, pair in zip(files, found, strict=True) if pair and not file.deletes]
        return ([pair for pair in found if pair], certain) if certain else None


class MinInRange(_Extreme):
    """The smallest value must lie in a range."""

    aliases = {"expect_column_min_to_be_between": _BOUNDS}
    words = "a smallest value"

    check: Literal["min_in_range"] = "min_in_range"

    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        return f"min({column})"

    def interval(self, files: Sequence[FileStatistics], kind: str) -> Interval | None:
        found = self.bounds(files, kind)
        return (min(low for low, _ in found[0]), min(high for _, high in found[1])) if found else None


class MaxInRange(_Extreme):
    """The largest value must lie in a range."""

    aliases = {"expect_column_max_to_be_between": _BOUNDS}
    words = "a largest value"

    check: Literal["max_in_range"] = "max_in_range"

    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        return f"max({column})"

    def interval(self, files: Sequence[FileStatistics], kind: str) -> Interval | None:
        found = self.bounds(files, kind)
        return (max(low for low, _ in found[1]), max(high for _, high in found[0])) if found else None


def _weighed(column: str, files: Sequence[FileStatistics], kind: str) -> tuple[Interval, int] | None:
    """Return what a sum lies between, and of how many values, where no row can be deleted."""
    low = high = Fraction(0)
    count = 0
    for file in files:
        bounds, values = enclosed(file.column(column), kind), file.values(column)
        if (
            bounds is None
            or values is None
            or file.deletes
            or float(bounds[0]) in _ENDLESS
            or float(bounds[1]) in _ENDLESS
        ):
            return None
        low, high, count = low + values * Fraction(bounds[0]), high + values * Fraction(bounds[1]), count + values
    return (low, high), count


_ENDLESS = (float("inf"), float("-inf"))


class MeanInRange(_Metric):
    """The mean of the values must lie in a range."""

    aliases = {"expect_column_mean_to_be_between": _BOUNDS}
    words = "a mean"
    proof = "the bounds of the files enclose it tightly enough"

    check: Literal["mean_in_range"] = "mean_in_range"

    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        return f"avg(CAST({column} AS DOUBLE))"

    def interval(self, files: Sequence[FileStatistics], kind: str) -> Interval | None:
        found = _weighed(self.column, files, kind)
        return (found[0][0] / found[1], found[0][1] / found[1]) if found and found[1] else None


class SumInRange(_Metric):
    """The sum of the values must lie in a range."""

    aliases = {"expect_column_sum_to_be_between": _BOUNDS}
    words = "a sum"
    proof = "the bounds of the files enclose it tightly enough; not of floats"

    check: Literal["sum_in_range"] = "sum_in_range"

    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        return sql.total(column, kind)

    def interval(self, files: Sequence[FileStatistics], kind: str) -> Interval | None:
        found = _weighed(self.column, files, kind) if kind_of(kind) in ("int", "long", "decimal") else None
        return found[0] if found else None


class StddevInRange(_Metric):
    """The standard deviation of the values, as of a sample, must lie in a range."""

    aliases = {"expect_column_stdev_to_be_between": _BOUNDS}
    words = "a standard deviation"

    check: Literal["stddev_in_range"] = "stddev_in_range"

    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        return f"stddev_samp(CAST({column} AS DOUBLE))"


class QuantileInRange(_Metric):
    """A quantile of the values, interpolated between its neighbours, must lie in a range; 0.5 is the median."""

    words = "a quantile"

    check: Literal["quantile_in_range"] = "quantile_in_range"
    quantile: float = Field(ge=0, le=1)
    aliases = {"expect_column_median_to_be_between": {**_BOUNDS, "+quantile": "0.5"}}
    proof = "all values of all files lie in the range"

    @property
    def expected(self) -> str:
        return f"a {self.quantile:g} quantile {between(self.min, self.max)}"

    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        return sql.quantile(f"CAST({column} AS DOUBLE)", self.quantile)

    def interval(self, files: Sequence[FileStatistics], kind: str) -> Interval | None:
        found = [enclosed(file.column(self.column), kind) for file in files]
        ends = [end for pair in found if pair for end in pair]
        endless = any(float(end) in _ENDLESS for end in ends)
        if endless or any(pair is None for pair in found) or all(file.deletes for file in files):
            return None
        return Fraction(min(ends)), Fraction(max(ends))


def shown(value: Any) -> Any:
    """Return an observed value as a report says it."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(f"{float(value):.12g}")
    return plain(value)
