"""Expectations that have another meaning in suites of Great Expectations than in dbt_expectations.

If the engines of Great Expectations treat nulls differently, its Spark engine decides the meaning.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from importing.arguments import Arguments, Range
from importing.drafts import Draft, Target, native
from importing.expectations.rows import columns_of, compared, one_of_pairs, pairs_of, without_missing
from importing.expectations.tables import measured
from importing.expectations.values import EXPECTATIONS, Builder, column_of, register, row_condition
from importing.imported import AlwaysPasses, NotCarriedOver
from importing.sql_text import column_sql, is_time, literals, number, plain_name
from importing.strftime import strptime_condition

SUITE_EXPECTATIONS: dict[str, Builder] = {}
"""Draft builders of suite expectations, by name in lower case. They take precedence over the shared builders."""


def _expectation(*names: str) -> Callable[[Builder], Builder]:
    return register(SUITE_EXPECTATIONS, names)


def _pair(args: Arguments) -> tuple[tuple[str, str], str, str | None]:
    """Return two columns, the value of `ignore_row_if`, and the condition of the rows that it keeps."""
    columns, ignored = (args.text("column_a"), args.text("column_b")), args.take("ignore_row_if")
    args.ignore("allow_cross_type_comparisons")
    ignored = str(ignored or "both_values_are_missing")
    return columns, ignored, without_missing([*columns], ignored)


@_expectation("expect_column_pair_values_to_be_equal")
def _pair_equal(args: Arguments, target: Target) -> Draft:
    """Require that two columns are equal. A null and a value are not equal, unless such rows are left out."""
    (left, right), ignored, kept = _pair(args)
    if ignored == "either_value_is_missing":
        return compared(left, right, "=", target)
    return row_condition(target, f"{column_sql(left)} <=> {column_sql(right)}", kept)


@_expectation("expect_column_pair_values_a_to_be_greater_than_b")
def _pair_greater(args: Arguments, target: Target) -> Draft:
    """Require that a column is above another. A row with a null passes, with any value of `ignore_row_if`."""
    (left, right), _, _ = _pair(args)
    return compared(left, right, ">=" if args.flag("or_equal") else ">", target)


@_expectation("expect_column_pair_values_to_be_in_set")
def _pair_in_set(args: Arguments, target: Target) -> Draft:
    columns, _, kept = _pair(args)
    return row_condition(target, one_of_pairs(columns, pairs_of(args), "<=>"), kept)


@_expectation("expect_select_column_values_to_be_unique_within_record", "expect_multicolumn_values_to_be_unique")
def _unique_within(args: Arguments, target: Target) -> Draft:
    """Require that the values of a row differ. Two nulls are the same value."""
    columns, kept = columns_of(args)
    pairs = [f"{one} <=> {two}" for index, one in enumerate(columns) for two in columns[index + 1 :]]
    return row_condition(target, f"NOT ({' OR '.join(pairs)})", kept)


@_expectation("expect_multicolumn_sum_to_equal")
def _sum_of_row(args: Arguments, target: Target) -> Draft:
    """Require that the sum of the columns of each row is a number. A null counts as 0."""
    (columns, kept), total = columns_of(args), number(args.required("sum_total"))
    if total is None:
        raise NotCarriedOver("sum_total is not a number")
    return row_condition(target, f"{' + '.join(f'coalesce({each}, 0)' for each in columns)} = {total}", kept)


@_expectation("expect_column_most_common_value_to_be_in_set")
def _most_common(args: Arguments, target: Target) -> Draft:
    """Require that the only most common value, or one of several with `ties_okay`, is in a set."""
    column, values, ties = column_sql(column_of(args)), _members(args.listed("value_set")), args.flag("ties_okay")
    if not values:
        raise NotCarriedOver("the set of values is empty")
    counted = (
        f"SELECT {column} AS member, count(*) AS times FROM {target.rows} AS rows WHERE {column} IS NOT NULL "
        f"GROUP BY {column}"
    )
    ranked = f"SELECT member, rank() OVER (ORDER BY times DESC) AS place FROM ({counted}) AS counted"
    matching = f"count_if(member IN ({literals(values)}))"
    summed = f"SELECT count(*) AS most_common, {matching} AS matching FROM ({ranked}) AS ranked WHERE place = 1"
    good = "matching > 0" if ties else "most_common = 1 AND matching = 1"
    return Draft(f"SELECT * FROM ({summed}) AS summed WHERE NOT ({good})")


@_expectation("expect_column_values_to_be_in_set")
def _in_set(args: Arguments, target: Target) -> Draft:
    """Require that every value is in a set. No value is in an empty set."""
    if args.given("value_set") is not None and not _members(args.given("value_set")):
        args.ignore("value_set")
        return row_condition(target, f"{column_sql(column_of(args))} IS NULL")
    return _shared_set(args, target)


@_expectation("expect_column_values_to_not_be_in_set", "expect_column_distinct_values_to_be_in_set")
def _shared_set(args: Arguments, target: Target) -> Draft:
    if not _members(args.given("value_set") or []):
        raise AlwaysPasses("the set of values is empty, and it always passes")
    return EXPECTATIONS[args.text("expectation")](args, target)


def _members(values: Any) -> list[Any]:
    return [each for each in values if each is not None] if isinstance(values, list) else [values]


@_expectation("expect_column_values_to_be_between")
def _between(args: Arguments, target: Target) -> Draft:
    """Require that every value lies in a range. Arguments that only concern Python objects are ignored."""
    args.ignore("allow_cross_type_comparisons", "output_strftime_format")
    if not args.flag("parse_strings_as_datetimes"):
        return EXPECTATIONS["expect_column_values_to_be_between"](args, target)
    column, limits = column_sql(column_of(args)), _times(args.range())
    return row_condition(target, limits.condition_on(f"CAST({column} AS TIMESTAMP)"))


@_expectation("expect_column_max_to_be_between", "expect_column_min_to_be_between")
def _extreme(args: Arguments, target: Target) -> Draft:
    kind = args.text("expectation")
    if not args.flag("parse_strings_as_datetimes"):
        args.put("expectation", kind)
        return EXPECTATIONS[kind](args, target)
    column, limits = column_sql(column_of(args)), _times(args.range())
    args.ignore("needs_values")
    function = "max" if "_max_" in kind else "min"
    good = f"coalesce({limits.condition_on('observed')}, FALSE)"
    return Draft(measured(f"{function}(CAST({column} AS TIMESTAMP))", good, target))


def _times(limits: Range) -> Range:
    """Return a range with its texts converted to times."""
    bounds = []
    for value in (limits.low, limits.high):
        if isinstance(value, str) and not is_time(value):
            raise NotCarriedOver(f"{str(value)[:40]!r} is not a valid date of the form 2020-01-31")
        bounds.append(datetime.fromisoformat(value.strip()) if isinstance(value, str) else value)
    return Range(bounds[0], bounds[1], limits.strict_low, limits.strict_high)


@_expectation("expect_column_values_to_match_strftime_format")
def _strftime(args: Arguments, target: Target) -> Draft:
    """Require that every text is a date or time of a format. Other expectations ignore the format."""
    written = args.given("strftime_format")
    if not isinstance(written, str):
        raise NotCarriedOver("'strftime_format' is missing")
    return row_condition(target, strptime_condition(column_sql(column_of(args)), written))


@_expectation("expect_column_quantile_values_to_be_between")
def _quantiles(args: Arguments, target: Target) -> Draft:
    """Require that each quantile lies in its range. A column without values fails."""
    column, ranges = column_of(args), args.required("quantile_ranges")
    args.ignore("allow_relative_error", "needs_values")
    quantiles, pairs = (ranges.get(key) if isinstance(ranges, dict) else None for key in ("quantiles", "value_ranges"))
    if not isinstance(quantiles, list) or not isinstance(pairs, list) or not quantiles or len(quantiles) != len(pairs):
        raise NotCarriedOver("quantile_ranges is not a list of quantiles with a range for each")
    checks, queries, plain = [], [], plain_name(column)
    limited = [(quantile, pair) for quantile, pair in zip(quantiles, pairs, strict=True) if pair != [None, None]]
    if not limited:
        raise AlwaysPasses("no quantile has a bound, and it always passes")
    for quantile, pair in limited:
        limits, share = _numbers(pair), number(quantile)
        if share is None:
            raise NotCarriedOver(f"the quantile {str(quantile)[:40]!r} is not a number")
        bounds, expression = limits.as_numbers, f"percentile({column_sql(column)}, {share})"
        checks += native("quantile_in_range", column=plain, quantile=share, **bounds) if plain and bounds else []
        queries.append(measured(expression, f"coalesce({limits.condition_on('observed')}, FALSE)", target))
    return Draft(" UNION ALL ".join(queries), checks if len(checks) == len(queries) else [])


def _numbers(pair: Any) -> Range:
    """Return the range of a pair of numbers. One of them may be null."""
    given = [each for each in pair if each is not None] if isinstance(pair, list) and len(pair) == 2 else []
    if not given or any(isinstance(each, str) or number(each) is None for each in given):
        raise NotCarriedOver(f"{str(pair)[:40]} is not a range of numbers")
    return Range(*pair)
