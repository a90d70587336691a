"""Checks that the smallest or the largest value of a column lies in a range."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sluice.checks.aggregates import RANGE_ALIASES, AggregateCheck, Interval
from sluice.checks.values import bound_of, enclosed
from sluice.metadata.statistics import FileStatistics
from sluice.sql.dialect import Dialect
from sluice.sql.values import ORDERED, typed


class _Extreme(AggregateCheck):
    kinds = ORDERED
    proof = "the bounds of the files enclose it tightly enough"

    def limits(self, types: Mapping[str, str]) -> Interval:
        return bound_of(self.min, types[self.column]), bound_of(self.max, types[self.column])

    def exact(self, value: Any, kind: str) -> Any:
        return typed(value, kind)

    def bounds(self, files: Sequence[FileStatistics], kind: str) -> tuple[list[Interval], list[Interval]] | None:
        """Return the bounds of all files, and of the files that certainly contain a value."""
        bounds = [enclosed(file.column(self.column), kind) for file in files]
        if any(each is None for each in bounds):
            return None
        certain = [pair for file, pair in zip(files, bounds, strict=True) if pair and not file.deletes]
        return ([pair for pair in bounds if pair], certain) if certain else None


class MinInRange(_Extreme):
    """The smallest value must lie in a range."""

    aliases = {"expect_column_min_to_be_between": RANGE_ALIASES}
    term = "a smallest value"

    check: Literal["min_in_range"] = "min_in_range"

    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        return f"min({column})"

    def interval(self, files: Sequence[FileStatistics], kind: str) -> Interval | None:
        bounds = self.bounds(files, kind)
        return (min(low for low, _ in bounds[0]), min(high for _, high in bounds[1])) if bounds else None


class MaxInRange(_Extreme):
    """The largest value must lie in a range."""

    aliases = {"expect_column_max_to_be_between": RANGE_ALIASES}
    term = "a largest value"

    check: Literal["max_in_range"] = "max_in_range"

    def aggregate(self, sql: Dialect, column: str, kind: str) -> str:
        return f"max({column})"

    def interval(self, files: Sequence[FileStatistics], kind: str) -> Interval | None:
        bounds = self.bounds(files, kind)
        return (max(low for low, _ in bounds[1]), max(high for _, high in bounds[0])) if bounds else None
