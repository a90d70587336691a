"""Apply an expression to many columns at once.

Spark would plan thousands of expressions longer than it runs them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField

from sluice.identifiers import quoted

_MANY = 2
"""Minimum number of columns of one type that become one array. Spark plans an array much sooner, and computes its
values as fast."""
_ARRAY = "sluice_array_"

Expression = Callable[[Column, StructField], Column]
"""A function that returns the expression for a column of text and the field that the column becomes. The expression
must not depend on the name of the field, since fields of one type have one expression."""
Rule = Callable[[StructField], bool]
"""A function that divides fields of one type into those with one expression, and those with another."""


def _no_rule(_: StructField) -> bool:
    return True


def with_each(
    rows: DataFrame, fields: Sequence[StructField], expression: Expression, rule: Rule = _no_rule
) -> DataFrame:
    """Return the rows with an expression in place of each of some columns."""
    groups = _groups(fields, rule)
    arrays = [_transformed(group, expression).alias(f"{_ARRAY}{number}") for number, group in enumerate(groups)]
    in_arrays = {
        field.name: F.col(f"{_ARRAY}{number}").getItem(position)
        for number, group in enumerate(groups)
        for position, field in enumerate(group)
    }
    alone = {
        field.name: expression(F.col(quoted(field.name)), field) for field in fields if field.name not in in_arrays
    }
    changed = alone | in_arrays
    columns = [changed[name].alias(name) if name in changed else F.col(quoted(name)) for name in rows.columns]
    with_arrays = rows.select("*", *arrays) if arrays else rows
    return with_arrays.select(*columns)


def any_of(fields: Sequence[StructField], condition: Expression, rule: Rule = _no_rule) -> Column:
    """Return a column that is true if at least one of some columns meets a condition."""
    groups = _groups(fields, rule)
    grouped = {field.name for group in groups for field in group}
    parts = [F.array_contains(_transformed(group, condition), F.lit(True)) for group in groups]
    parts += [condition(F.col(quoted(field.name)), field) for field in fields if field.name not in grouped]
    while len(parts) > 1:  # pairs, since Spark Connect refuses an expression of more than a hundred levels
        parts = [reduce(or_, parts[at : at + 2]) for at in range(0, len(parts), 2)]
    return parts[0] if parts else F.lit(False)


def with_columns(rows: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """Return the rows with the added columns. Spark Connect would fail on an empty mapping."""
    return rows.withColumns(dict(columns)) if columns else rows


def _transformed(fields: Sequence[StructField], expression: Expression) -> Column:
    """Return an array with the results of an expression for some fields of one type."""
    array = F.array(*[F.col(quoted(field.name)) for field in fields])
    return F.transform(array, lambda each: expression(each, fields[0]))


def _groups(fields: Sequence[StructField], rule: Rule) -> list[list[StructField]]:
    """Return groups of many fields with one expression. Other fields are omitted.

    Two types with the same name differ if their fields differ in NOT NULL.
    """
    groups: dict[tuple[DataType, bool, bool], list[StructField]] = {}
    for field in fields:
        groups.setdefault((field.dataType, field.nullable, rule(field)), []).append(field)
    return [group for group in groups.values() if len(group) >= _MANY]
