"""Checks of the values of one column. A null breaks none of them: `not_null` is there for that."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from sluice.checks.base import ColumnCheck, Finding, Numbers, Scalar, Scan, between
from sluice.facts import ColumnFacts, TableFacts
from sluice.names import literal, quoted

_FLOATS = ("float", "double")
_ORDERED_ALIKE = ("int", "long", "float", "double", "date")
"""Types whose bounds in Python sort as Spark sorts their values."""


class AcceptedValues(ColumnCheck):
    """Every value must be in a set; with `all_present`, every member of the set must occur too."""

    aliases = {
        "expect_column_values_to_be_in_set": {"value_set": "values"},
        "expect_column_distinct_values_to_equal_set": {"value_set": "values"},
    }

    check: Literal["accepted_values"] = "accepted_values"
    values: list[Scalar] = Field(min_length=1)
    all_present: bool = False

    @property
    def expected(self) -> str:
        members = ", ".join(str(value) for value in self.values)
        return f"{'all of' if self.all_present else 'only'} {members}"

    def scan(self, types: Mapping[str, str]) -> Scan:
        column = quoted(self.column)
        members = ", ".join(literal(value) for value in self.values)
        counts = ", ".join(f"count_if({column} = {literal(value)})" for value in self.values)
        return Scan(
            bad_rows=f"{column} NOT IN ({members})",
            aggregates={"found": f"array({counts})"} if self.all_present else {},
        )

    def judge(self, numbers: Numbers) -> Finding:
        failed = int(numbers["failed"])
        missing = [v for v, n in zip(self.values, numbers.get("found", ()), strict=False) if not n]
        observed: Any = failed
        if missing:
            observed = f"{failed} other, missing: {', '.join(str(value) for value in missing)}"
        return Finding(passed=not failed and not missing, observed=observed, failed_rows=failed)


class AcceptedRange(ColumnCheck):
    """Every value must lie between two bounds, either of which may be left out. NaN never does."""

    aliases = {
        "expect_column_values_to_be_between": {"min_value": "min", "max_value": "max"},
        "dbt_utils.accepted_range": {"min_value": "min", "max_value": "max"},
    }

    check: Literal["accepted_range"] = "accepted_range"
    min: int | float | str | None = None
    max: int | float | str | None = None
    inclusive: bool = True

    @field_validator("min", "max", mode="before")
    @classmethod
    def _no_truth(cls, value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("a bound is a number, a date or a text")
        return value

    @model_validator(mode="after")
    def _a_range(self) -> "AcceptedRange":
        low, high = self.min, self.max
        if low is None and high is None:
            raise ValueError("give min, max or both")
        if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
            raise ValueError(f"min {low} is above max {high}")
        return self

    @property
    def expected(self) -> str:
        return between(self.min, self.max) + ("" if self.inclusive else ", the bounds not included")

    def prove(self, facts: TableFacts) -> Finding | None:
        """Bounds of a file enclose its values, so bounds within the range prove a pass, never a fail."""
        kind = facts.types.get(self.column, "")
        if kind not in _ORDERED_ALIKE:
            return None
        for file in facts.files(self.scope):
            column = file.columns.get(self.column)
            if file.rows and not (column and self._encloses(column, kind, file.rows)):
                return None
        return self.judge({"failed": 0})

    def _encloses(self, column: ColumnFacts, kind: str, rows: int) -> bool:
        if column.nulls == rows:
            return True
        if kind in _FLOATS and column.nans != 0:
            return False
        return self._holds(column.lower) and self._holds(column.upper)

    def _holds(self, bound: Any) -> bool:
        if bound is None:
            return False
        low, high = (_comparable(limit, bound) for limit in (self.min, self.max))
        if (self.min is not None and low is None) or (self.max is not None and high is None):
            return False
        above = low is None or (bound >= low if self.inclusive else bound > low)
        below = high is None or (bound <= high if self.inclusive else bound < high)
        return bool(above and below)

    def scan(self, types: Mapping[str, str]) -> Scan:
        column = quoted(self.column)
        equal = "=" if self.inclusive else ""
        tests = []
        if self.min is not None:
            tests.append(f"NOT ({column} >{equal} {literal(self.min)})")
        if self.max is not None:
            tests.append(f"NOT ({column} <{equal} {literal(self.max)})")
        if types.get(self.column) in _FLOATS:
            tests.append(f"isnan({column})")
        return Scan(bad_rows=f"{column} IS NOT NULL AND ({' OR '.join(tests)})")


def _comparable(limit: int | float | str | None, bound: object) -> Any:
    """Return the limit in a form that can be compared with a bound of the metadata, or None."""
    number = isinstance(bound, int | float) and isinstance(limit, int | float)
    text = isinstance(bound, str) and isinstance(limit, str)
    return limit if number or text else None
