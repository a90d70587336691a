"""Checks of the values of one column. A null passes all of them; `not_null` checks nulls."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from sluice.checks.base import CheckQuery, Evaluation, Metrics, between, require_range
from sluice.checks.rows import ColumnRows
from sluice.metadata.statistics import ColumnStatistics, FileStatistics, TableStatistics
from sluice.sql.dialect import Dialect
from sluice.sql.values import FLOATS, ORDERED, Scalar, kind_of, typed

Bound = int | float | str
_MAX_PRESENT = 500
"""Maximum number of values that a query counts one by one. Engines fail on thousands of aggregates."""


def bound_of(value: Bound | None, kind: str) -> Any:
    """Return a bound as a value of the column's type. A bound of whole numbers may be a fraction such as 0.5."""
    if value is None:
        return None
    whole = kind_of(kind) in ("int", "long") and isinstance(value, float)
    return typed(value, "decimal" if whole else kind)


def enclosed(column: ColumnStatistics, kind: str) -> tuple[Any, Any] | None:
    """Return bounds that enclose every value of a column in a file, or None. No bounds enclose a NaN."""
    unknown = column.lower is None or column.upper is None or kind_of(kind) not in (*ORDERED, "boolean")
    if unknown or (kind_of(kind) in FLOATS and column.nans != 0):
        return None
    return column.lower, column.upper


class _Set(ColumnRows):
    values: list[Scalar] = Field(min_length=1)

    def members(self, types: Mapping[str, str]) -> list[Any]:
        return [typed(value, types[self.column]) for value in self.values]

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        try:
            self.members(types)
        except ValueError as error:
            return [f"{self.column!r} is {types[self.column]}: {error}"]
        return []

    def listed(self, sql: Dialect, types: Mapping[str, str]) -> str:
        return ", ".join(sql.value(member) for member in self.members(types))

    def shown(self) -> str:
        return ", ".join(str(value) for value in self.values)

    def share_in(self, file: FileStatistics, types: Mapping[str, str]) -> Literal["all", "none"] | None:
        """Return `all` or `none` if statistics prove that the set contains all or no values of a file, else None."""
        bounds = enclosed(file.column(self.column), types[self.column])
        if file.values(self.column) == 0:
            return "all"
        if bounds is None:
            return None
        inside = [member for member in self.members(types) if bounds[0] <= member <= bounds[1]]
        if not inside:
            return "none"
        return "all" if _covers(inside, *bounds) else None


class AcceptedValues(_Set):
    """Every value must be in a set. With `all_present`, every member of the set must also occur."""

    aliases = {
        "expect_column_values_to_be_in_set": {"value_set": "values"},
        "expect_column_distinct_values_to_equal_set": {"value_set": "values", "+all_present": "true"},
        "expect_column_distinct_values_to_be_in_set": {"value_set": "values"},
    }
    proof = "the bounds of a file contain only values of the set, or none"

    check: Literal["accepted_values"] = "accepted_values"
    all_present: bool = False

    @model_validator(mode="after")
    def _not_too_many(self) -> "AcceptedValues":
        if self.all_present and len(self.values) > _MAX_PRESENT:
            raise ValueError(
                f"all_present counts each of {len(self.values):,} values separately: the limit is {_MAX_PRESENT:,}. "
                "Keep the values in a table, and find the missing ones by a check `sql`"
            )
        return self

    @property
    def demand(self) -> str:
        return f"{'all of' if self.all_present else 'only'} {self.shown()}"

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        return f"{sql.column(self.column)} NOT IN ({self.listed(sql, types)})"

    def bad_in(self, file: FileStatistics, types: Mapping[str, str]) -> int | None:
        share = self.share_in(file, types)
        return {"all": 0, "none": file.values(self.column)}.get(share) if share else None

    def prove(self, statistics: TableStatistics) -> Evaluation | None:
        return None if self.all_present else super().prove(statistics)

    def undecided_in(self, statistics: TableStatistics) -> list[FileStatistics]:
        return list(statistics.files(self.scope)) if self.all_present else super().undecided_in(statistics)

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        query = super().build_query(sql, types)
        if not self.all_present:
            return query
        where = self.filtered(sql, types)
        counts = {
            f"count{index}": sql.count_if(
                f"{sql.column(self.column)} = {sql.value(member)}" + (f" AND {where}" if where else "")
            )
            for index, member in enumerate(self.members(types))
        }
        return query.model_copy(update={"aggregates": counts})

    def evaluate(self, metrics: Metrics, statistics: TableStatistics) -> Evaluation:
        result = super().evaluate(metrics, statistics)
        missing = [str(value) for index, value in enumerate(self.values) if metrics.get(f"count{index}") == 0]
        if not missing:
            return result
        observed = f"{result.observed} other, missing: {', '.join(missing)}"
        return Evaluation(level="fail", observed=observed, failed_rows=result.failed_rows)


class NotAcceptedValues(_Set):
    """No value may be in a set."""

    aliases = {
        "expect_column_values_to_not_be_in_set": {"value_set": "values"},
        "dbt_utils.not_accepted_values": {},
    }
    proof = "the bounds of a file contain no value of the set, or only one that is in it"

    check: Literal["not_accepted_values"] = "not_accepted_values"

    @property
    def demand(self) -> str:
        return f"none of {self.shown()}"

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        return f"{sql.column(self.column)} IN ({self.listed(sql, types)})"

    def bad_in(self, file: FileStatistics, types: Mapping[str, str]) -> int | None:
        share = self.share_in(file, types)
        return {"none": 0, "all": file.values(self.column)}.get(share) if share else None


class AcceptedRange(ColumnRows):
    """Every value must lie between `min` and `max`, or on one side of a single bound. NaN fails."""

    aliases = {
        "expect_column_values_to_be_between": {"min_value": "min", "max_value": "max"},
        "dbt_utils.accepted_range": {"min_value": "min", "max_value": "max"},
    }
    kinds = ORDERED
    proof = "the bounds of a file lie inside the range, or outside of it"

    check: Literal["accepted_range"] = "accepted_range"
    min: Bound | None = None
    max: Bound | None = None
    inclusive: bool = True

    @field_validator("min", "max", mode="before")
    @classmethod
    def _no_truth(cls, value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("a bound is a number, a date or a text")
        return value

    @model_validator(mode="after")
    def _a_range(self) -> "AcceptedRange":
        require_range(self.min, self.max)
        return self

    @property
    def demand(self) -> str:
        return between(self.min, self.max) + ("" if self.inclusive else ", the bounds not included")

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        problems = super().type_problems(types)
        try:
            low, high = self._limits(types) if not problems else (None, None)
        except ValueError as error:
            return [f"{self.column!r} is {types[self.column]}: {error}"]
        if low is not None and high is not None and low > high:
            return [f"min {self.min} is above max {self.max}"]
        return problems

    def _limits(self, types: Mapping[str, str]) -> tuple[Any, Any]:
        kind = types[self.column]
        return bound_of(self.min, kind), bound_of(self.max, kind)

    def bad_in(self, file: FileStatistics, types: Mapping[str, str]) -> int | None:
        values = file.values(self.column)
        if values == 0:
            return 0
        bounds = enclosed(file.column(self.column), types[self.column])
        if bounds is None:
            return None
        low, high = self._limits(types)
        if self._inside(bounds[0], low, high) and self._inside(bounds[1], low, high):
            return 0
        beyond = self._beyond(low, bounds[1]) or self._beyond(bounds[0], high)
        return values if beyond else None

    def _inside(self, value: Any, low: Any, high: Any) -> bool:
        if self.inclusive:
            return bool((low is None or low <= value) and (high is None or value <= high))
        return bool((low is None or low < value) and (high is None or value < high))

    def _beyond(self, upper: Any, lower: Any) -> bool:
        """Return True if no value can satisfy both bounds: the first is above the second, or equal and excluded."""
        if upper is None or lower is None:
            return False
        return bool(upper > lower or (upper == lower and not self.inclusive))

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        column, equal = sql.column(self.column), "=" if self.inclusive else ""
        low, high = self._limits(types)
        tests = [f"NOT ({column} >{equal} {sql.value(low)})"] if low is not None else []
        tests += [f"NOT ({column} <{equal} {sql.value(high)})"] if high is not None else []
        if kind_of(types[self.column]) in FLOATS:
            tests.append(sql.is_nan(column, types[self.column]))
        return f"{column} IS NOT NULL AND ({' OR '.join(tests)})"


class NotNan(ColumnRows):
    """No value may be NaN. `mostly` or `fail_if` allow a share."""

    kinds = FLOATS
    proof = "NaN counts are recorded"

    check: Literal["not_nan"] = "not_nan"

    @property
    def demand(self) -> str:
        return "no NaN"

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        column = sql.column(self.column)
        return f"{column} IS NOT NULL AND {sql.is_nan(column, types[self.column])}"

    def bad_in(self, file: FileStatistics, types: Mapping[str, str]) -> int | None:
        return 0 if file.values(self.column) == 0 else file.column(self.column).nans


def _covers(members: list[Any], lower: Any, upper: Any) -> bool:
    """Return True if every value between two bounds is a member: one value, or whole numbers without a gap."""
    if lower == upper:
        return bool(lower in members)
    if isinstance(lower, int):
        return bool(len(set(members)) == upper - lower + 1)
    return False
