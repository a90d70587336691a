"""Convert the generic tests of dbt, dbt_utils and other packages to drafts of checks."""

from collections.abc import Callable

from importing.arguments import Arguments, Range
from importing.drafts import Draft, Target, bad_rows, native
from importing.expectations.sets import SETS, SHARES
from importing.expectations.tables import columns_by_name, equal_expressions, measured, unique_columns
from importing.expectations.times import date_part, span
from importing.expectations.values import (
    Builder,
    column_of,
    in_set,
    not_in_set,
    register,
    row_condition,
    unique,
    unquoted,
    value_range,
)
from importing.expectations.vocabulary import EXPECTATIONS
from importing.imported import AlwaysPasses, NotCarriedOver
from importing.sql_text import column_sql, number, plain_name

DBT_TESTS: dict[str, Builder] = {**SETS, **SHARES}
"""Draft builders of dbt tests, by name without the package."""
PACKAGES = ("dbt", "dbt_utils", "dbt_expectations", "dbt_constraints", "dbt_utils_plus", "elementary")
"""Packages whose tests are known."""


def dbt_test(*names: str) -> Callable[[Builder], Builder]:
    """Register a draft builder under names."""
    return register(DBT_TESTS, names)


def known_test(name: str) -> Builder | None:
    """Return the draft builder of a test by its full name, such as `dbt_utils.recency`, or None if it is unknown."""
    package, _, plain = name.strip().lower().rpartition(".")
    if package and package not in PACKAGES and not plain.startswith("expect_"):
        return None  # only an `expect_…` test may have the package name of a project
    return DBT_TESTS.get(plain) or EXPECTATIONS.get(plain)


@dbt_test("not_null", "not_null_where")
def _not_null(args: Arguments, target: Target) -> Draft:
    return EXPECTATIONS["expect_column_values_to_not_be_null"](args, target)


@dbt_test("unique", "unique_where", "unique_key_where")
def _unique(args: Arguments, target: Target) -> Draft:
    return unique(args, target)


@dbt_test("accepted_values", "accepted_values_where")
def _accepted_values(args: Arguments, target: Target) -> Draft:
    column, values = column_of(args), args.listed("values")
    return in_set(column, values if args.flag("quote", True) else unquoted(values), target)


@dbt_test("not_accepted_values")
def _not_accepted_values(args: Arguments, target: Target) -> Draft:
    column, values = column_of(args), args.listed("values")
    return not_in_set(column, values if args.flag("quote", True) else unquoted(values), target)


@dbt_test("relationships", "relationships_where")
def _relationships(args: Arguments, target: Target) -> Draft:
    column, other, field = column_of(args), args.text("to"), args.text("field")
    own, theirs = args.take("from_condition"), args.take("to_condition")
    return relationship(column, other, field, target.narrowed(own), theirs)


def relationship(column: str, other: str, field: str, target: Target, condition: str | None = None) -> Draft:
    """Require that every value occurs in a column of another table, or in those of its rows that meet a condition."""
    mine, plain = column_sql(column), plain_name(column)
    keys = f"SELECT {column_sql(field)} AS key FROM {Target(other, condition).rows} AS theirs"
    query = (
        f"SELECT rows.* FROM {target.rows} AS rows LEFT ANTI JOIN ({keys}) AS keys ON {mine} = keys.key "
        f"WHERE {mine} IS NOT NULL"
    )
    if condition or plain is None or plain_name(field) is None:
        return Draft(query)
    return Draft(query, native("relationships", column=plain, to=other, field=plain_name(field), where=target.where))


@dbt_test("accepted_range")
def _accepted_range(args: Arguments, target: Target) -> Draft:
    column, strict = column_of(args), not args.flag("inclusive", True)
    low, high = args.take("min_value"), args.take("max_value")
    if low is None and high is None:
        raise AlwaysPasses("it has neither min_value nor max_value, and always passes")
    return value_range(column, Range(low, high, strict, strict), target)


@dbt_test("expression_is_true", "expression_true")
def _expression_is_true(args: Arguments, target: Target) -> Draft:
    """Require a condition. It begins with the column if the test belongs to one. An unknown result passes."""
    expression = args.text("expression")
    column = args.take("column", "column_name")
    args.ignore("test_condition")
    groups = args.listed("group_by_columns")
    good = f"{column_sql(str(column))} {expression}" if column else expression
    condition = args.take("condition")
    target = target.narrowed(condition)
    if groups or condition:
        return Draft(measured(f"({good})", "observed", target, groups) if groups else bad_rows(target, f"NOT ({good})"))
    return row_condition(target, f"({good})")


@dbt_test("at_least_one")
def _at_least_one(args: Arguments, target: Target) -> Draft:
    column, groups = column_of(args), args.listed("group_by_columns")
    plain = plain_name(column)
    checks = native("at_least_one", column=plain) if plain and not groups else []
    return Draft(measured(f"count({column_sql(column)})", "observed > 0", target, groups), checks)


@dbt_test("not_constant")
def _not_constant(args: Arguments, target: Target) -> Draft:
    """Require none, or several distinct values. Unlike in the check `not_constant`, a column without values passes."""
    column, groups = column_of(args), args.listed("group_by_columns")
    return Draft(measured(f"count(DISTINCT {column_sql(column)})", "observed <> 1", target, groups))


@dbt_test("not_null_proportion")
def _not_null_proportion(args: Arguments, target: Target) -> Draft:
    column, groups = column_of(args), args.listed("group_by_columns")
    limits = Range(args.take("at_least", default=0), args.take("at_most", default=1))
    plain, bounds, sql = plain_name(column), limits.as_numbers, column_sql(column)
    checks = native("not_null_proportion", column=plain, **bounds) if plain and bounds and not groups else []
    return Draft(measured(f"count({sql}) / count(*)", limits.condition_on("observed"), target, groups), checks)


@dbt_test("not_empty_string")
def _not_empty_string(args: Arguments, target: Target) -> Draft:
    column, trims = column_of(args), args.flag("trim_whitespace", True)
    sql, plain = column_sql(column), plain_name(column)
    if trims or plain is None:
        return row_condition(target, f"{f'trim({sql})' if trims else sql} <> ''")
    return Draft(bad_rows(target, f"{sql} = ''"), native("not_empty_string", column=plain))


@dbt_test("unique_combination_of_columns", "unique_combination", "unique_key", "primary_key")
def _unique_combination(args: Arguments, target: Target) -> Draft:
    """Require that a combination occurs once. A primary key must also have no null."""
    given = args.take("combination_of_columns", "column_names", "column_list", "columns")
    columns = [str(each) for each in (given if isinstance(given, list) else [given or column_of(args)])]
    args.ignore("quote_columns", "column", "column_name", "always_create_constraint", "constraint_name")
    draft = unique_columns(columns, target)
    if args.take("kind") != "primary_key":
        return draft
    nulls = " OR ".join(f"{column_sql(each)} IS NULL" for each in columns)
    names = [plain_name(each) for each in columns]
    alone = native("unique", column=names[0]) if len(names) == 1 else list(draft.native)
    query = f"SELECT 1 AS bad FROM ({draft.query}) AS r UNION ALL SELECT 1 FROM {target.rows} AS rows WHERE {nulls}"
    not_null = [check for name in names for check in native("not_null", column=name)]
    return Draft(query, [] if None in names else [*not_null, *alone])


@dbt_test("foreign_key")
def _foreign_key(args: Arguments, target: Target) -> Draft:
    columns, fields = args.listed("fk_column_name", "fk_column_names"), args.listed("pk_column_name", "pk_column_names")
    columns = columns or [column_of(args)]
    fields = fields or args.listed("field")
    args.ignore("column", "column_name", "always_create_constraint", "constraint_name")
    if len(columns) != 1 or len(fields) != 1:
        raise NotCarriedOver("a foreign key of several columns has no equivalent here")
    return relationship(str(columns[0]), args.text("pk_table_name", "to"), str(fields[0]), target)


@dbt_test("equal_rowcount")
def _equal_rowcount(args: Arguments, target: Target) -> Draft:
    other, groups = args.text("compare_model"), args.listed("group_by_columns")
    draft = equal_expressions(target, Target(other), ("count(*)", "count(*)"), [groups, groups], "> 0")
    return draft if groups or target.where else Draft(draft.query, native("equal_row_count", to=other))


@dbt_test("fewer_rows_than")
def _fewer_rows_than(args: Arguments, target: Target) -> Draft:
    other, groups = Target(args.text("compare_model")), args.listed("group_by_columns")
    names = [column_sql(str(each)) for each in groups]
    counts = []
    for side in (target, other):
        listed = "".join(f"{each}, " for each in names)
        grouped = f" GROUP BY {', '.join(names)}" if names else ""
        counts.append(f"SELECT {listed}count(*) AS number FROM {side.rows} AS rows{grouped}")
    joined = " AND ".join(f"own.{each} = theirs.{each}" for each in names)
    join = f"FULL OUTER JOIN ({counts[1]}) AS theirs ON {joined}" if names else f"CROSS JOIN ({counts[1]}) AS theirs"
    return Draft(
        f"SELECT own.number AS rows, theirs.number AS other_rows FROM ({counts[0]}) AS own {join} "
        "WHERE coalesce(own.number, 0) >= coalesce(theirs.number, 0)"
    )


@dbt_test("cardinality_equality")
def _cardinality_equality(args: Arguments, target: Target) -> Draft:
    """Require that each value occurs as often as in a column of the other table."""
    column, field, other = column_of(args), args.text("field"), Target(args.text("to"))
    own, theirs = (
        f"SELECT {column_sql(name)} AS value, count(*) AS times FROM {side.rows} AS rows GROUP BY {column_sql(name)}"
        for name, side in ((column, target), (field, other))
    )
    return Draft(f"({own} EXCEPT {theirs}) UNION ALL ({theirs} EXCEPT {own})")


@dbt_test("equality")
def _equality(args: Arguments, target: Target) -> Draft:
    """Require that two tables have the same rows, in all columns, in some, or in all but some."""
    other, precision = Target(args.text("compare_model")), args.take("precision")
    columns, excluded = args.listed("compare_columns"), args.listed("exclude_columns")
    names = [column_sql(str(each)) for each in columns]
    if columns and excluded:
        raise NotCarriedOver("dbt refuses compare_columns together with exclude_columns")
    if precision is not None and not names:
        raise NotCarriedOver("`precision` without `compare_columns` needs the columns of the table: list them")
    if precision is not None:
        names = [
            f"coalesce(CAST(round(try_cast({name} AS DOUBLE), {int(precision)}) AS STRING), CAST({name} AS STRING))"
            for name in names
        ]
    if names:
        sides = [f"SELECT {', '.join(names)} FROM {side.rows} AS rows" for side in (target, other)]
    else:
        sides = columns_by_name(target, other, [column_sql(str(each)) for each in excluded])
    own, theirs = sides
    return Draft(f"({own} EXCEPT {theirs}) UNION ALL ({theirs} EXCEPT {own})")


@dbt_test("recency")
def _recency(args: Arguments, target: Target) -> Draft:
    column, part, interval = args.text("field"), date_part(args.required("datepart")), args.required("interval")
    groups, whole_days = args.listed("group_by_columns"), args.flag("ignore_time_component")
    args.ignore("column", "column_name")
    sql, plain = column_sql(column), plain_name(column)
    newest, now = f"max(CAST({sql} AS TIMESTAMP))", "current_timestamp()"
    if whole_days:
        newest, now = f"CAST(max({sql}) AS DATE)", "current_date()"
    limit = f"{now} - {span(interval, part)}"
    is_new = f"observed >= {f'CAST({limit} AS DATE)' if whole_days else limit}"
    query = measured(newest, f"coalesce({is_new}, FALSE)", target, groups)  # without a time, it is not recent
    simple = plain and not groups and not whole_days and part not in ("month", "quarter", "year")
    length = number(interval)
    checks = native("freshness", column=plain, datepart=part, interval=length) if simple and length else []
    return Draft(query, checks)


@dbt_test("sequential_values")
def _sequential_values(args: Arguments, target: Target) -> Draft:
    column, interval = column_of(args), number(args.take("interval", default=1))
    if interval is None:
        raise NotCarriedOver("interval is not a number")
    part, groups = args.take("datepart"), [str(each) for each in args.listed("group_by_columns")]
    plain = plain_name(column)
    if plain is None:
        raise NotCarriedOver(f"{column!r} is an expression, and sequential_values needs a column")
    return Draft(
        native=native("sequential_values", column=plain, interval=interval, datepart=part, group_by=groups or None)
    )


@dbt_test("mutually_exclusive_ranges")
def _mutually_exclusive_ranges(args: Arguments, target: Target) -> Draft:
    """Require that the ranges of each partition do not overlap. Gaps between them are allowed, refused or required."""
    low, high = column_sql(args.text("lower_bound_column")), column_sql(args.text("upper_bound_column"))
    partition, gaps = args.listed("partition_by"), str(args.take("gaps", default="allowed"))
    zero_length = args.flag("zero_length_range_allowed")
    operator = {"not_allowed": "=", "allowed": "<=", "required": "<"}.get(gaps)
    if operator is None:
        raise NotCarriedOver(f"gaps is {gaps!r}, and must be allowed, not_allowed or required")
    by = f"PARTITION BY {', '.join(column_sql(str(each)) for each in partition)} " if partition else ""
    order = f"OVER ({by}ORDER BY {low}, {high})"
    listed = f"SELECT {low} AS low, {high} AS high, lead({low}) {order} AS next_low FROM {target.rows} AS rows"
    good = f"coalesce(low {'<=' if zero_length else '<'} high, FALSE)"
    apart = f"(next_low IS NULL OR coalesce(high {operator} next_low, FALSE))"
    return Draft(f"SELECT * FROM ({listed}) AS ranges WHERE NOT ({good} AND {apart})")


@dbt_test("expression_between")
def _expression_between(args: Arguments, target: Target) -> Draft:
    expression, limits = args.text("expression"), args.range()
    return Draft(
        measured(expression, limits.condition_on("observed"), target, args.listed("group_by_columns", "group_by"))
    )


@dbt_test("schema_changes")
def _schema_changes(args: Arguments, target: Target) -> Draft:
    """Require the columns that were published last."""
    args.ignore("column", "column_name")
    return Draft(native=native("schema_drift"))
