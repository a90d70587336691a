"""Tests of dbt_expectations that treat nulls differently than Great Expectations does."""

from typing import Any

from importing.arguments import Arguments
from importing.drafts import Draft, Target, bad_rows, native
from importing.expectations.tables import aggregate_range
from importing.expectations.values import Builder, column_of, distinct_values, missing_members, set_values
from importing.imported import NotCarriedOver
from importing.sql_text import column_sql, literals, plain_name


def _in_set(args: Arguments, target: Target) -> Draft:
    """Require that every value is in a list, and that none is null."""
    column, values = column_of(args), _values(args)
    bad = f"NOT coalesce({column_sql(column)} IN ({literals(values)}), FALSE)"
    return Draft(bad_rows(target, bad), _checks(column, values))


def _distinct_in_set(args: Arguments, target: Target) -> Draft:
    """Require that every distinct value is in a list, and that none is null."""
    column, values = column_of(args), _values(args)
    return Draft(_others(column, values, target), _checks(column, values))


def _equal_set(args: Arguments, target: Target) -> Draft:
    """Require exactly the values of a list, and no null."""
    column, values = column_of(args), distinct_values(args)
    query = f"{_others(column, values, target)} UNION ALL {missing_members(column, values, target)}"
    return Draft(query, _checks(column, values, all_present=True))


def _values(args: Arguments) -> list[Any]:
    values = [value for value in set_values(args) if value is not None]
    if not values:
        raise NotCarriedOver("the set of values is empty")
    return values


def _others(column: str, values: list[Any], target: Target) -> str:
    sql = column_sql(column)
    listed = f"SELECT DISTINCT {sql} AS member FROM {target.rows} AS rows"
    return f"{listed} WHERE NOT coalesce({sql} IN ({literals(values)}), FALSE)"


def _checks(column: str, values: list[Any], **parameters: Any) -> list[Any]:
    name = plain_name(column)
    accepted = native("accepted_values", column=name, values=values, **parameters)
    return [*native("not_null", column=name), *accepted] if name else []


def _share_of_distinct(args: Arguments, target: Target) -> Draft:
    """Require that the share of distinct values lies in a range. A column without values passes."""
    sql, limits, groups = column_sql(column_of(args)), args.range(), args.listed("group_by")
    return aggregate_range(f"count(DISTINCT {sql}) / nullif(count({sql}), 0)", limits, target, groups, [])


SETS: dict[str, Builder] = {
    "expect_column_values_to_be_in_set": _in_set,
    "expect_column_distinct_values_to_be_in_set": _distinct_in_set,
    "expect_column_distinct_values_to_equal_set": _equal_set,
}
"""Draft builders of tests about sets of values."""
SHARES: dict[str, Builder] = {"expect_column_proportion_of_unique_values_to_be_between": _share_of_distinct}
"""Draft builders of tests about shares of values."""
