"""Checks that keys are unique.

With `scope: added` each key that the run brings must occur once in the table as it would be after the
merge; what was repeated on `main` before is not this run's fault. With `scope: table` no key may repeat.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from sluice.checks.base import Check, ColumnCheck, Scan


class Unique(ColumnCheck):
    """Every value of the column must occur once. Nulls may repeat, as in SQL."""

    aliases = {"expect_column_values_to_be_unique": {}}

    check: Literal["unique"] = "unique"

    @property
    def expected(self) -> str:
        return "no value twice"

    def scan(self, types: Mapping[str, str]) -> Scan:
        return Scan(keys=[self.column], null_keys_repeat=True)


class UniqueCombinationOfColumns(Check):
    """Every combination of values of the columns must occur once. A null counts as a value."""

    aliases = {
        "expect_compound_columns_to_be_unique": {"column_list": "columns"},
        "dbt_utils.unique_combination_of_columns": {"combination_of_columns": "columns"},
    }
    check: Literal["unique_combination_of_columns"] = "unique_combination_of_columns"
    columns: list[str] = Field(min_length=2)

    @property
    def column_names(self) -> list[str]:
        return self.columns

    @property
    def expected(self) -> str:
        return "no combination twice"

    def scan(self, types: Mapping[str, str]) -> Scan:
        return Scan(keys=self.columns)
