"""Checks that keys are unique, and checks of the number of distinct values.

With `scope: added`, each key that the run adds must occur once in the table as it would be after the merge; keys
that were repeated on `main` before do not count. With `scope: table`, no key may repeat.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from sluice.checks.base import (
    BAD_ROWS,
    OTHER_ROWS,
    ROWS,
    CheckQuery,
    Evaluation,
    Metrics,
    between,
    expand_columns,
    pass_or_fail,
    require_range,
    type_problem,
)
from sluice.checks.rows import ColumnRows, Filtered, RowCheck
from sluice.metadata.statistics import FileStatistics, StatisticsNeed, TableStatistics
from sluice.sql.dialect import Dialect
from sluice.sql.values import ORDERED, kind_of

_COMPARABLE = (*ORDERED, "boolean", "uuid", "binary", "fixed")


def _repeated(sql: Dialect, keys: list[str], where: str | None, skip_nulls: bool, with_other_rows: bool) -> str:
    names = [sql.column(key) for key in keys]
    listed = ", ".join(names)
    tests = [where] if where else []
    tests += [f"{name} IS NOT NULL" for name in names] if skip_nulls else []
    only = f" WHERE {' AND '.join(tests)}" if tests else ""
    if not with_other_rows:
        return f"SELECT {listed}, count(*) AS {BAD_ROWS} FROM {ROWS}{only} GROUP BY {listed} HAVING count(*) > 1"
    both = (
        f"SELECT {listed}, 1 AS sluice_added FROM {ROWS}{only} UNION ALL "
        f"SELECT {listed}, 0 AS sluice_added FROM {OTHER_ROWS}{only}"
    )
    return (
        f"SELECT {listed}, CAST(sum(sluice_added) AS BIGINT) AS {BAD_ROWS} FROM ({both}) AS sluice_both "
        f"GROUP BY {listed} HAVING count(*) > 1 AND sum(sluice_added) > 0"
    )


class _Keys(RowCheck):
    proof = "there is at most one row"
    needs = frozenset({StatisticsNeed.LIVE_FILES})

    def keys(self) -> list[str]:
        raise NotImplementedError

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        return [problem for key in self.keys() for problem in type_problem(key, types, _COMPARABLE)]

    def prove(self, statistics: TableStatistics) -> Evaluation | None:
        files = [file for file in statistics.files(self.scope) if file.rows]
        alone = self.scope == "table" or len(files) == len(statistics.live)
        if not files or (sum(file.rows for file in files) == 1 and alone):
            return self.evaluate({"failed": 0, "rows": len(files)}, statistics)
        return None

    def undecided_in(self, statistics: TableStatistics) -> list[FileStatistics]:
        return list(statistics.files(self.scope))

    def key_query(self, sql: Dialect, types: Mapping[str, str], skip_nulls: bool) -> CheckQuery:
        where, keys = self.filtered(sql, types), self.keys()
        added = self.scope == "added"
        return CheckQuery(
            where=where,
            groups=_repeated(sql, keys, where, skip_nulls, with_other_rows=False),
            groups_with_other_rows=_repeated(sql, keys, where, skip_nulls, with_other_rows=True) if added else None,
            key=keys[0],
            nulls_match=not skip_nulls,
            columns=self.column_names,
            show=keys,
            group_keys=keys,
        )


class Unique(_Keys, ColumnRows):
    """Every value of a column must occur only once, by itself. Nulls may repeat, as in SQL."""

    aliases = {"expect_column_values_to_be_unique": {}, "unique_values": {}}

    check: Literal["unique"] = "unique"

    @property
    def demand(self) -> str:
        return "no value twice"

    def keys(self) -> list[str]:
        return [self.column]

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        return type_problem(self.column, types, _COMPARABLE)

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        return self.key_query(sql, types, skip_nulls=True)


class UniqueCombinationOfColumns(_Keys):
    """Every combination of values of the columns must occur only once. A null counts as a value."""

    aliases = {
        "expect_compound_columns_to_be_unique": {"column_list": "columns"},
        "dbt_utils.unique_combination_of_columns": {"combination_of_columns": "columns"},
    }
    check: Literal["unique_combination_of_columns"] = "unique_combination_of_columns"
    columns: list[str] = Field(min_length=2)

    @property
    def own_columns(self) -> list[str]:
        return self.columns

    @property
    def demand(self) -> str:
        return "no combination twice"

    def keys(self) -> list[str]:
        return self.columns

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        return self.key_query(sql, types, skip_nulls=False)


class _Distinct(Filtered):
    column: str = Field(min_length=1)

    @property
    def own_columns(self) -> list[str]:
        return [self.column]

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        return type_problem(self.column, types, _COMPARABLE)

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        return list(expand_columns(parameters))


class NotConstant(_Distinct):
    """The column must contain at least two distinct values."""

    aliases = {"dbt_utils.not_constant": {}}
    proof = "the ranges of two files do not overlap, or all values are equal"

    check: Literal["not_constant"] = "not_constant"

    @property
    def expected(self) -> str:
        return "at least two different values"

    def prove(self, statistics: TableStatistics) -> Evaluation | None:
        kind = kind_of(statistics.types[self.column])
        files = [file for file in statistics.files(self.scope) if file.rows and file.values(self.column) != 0]
        known = [file for file in files if file.values(self.column) and not file.deletes]
        bounds = [(file.column(self.column).lower, file.column(self.column).upper) for file in known]
        inexact = kind in ("float", "double") or kind not in (*ORDERED, "boolean")
        if self.where or inexact or not bounds or any(None in pair for pair in bounds):
            return None
        if max(lower for lower, _ in bounds) > min(upper for _, upper in bounds):
            return pass_or_fail(True, "different values")
        one_value = len(known) == len(files) and len({each for pair in bounds for each in pair}) == 1
        return pass_or_fail(False, "1 value") if one_value else None

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        column = self.filtered_column(self.column, sql, types)
        return CheckQuery(
            aggregates={"different": f"CASE WHEN min({column}) <> max({column}) THEN 1 ELSE 0 END"},
            columns=self.column_names,
        )

    def evaluate(self, metrics: Metrics, statistics: TableStatistics) -> Evaluation:
        different = bool(metrics["different"])
        return pass_or_fail(different, "different values" if different else "at most 1 value")


class DistinctCount(_Distinct):
    """The number of distinct values, without nulls, must lie in a range."""

    aliases = {"expect_column_unique_value_count_to_be_between": {"min_value": "min", "max_value": "max"}}

    check: Literal["distinct_count"] = "distinct_count"
    min: int | None = Field(default=None, ge=0)
    max: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _a_range(self) -> "DistinctCount":
        require_range(self.min, self.max)
        return self

    @property
    def expected(self) -> str:
        return f"{between(self.min, self.max)} different values"

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        return CheckQuery(
            distinct={"distinct": self.filtered_column(self.column, sql, types)}, columns=self.column_names
        )

    def evaluate(self, metrics: Metrics, statistics: TableStatistics) -> Evaluation:
        count = int(metrics["distinct"])
        return pass_or_fail((self.min is None or count >= self.min) and (self.max is None or count <= self.max), count)


class DistinctRatio(_Distinct):
    """The share of distinct values among all values, without nulls, must lie in a range."""

    aliases = {"expect_column_proportion_of_unique_values_to_be_between": {"min_value": "min", "max_value": "max"}}

    check: Literal["distinct_ratio"] = "distinct_ratio"
    min: float = Field(default=0, ge=0, le=1)
    max: float = Field(default=1, ge=0, le=1)

    @model_validator(mode="after")
    def _a_range(self) -> "DistinctRatio":
        require_range(self.min, self.max)
        return self

    @property
    def expected(self) -> str:
        return f"a share of different values between {self.min} and {self.max}"

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        column = self.filtered_column(self.column, sql, types)
        return CheckQuery(
            aggregates={"values": f"count({column})"}, distinct={"distinct": column}, columns=self.column_names
        )

    def evaluate(self, metrics: Metrics, statistics: TableStatistics) -> Evaluation:
        values = int(metrics["values"])
        share = int(metrics["distinct"]) / values if values else None
        return pass_or_fail(
            share is not None and self.min <= share <= self.max, "no values" if share is None else round(share, 6)
        )
