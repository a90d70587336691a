"""Checks of nulls."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from sluice.checks.base import ColumnCheck, Finding, Numbers, Scan
from sluice.facts import TableFacts
from sluice.names import quoted

Proportion = Annotated[float, Field(ge=0, le=1)]


class NotNull(ColumnCheck):
    """No row may have a null in the column."""

    aliases = {"expect_column_values_to_not_be_null": {}}

    check: Literal["not_null"] = "not_null"

    @property
    def expected(self) -> str:
        return "no nulls"

    def prove(self, facts: TableFacts) -> Finding | None:
        nulls = facts.nulls(self.column, self.scope)
        if nulls is None or (nulls and facts.row_deletes):
            return None
        return self.judge({"failed": nulls})

    def scan(self, types: Mapping[str, str]) -> Scan:
        return Scan(bad_rows=f"{quoted(self.column)} IS NULL")


class NotNullProportion(ColumnCheck):
    """The share of rows with a value in the column must lie in a range. Of no rows, every share is met."""

    aliases = {"expect_column_proportion_of_non_null_values_to_be_between": {"min_value": "min", "max_value": "max"}}

    check: Literal["not_null_proportion"] = "not_null_proportion"
    min: Proportion = 0.0
    max: Proportion = 1.0

    @model_validator(mode="after")
    def _a_range(self) -> "NotNullProportion":
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")
        return self

    @property
    def expected(self) -> str:
        return f"a share of values between {self.min} and {self.max}"

    def prove(self, facts: TableFacts) -> Finding | None:
        rows, nulls = facts.rows(self.scope), facts.nulls(self.column, self.scope)
        if rows is None or nulls is None:
            return None
        return self.judge({"rows": rows, "failed": nulls})

    def scan(self, types: Mapping[str, str]) -> Scan:
        return Scan(bad_rows=f"{quoted(self.column)} IS NULL")

    def judge(self, numbers: Numbers) -> Finding:
        rows, nulls = int(numbers["rows"]), int(numbers["failed"])
        share = (rows - nulls) / rows if rows else None
        passed = share is None or self.min <= share <= self.max
        observed = "no rows" if share is None else round(share, 6)
        return Finding(passed=passed, observed=observed, failed_rows=nulls)
