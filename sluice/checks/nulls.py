"""Checks of nulls."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from sluice.checks.base import CheckQuery, Evaluation, Metrics, expand_columns, pass_or_fail
from sluice.checks.rows import ColumnRows, Filtered
from sluice.metadata.statistics import FileStatistics, TableStatistics
from sluice.sql.dialect import Dialect

Proportion = Annotated[float, Field(ge=0, le=1)]


class NotNull(ColumnRows):
    """No row may have a null in the column."""

    aliases = {"expect_column_values_to_not_be_null": {}}
    proof = "null counts are recorded"

    check: Literal["not_null"] = "not_null"

    @property
    def demand(self) -> str:
        return "no nulls"

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        return f"{sql.column(self.column)} IS NULL"

    def bad_in(self, file: FileStatistics, types: Mapping[str, str]) -> int | None:
        return file.column(self.column).nulls


class _Counting(Filtered):
    """A check on the number of rows and of non-null values."""

    column: str = Field(min_length=1)

    @property
    def own_columns(self) -> list[str]:
        return [self.column]

    def prove(self, statistics: TableStatistics) -> Evaluation | None:
        rows, nulls = statistics.rows(self.scope), statistics.nulls(self.column, self.scope)
        if rows is None or nulls is None or (self.where and rows):
            return None
        return self.evaluate({"rows": rows, "failed": nulls}, statistics)

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        where, null = self.filtered(sql, types), f"{sql.column(self.column)} IS NULL"
        return CheckQuery(
            bad=f"{where} AND {null}" if where else null, where=where, columns=self.column_names, show=self.column_names
        )

    @classmethod
    def expand(cls, parameters: dict[str, object]) -> list[dict[str, object]]:
        return list(expand_columns(parameters))


class NotNullProportion(_Counting):
    """The share of rows with a value in the column must lie in a range. Without rows, the check passes."""

    aliases = {
        "expect_column_proportion_of_non_null_values_to_be_between": {"min_value": "min", "max_value": "max"},
        "dbt_utils.not_null_proportion": {"at_least": "min", "at_most": "max"},
    }
    proof = "null counts are recorded and no row-level deletes apply"

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

    def evaluate(self, metrics: Metrics, statistics: TableStatistics) -> Evaluation:
        rows, nulls = int(metrics["rows"]), int(metrics["failed"])
        share = (rows - nulls) / rows if rows else None
        observed = "no rows" if share is None else round(share, 6)
        return pass_or_fail(share is None or self.min <= share <= self.max, observed, nulls)


class AtLeastOne(_Counting):
    """At least one row must have a value in the column."""

    aliases = {"dbt_utils.at_least_one": {}}
    proof = "null counts are recorded and no row-level deletes apply"

    check: Literal["at_least_one"] = "at_least_one"

    @property
    def expected(self) -> str:
        return "at least one value"

    def evaluate(self, metrics: Metrics, statistics: TableStatistics) -> Evaluation:
        values = int(metrics["rows"]) - int(metrics["failed"])
        return pass_or_fail(values > 0, f"{values} values")
