"""Expectations about aggregates, several columns, columns of a table and other tables."""

from typing import Any

from importing.arguments import Arguments, Range
from importing.drafts import Draft, Target, native
from importing.expectations.rows import without_missing
from importing.expectations.values import column_of, expectation
from importing.imported import NotCarriedOver
from importing.sql_text import bound_sql, column_sql, number, plain_name, quoted_name


def measured(expression: str, good: str, target: Target, groups: list[Any] | None = None) -> str:
    """Return the query of the groups, or of all rows as one group, whose `observed` breaks a condition."""
    columns = [column_sql(str(each)) for each in groups or []]
    grouped = f" GROUP BY {', '.join(columns)}" if columns else ""
    listed = "".join(f"{each}, " for each in columns)
    inner = f"SELECT {listed}{expression} AS observed FROM {target.rows} AS rows{grouped}"
    return f"SELECT * FROM ({inner}) AS measured WHERE NOT ({good})"


def aggregate_range(expression: str, limits: Range, target: Target, groups: list[Any], checks: list[Any]) -> Draft:
    """Require that an aggregate of all rows or each group lies in a range. `checks` say the same without groups."""
    return Draft(measured(expression, limits.condition_on("observed"), target, groups), [] if groups else checks)


def _aggregate(args: Arguments, target: Target, function: str, name: str, **parameters: Any) -> Draft:
    column, limits, groups = column_of(args), args.range(), args.listed("group_by")
    plain, bounds, expression = plain_name(column), limits.as_numbers, function.format(column_sql(column))
    if not args.flag("needs_values"):  # without a value, dbt_expectations passes and the check fails
        return aggregate_range(expression, limits, target, groups, [])
    checks = native(name, column=plain, **bounds, **parameters) if plain and bounds else []
    return Draft(measured(expression, f"coalesce({limits.condition_on('observed')}, FALSE)", target, groups), checks)


@expectation("expect_column_max_to_be_between")
def _max(args: Arguments, target: Target) -> Draft:
    return _aggregate(args, target, "max({})", "max_in_range")


@expectation("expect_column_min_to_be_between")
def _min(args: Arguments, target: Target) -> Draft:
    return _aggregate(args, target, "min({})", "min_in_range")


@expectation("expect_column_mean_to_be_between")
def _mean(args: Arguments, target: Target) -> Draft:
    return _aggregate(args, target, "avg({})", "mean_in_range")


@expectation("expect_column_sum_to_be_between")
def _sum(args: Arguments, target: Target) -> Draft:
    return _aggregate(args, target, "sum({})", "sum_in_range")


@expectation("expect_column_stdev_to_be_between")
def _stddev(args: Arguments, target: Target) -> Draft:
    return _aggregate(args, target, "stddev({})", "stddev_in_range")


@expectation("expect_column_median_to_be_between")
def _median(args: Arguments, target: Target) -> Draft:
    return _aggregate(args, target, "percentile({}, 0.5)", "quantile_in_range", quantile=0.5)


@expectation("expect_column_quantile_values_to_be_between")
def _quantile(args: Arguments, target: Target) -> Draft:
    args.ignore("allow_relative_error")
    quantile = number(args.required("quantile"))
    if quantile is None or not 0 <= quantile <= 1:
        raise NotCarriedOver("quantile is not a number from 0 to 1")
    return _aggregate(args, target, f"percentile({{}}, {quantile})", "quantile_in_range", quantile=quantile)


@expectation("expect_column_unique_value_count_to_be_between")
def _distinct_count(args: Arguments, target: Target) -> Draft:
    column, limits, groups = column_of(args), args.range(), args.listed("group_by")
    return distinct_count(column, limits, target, groups)


def distinct_count(column: str, limits: Range, target: Target, groups: list[Any]) -> Draft:
    """Require that the number of distinct values, without nulls, lies in a range."""
    plain, bounds = plain_name(column), limits.as_whole_numbers
    checks = native("distinct_count", column=plain, **bounds) if plain and bounds else []
    return aggregate_range(f"count(DISTINCT {column_sql(column)})", limits, target, groups, checks)


@expectation(
    "expect_column_distinct_count_to_equal",
    "expect_column_distinct_count_to_be_greater_than",
    "expect_column_distinct_count_to_be_less_than",
)
def _distinct_count_to(args: Arguments, target: Target) -> Draft:
    column, value, groups = column_of(args), args.required("value"), args.listed("group_by")
    kind = str(args.required("expectation"))
    equal, less = Range(value, value), Range(None, value, strict_high=True)
    limits = equal if kind.endswith("equal") else less if kind.endswith("less_than") else Range(value, None, True)
    return distinct_count(column, limits, target, groups)


@expectation("expect_column_proportion_of_unique_values_to_be_between")
def _distinct_ratio(args: Arguments, target: Target) -> Draft:
    column, limits, groups = column_of(args), args.range(), args.listed("group_by")
    sql, plain, bounds = column_sql(column), plain_name(column), limits.as_numbers
    checks = native("distinct_ratio", column=plain, **bounds) if plain and bounds else []
    ratio = f"CASE WHEN count({sql}) = 0 THEN 1 ELSE count(DISTINCT {sql}) / count({sql}) END"
    return aggregate_range(ratio, limits, target, groups, checks)


@expectation("expect_column_proportion_of_non_null_values_to_be_between")
def _not_null_share(args: Arguments, target: Target) -> Draft:
    column, limits, groups = column_of(args), args.range(), args.listed("group_by")
    sql, plain, bounds = column_sql(column), plain_name(column), limits.as_numbers
    checks = native("not_null_proportion", column=plain, **bounds) if plain and bounds else []
    return aggregate_range(f"count({sql}) / count(*)", limits, target, groups, checks)


@expectation("expect_table_row_count_to_be_between")
def _row_count(args: Arguments, target: Target) -> Draft:
    limits, groups = args.range(), args.listed("group_by")
    return row_count(limits, target, groups)


def row_count(limits: Range, target: Target, groups: list[Any] | None = None) -> Draft:
    """Require that the number of rows lies in a range."""
    bounds = limits.as_whole_numbers
    checks = native("row_count", **bounds) if bounds else []
    return aggregate_range("count(*)", limits, target, groups or [], checks)


@expectation("expect_table_row_count_to_equal")
def _row_count_equal(args: Arguments, target: Target) -> Draft:
    value, groups = args.required("value"), args.listed("group_by")
    return row_count(Range(value, value), target, groups)


@expectation("expect_table_row_count_to_equal_other_table", "expect_table_row_count_to_equal_other_table_times_factor")
def _row_count_other(args: Arguments, target: Target) -> Draft:
    factor = number(args.take("factor", default=1))
    if factor is None:
        raise NotCarriedOver("factor is not a number")
    groups = [args.listed("group_by"), args.listed("compare_group_by")]
    theirs = _other(args, args.text("compare_model", "other_table_name"), target)
    if any(groups) or target.where or theirs.where:
        return equal_expressions(target, theirs, ("count(*)", f"count(*) * {factor}"), groups, "> 0")
    query = (
        f"SELECT * FROM (SELECT (SELECT count(*) FROM {target.rows}) AS observed, "
        f"(SELECT count(*) FROM {theirs.rows}) * {factor} AS expected) AS counted WHERE observed <> expected"
    )
    ratio = None if factor == 1 else factor
    return Draft(query, native("equal_row_count", to=theirs.table, min_ratio=ratio, max_ratio=ratio))


@expectation("equal_expression", "expect_table_aggregation_to_equal_other_table")
def _equal_expression(args: Arguments, target: Target) -> Draft:
    own = args.text("expression")
    theirs = str(args.take("compare_expression", default=own))
    other = _other(args, args.take("compare_model"), target)
    groups = [args.listed("group_by"), args.listed("compare_group_by")]
    share, tolerance = args.take("tolerance_percent"), args.take("tolerance", default=0)
    difference = f"/ nullif(observed * 1.0, 0) > {bound_sql(share)}" if share else f"> {bound_sql(tolerance)}"
    return equal_expressions(target, other, (own, theirs), groups, difference)


@expectation("expect_column_distinct_count_to_equal_other_table")
def _distinct_count_other(args: Arguments, target: Target) -> Draft:
    column = column_of(args)
    other = str(args.take("compare_column_name", default=column))
    theirs = _other(args, args.take("compare_model"), target)
    counts = (f"count(DISTINCT {column_sql(column)})", f"count(DISTINCT {column_sql(other)})")
    return equal_expressions(target, theirs, counts, [[], []], "> 0")


def _other(args: Arguments, table: Any, target: Target) -> Target:
    """Return the rows that a table is compared with: rows of another table, or other rows of the same table.

    Without `compare_row_condition`, the `row_condition` of the test applies to them. The `where` of dbt's settings
    applies to the tested table alone.
    """
    own, given = args.take("compare_row_condition"), args.given("row_condition")
    if table is not None:
        return Target(str(table), own or given)
    if own is None:
        return target
    if target.where != given:
        raise NotCarriedOver(
            "a `where` together with compare_row_condition and without compare_model has no equivalent here"
        )
    return Target(target.table, own)


def equal_expressions(
    target: Target, other: Target, expressions: tuple[str, str], groups: list[list[Any]], difference: str
) -> Draft:
    """Require that an aggregate of two tables is equal, for all rows or for each group.

    Args:
        difference: the SQL comparison that the absolute difference must not meet.
    """
    sides = []
    own, theirs = groups[0], groups[1] or groups[0]
    for table, expression, columns in ((target, expressions[0], own), (other, expressions[1], theirs)):
        named = "".join(f"{column_sql(str(each))} AS group_{n}, " for n, each in enumerate(columns, 1))
        grouped = f" GROUP BY {', '.join(column_sql(str(each)) for each in columns)}" if columns else ""
        sides.append(f"SELECT {named}{expression} AS value FROM {table.rows} AS rows{grouped}")
    joined = " AND ".join(f"own.group_{n} = theirs.group_{n}" for n in range(1, len(own) + 1))
    join = f"FULL OUTER JOIN ({sides[1]}) AS theirs ON {joined}" if own else f"CROSS JOIN ({sides[1]}) AS theirs"
    shown = "".join(f"coalesce(own.group_{n}, theirs.group_{n}) AS group_{n}, " for n in range(1, len(own) + 1))
    pairs = f"SELECT {shown}own.value AS observed, theirs.value AS expected FROM ({sides[0]}) AS own {join}"
    return Draft(
        f"SELECT * FROM ({pairs}) AS pairs WHERE abs(coalesce(observed, 0) - coalesce(expected, 0)) {difference}"
    )


@expectation("expect_compound_columns_to_be_unique")
def _compound(args: Arguments, target: Target) -> Draft:
    columns, ignored = args.listed("column_list"), args.take("ignore_row_if", default="all_values_are_missing")
    args.ignore("quote_columns")
    return unique_columns([str(each) for each in columns], target, str(ignored))


def unique_columns(columns: list[str], target: Target, ignored: str = "never") -> Draft:
    """Require that every combination of values occurs once. `ignored` states which rows with nulls are left out."""
    listed, joined = ", ".join(map(column_sql, columns)), without_missing(columns, ignored)
    chosen = target.narrowed(joined)
    query = f"SELECT {listed}, count(*) AS times FROM {chosen.rows} AS rows GROUP BY {listed} HAVING count(*) > 1"
    names = [plain_name(each) for each in columns]
    checks = [] if None in names or joined or len(names) < 2 else native("unique_combination_of_columns", columns=names)
    if checks or None in names or not joined or len(names) < 2 or target.where:
        return Draft(query, checks)
    where = chosen.where
    return Draft(query, native("unique_combination_of_columns", columns=names, where=where))


@expectation("expect_multicolumn_sum_to_equal")
def _multicolumn_sum(args: Arguments, target: Target) -> Draft:
    columns, total, groups = args.listed("column_list"), args.required("sum_total"), args.listed("group_by")
    added = " + ".join(f"sum({column_sql(str(each))})" for each in columns)
    goal = str(total) if number(total) is not None else f"sum({column_sql(str(total))})"
    return Draft(measured(f"{added} - {goal}", "observed = 0", target, groups))


def columns_by_name(target: Target, other: Target, excluded: list[str]) -> list[str]:
    """Return the queries of two tables, with the columns of the second in the order of the first.

    A natural join returns shared columns first, in the order of its left side. Here the left side is the table
    without rows, so a right outer join returns the other table's rows with the columns in the table's order.
    Tables with other columns cannot be compared, and cause an error.
    """
    listed = f"* EXCEPT ({', '.join(excluded)})" if excluded else "*"
    own = f"SELECT {listed} FROM {target.rows} AS rows"
    names = f"SELECT {listed} FROM {quoted_name(target.table)} AS shape WHERE FALSE"
    rows = f"SELECT {listed} FROM {other.rows} AS rows"
    return [own, f"SELECT * FROM ({names}) AS names NATURAL RIGHT OUTER JOIN ({rows}) AS others"]
