"""Checks that compare two columns, and checks of foreign keys."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from sluice.checks.base import BAD_ROWS, ROWS, CheckQuery, TableReference, type_problem
from sluice.checks.rows import ColumnRows, RowCheck
from sluice.checks.values import enclosed
from sluice.metadata.statistics import FileStatistics
from sluice.sql.dialect import Dialect, NeedsSpark
from sluice.sql.values import FLOATS, NUMBERS, ORDERED, kind_of

Operator = Literal["<", "<=", "=", "!=", ">=", ">"]
_PAIR = {"column_A": "left", "column_B": "right"}
_OPPOSITE = {"<": ">=", "<=": ">", "=": "!=", "!=": "=", ">=": "<", ">": "<="}
_ALIKE = (("int", "long"), FLOATS, ("decimal",), ("string",), ("date",), ("timestamp",), ("timestamptz",))


class CompareColumns(RowCheck):
    """In every row, the comparison of two columns must be true. A row with a null in either column passes."""

    aliases = {
        "expect_column_pair_values_to_be_equal": {**_PAIR, "+operator": "="},
        "expect_column_pair_values_a_to_be_greater_than_b": {**_PAIR, "+operator": ">"},
    }
    proof = "in each file, the ranges of the two columns do not overlap"

    check: Literal["compare_columns"] = "compare_columns"
    left: str = Field(min_length=1)
    operator: Operator
    right: str = Field(min_length=1)

    @property
    def own_columns(self) -> list[str]:
        return [self.left, self.right]

    @property
    def demand(self) -> str:
        return f"{self.left} {self.operator} {self.right}"

    def type_problems(self, types: Mapping[str, str]) -> list[str]:
        problems = [p for name in self.own_columns for p in type_problem(name, types, ORDERED)]
        kinds = {kind_of(types[name]) for name in self.own_columns}
        if not problems and len(kinds) > 1 and not kinds <= set(NUMBERS):
            return [
                f"{self.left!r} is {types[self.left]} and {self.right!r} is {types[self.right]}: these do not compare"
            ]
        return problems

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        kinds = {kind_of(types[name]) for name in self.own_columns}
        if sql.name == "duckdb" and not any(kinds <= set(alike) for alike in _ALIKE):
            raise NeedsSpark(f"a comparison of {' and '.join(sorted(kinds))}")
        return f"NOT ({sql.column(self.left)} {self.operator} {sql.column(self.right)})"

    def bad_in(self, file: FileStatistics, types: Mapping[str, str]) -> int | None:
        left, right = (file.column(name) for name in self.own_columns)
        if file.values(self.left) == 0 or file.values(self.right) == 0:
            return 0
        left_bounds, right_bounds = enclosed(left, types[self.left]), enclosed(right, types[self.right])
        if left_bounds is None or right_bounds is None:
            return None
        if _always(left_bounds, self.operator, right_bounds):
            return 0
        whole = left.nulls == 0 and right.nulls == 0
        return file.rows if whole and _always(left_bounds, _OPPOSITE[self.operator], right_bounds) else None

    @classmethod
    def expand(cls, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        given = dict(parameters)
        if given.pop("or_equal", False) and given.get("operator") == ">":
            given["operator"] = ">="
        return [given]


def _always(left: tuple[Any, Any], operator: str, right: tuple[Any, Any]) -> bool:
    """Return True if the comparison is true for all values within the left and the right bounds."""
    if operator in ("<", "<="):
        return bool(left[1] < right[0] or (operator == "<=" and left[1] == right[0]))
    if operator in (">", ">="):
        return bool(left[0] > right[1] or (operator == ">=" and left[0] == right[1]))
    if operator == "!=":
        return bool(left[1] < right[0] or left[0] > right[1])
    return bool(left[0] == left[1] == right[0] == right[1])


class Relationships(ColumnRows):
    """Every value must occur in a column of another table, like a foreign key. A null passes."""

    proof = "there are no values"

    check: Literal["relationships"] = "relationships"
    to: str = Field(min_length=1)
    field: str = Field(min_length=1)
    ref: Literal["branch", "main"] = "branch"
    """The state in which the other table is read: on the audited branch, or on `main` at the base of the run."""

    @property
    def demand(self) -> str:
        return f"values of {self.reference.key}.{self.field}"

    @property
    def reference(self) -> TableReference:
        return TableReference(table=self.to, ref=self.ref, columns=[self.field])

    def bad_in(self, file: FileStatistics, types: Mapping[str, str]) -> int | None:
        return 0 if file.values(self.column) == 0 else None

    def build_query(self, sql: Dialect, types: Mapping[str, str]) -> CheckQuery:
        where, column, field = self.filtered(sql, types), sql.column(self.column), sql.column(self.field)
        only = f" AND {where}" if where else ""
        theirs = f"SELECT DISTINCT {field} AS sluice_key FROM {self.reference.view}"
        groups = (
            f"SELECT {column}, count(*) AS {BAD_ROWS} FROM {ROWS} LEFT ANTI JOIN ({theirs}) AS sluice_theirs "
            f"ON {column} = sluice_key WHERE {column} IS NOT NULL{only} GROUP BY {column}"
        )
        return CheckQuery(
            where=where,
            groups=groups if sql.name == "spark" else groups.replace("LEFT ANTI JOIN", "ANTI JOIN"),
            key=self.column,
            columns=self.column_names,
            reference=self.reference,
            show=[self.column],
            group_keys=[self.column],
        )
