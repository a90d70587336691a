"""Checks of the number of rows: in a range, compared with another table, compared with earlier publications."""

from collections.abc import Mapping
from statistics import fmean, stdev
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from sluice.checks.base import (
    Check,
    CheckQuery,
    Evaluation,
    Metrics,
    TableReference,
    between,
    judge_size,
    require_range,
)
from sluice.checks.rows import Filtered
from sluice.metadata.statistics import StatisticsNeed, TableStatistics
from sluice.sql.dialect import Dialect

Rows = Annotated[int, Field(ge=0)]


class RowCount(Filtered):
    """The number of rows that the run adds (`scope: added`), or of all rows, must lie in a range."""

    aliases = {
        "expect_table_row_count_to_be_between": {"min_value": "min", "max_value": "max"},
        "expect_table_row_count_to_equal": {"value": "exactly"},
        "number_of_rows": {"threshold": "min"},
    }
    shorthand = "min"
    proof = "no row-level deletes apply"

    check: Literal["row_count"] = "row_count"
    min: Rows | None = None
    max: Rows | None = None

    @model_validator(mode="after")
    def _a_range(self) -> "RowCount":
        require_range(self.min, self.max)
        return self

    @property
    def own_columns(self) -> list[str]:
        return []

    @property
    def expected(self) -> str:
        rows = "row" if (self.min if self.max is None else self.max) == 1 else "rows"
        return f"{between(self.min, self.max)} {rows}" + (f" where {self.where}" if self.where else "")

    def prove(self, statistics: TableStatistics) -> Evaluation | None:
        rows = statistics.rows(self.scope)
        return None if rows is None or (self.where and rows) else self.evaluate({"rows": rows}, statistics)

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        where = self.filtered(sql, types)
        counted = {"rows": sql.count_if(where)} if where else {}
        return CheckQuery(aggregates=counted, columns=self.column_names)

    def evaluate(self, metrics: Metrics, statistics: TableStatistics) -> Evaluation:
        rows = int(metrics["rows"])
        return judge_size(
            rows,
            too_few=self.min is not None and rows < self.min,
            too_many=self.max is not None and rows > self.max,
            requeued=statistics.requeued and self.scope == "added",
        )

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        exactly = {"min": parameters["exactly"], "max": parameters["exactly"]} if "exactly" in parameters else {}
        return [{**{key: value for key, value in parameters.items() if key != "exactly"}, **exactly}]


class EqualRowCount(Check):
    """The table must have as many rows as another table, within a ratio if one is given."""

    aliases = {
        "expect_table_row_count_to_equal_other_table": {"other_table_name": "to"},
        "dbt_utils.equal_rowcount": {"compare_model": "to"},
    }
    shorthand = "to"
    proof = "no row-level deletes apply to either table"

    check: Literal["equal_row_count"] = "equal_row_count"
    to: str = Field(min_length=1)
    ref: Literal["branch", "main"] = "branch"
    min_ratio: float = Field(default=1, ge=0)
    max_ratio: float = Field(default=1, ge=0)
    """Bounds of the number of rows as a multiple of the other table's."""

    @model_validator(mode="after")
    def _a_range(self) -> "EqualRowCount":
        require_range(self.min_ratio, self.max_ratio)
        return self

    @property
    def column_names(self) -> list[str]:
        return []

    @property
    def reference(self) -> TableReference:
        return TableReference(table=self.to, ref=self.ref)

    @property
    def expected(self) -> str:
        exact = self.min_ratio == self.max_ratio == 1
        times = "as many rows as" if exact else f"{self.min_ratio:g} to {self.max_ratio:g} times the rows of"
        return f"{times} {self.reference.key}"

    def prove(self, statistics: TableStatistics) -> Evaluation | None:
        rows, theirs = statistics.rows(self.scope), statistics.referenced_rows.get(self.reference.key)
        return None if rows is None or theirs is None else self.evaluate({"rows": rows, "theirs": theirs}, statistics)

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        return CheckQuery(
            aggregates={"theirs": f"(SELECT count(*) FROM {self.reference.view})"}, reference=self.reference
        )

    def evaluate(self, metrics: Metrics, statistics: TableStatistics) -> Evaluation:
        rows, theirs = int(metrics["rows"]), int(metrics["theirs"])
        return judge_size(
            f"{rows}, and {theirs} in {self.reference.key}",
            too_few=rows < self.min_ratio * theirs,
            too_many=rows > self.max_ratio * theirs,
            requeued=statistics.requeued and self.scope == "added",
        )


class Volume(Check):
    """The number of rows that the run adds must be close to that of the last publications into the table.

    `if_fewer` is the verdict if there are fewer earlier publications than `at_least`.
    """

    needs = frozenset({StatisticsNeed.CHANGE, StatisticsNeed.VOLUMES})
    proof = "always"
    shorthand = "last"

    check: Literal["volume"] = "volume"
    last: int = Field(default=10, ge=1)
    """The number of earlier publications to compare with."""
    deviations: float | None = Field(default=None, gt=0)
    """The allowed distance from their mean, in standard deviations."""
    min_ratio: float | None = Field(default=None, ge=0)
    max_ratio: float | None = Field(default=None, ge=0)
    """Bounds as a multiple of their mean."""
    if_fewer: Literal["pass", "warn", "fail"] = "warn"
    at_least: int = Field(default=2, ge=1)
    """The minimum number of earlier publications to compare with."""

    @model_validator(mode="after")
    def _some_bound(self) -> "Volume":
        if self.deviations is None:
            require_range(self.min_ratio, self.max_ratio)
        if self.deviations is not None and self.at_least < 2:
            raise ValueError("deviations needs at least 2 publications: set at_least to 2 or more")
        if self.at_least > self.last:
            raise ValueError(f"at_least {self.at_least} is above last {self.last}")
        return self

    @property
    def column_names(self) -> list[str]:
        return []

    @property
    def expected(self) -> str:
        parts = [f"within {self.deviations:g} deviations" if self.deviations else ""]
        if self.min_ratio is not None or self.max_ratio is not None:
            parts.append(f"{between(self.min_ratio, self.max_ratio)} times the mean")
        return f"{', '.join(part for part in parts if part)} of the last {self.last} publications"

    def prove(self, statistics: TableStatistics) -> Evaluation:
        before, rows = list(statistics.change.volumes)[: self.last], sum(file.rows for file in statistics.added)
        if len(before) < self.at_least:
            words = f"{rows} rows, and {len(before)} publications before: too few to tell"
            return Evaluation(level=self.if_fewer, observed=words)
        mean = fmean(before)
        spread = stdev(before) if len(before) > 1 else 0.0
        is_far = self.deviations is not None and abs(rows - mean) > self.deviations * spread
        return judge_size(
            f"{rows} rows; mean {mean:.6g}, deviation {spread:.6g} of {len(before)}",
            too_few=(is_far and rows < mean) or (self.min_ratio is not None and rows < self.min_ratio * mean),
            too_many=(is_far and rows > mean) or (self.max_ratio is not None and rows > self.max_ratio * mean),
            requeued=statistics.requeued,
        )
