"""Checks of how many rows there are."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from sluice.checks.base import Check, Finding, Numbers, Scan, between
from sluice.facts import TableFacts

Rows = Annotated[int, Field(ge=0)]


class RowCount(Check):
    """The rows that the run brings (`scope: added`), or those of the table, must number in a range."""

    aliases = {"expect_table_row_count_to_be_between": {"min_value": "min", "max_value": "max"}}
    shorthand = "min"

    check: Literal["row_count"] = "row_count"
    min: Rows | None = None
    max: Rows | None = None

    @model_validator(mode="after")
    def _a_range(self) -> "RowCount":
        if self.min is None and self.max is None:
            raise ValueError("give min, max or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")
        return self

    @property
    def column_names(self) -> list[str]:
        return []

    @property
    def expected(self) -> str:
        return f"{between(self.min, self.max)} rows"

    def prove(self, facts: TableFacts) -> Finding | None:
        rows = facts.rows(self.scope)
        return None if rows is None else self.judge({"rows": rows})

    def scan(self, types: Mapping[str, str]) -> Scan:
        return Scan()

    def judge(self, numbers: Numbers) -> Finding:
        rows = int(numbers["rows"])
        low = self.min is None or rows >= self.min
        high = self.max is None or rows <= self.max
        return Finding(passed=low and high, observed=rows)
