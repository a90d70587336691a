"""Expectations about times, and about values that lie far from the mean."""

from typing import Any

from importing.arguments import Arguments
from importing.drafts import Draft, Target, native
from importing.expectations.values import column_of, expectation
from importing.imported import NotCarriedOver
from importing.sql_text import bound_sql, column_sql, number, plain_name

PARTS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")


def date_part(text: Any) -> str:
    """Return a part of time in the singular and lower case.

    Raises:
        NotCarriedOver: it is not a part of time.
    """
    part = str(text).strip().lower().rstrip("s")
    if part not in PARTS:
        raise NotCarriedOver(f"{text!r} is not a part of time: {', '.join(PARTS)}")
    return part


def span(interval: Any, part: str) -> str:
    """Return a SQL interval.

    Raises:
        NotCarriedOver: its length is not a whole number.
    """
    length = number(interval)
    if not isinstance(length, int):
        raise NotCarriedOver(f"{interval!r} is not a whole number of {part}s")
    return f"INTERVAL '{length * 3}' MONTH" if part == "quarter" else f"INTERVAL '{length}' {part.upper()}"


def _cutoff(args: Arguments) -> str:
    part = date_part(args.required("datepart"))
    return f"current_timestamp() - {span(args.required('interval'), part)}"


@expectation("expect_row_values_to_have_recent_data")
def _recent(args: Arguments, target: Target) -> Draft:
    """Require a recent newest value. Values in the future are ignored: a wrong date of next year hides nothing."""
    column = column_sql(column_of(args))
    known = target.narrowed(f"CAST({column} AS TIMESTAMP) <= current_timestamp()")
    newest = f"SELECT max(CAST({column} AS TIMESTAMP)) AS newest FROM {known.rows} AS rows"
    return Draft(f"SELECT * FROM ({newest}) AS latest WHERE newest IS NULL OR newest < {_cutoff(args)}")


@expectation("expect_grouped_row_values_to_have_recent_data")
def _recent_groups(args: Arguments, target: Target) -> Draft:
    column = f"CAST({column_sql(column_of(args, 'timestamp_column', 'column', 'column_name'))} AS TIMESTAMP)"
    groups = [column_sql(str(each)) for each in args.listed("group_by")]
    known = target.narrowed(f"{column} <= current_timestamp()")
    listed, grouped = "".join(f"{each}, " for each in groups), f" GROUP BY {', '.join(groups)}" if groups else ""
    newest = f"SELECT {listed}max({column}) AS newest FROM {known.rows} AS rows{grouped}"
    args.ignore("column", "column_name")
    return Draft(f"SELECT * FROM ({newest}) AS latest WHERE newest < {_cutoff(args)}")


@expectation("expect_row_values_to_have_data_for_every_n_datepart")
def _every_part(args: Arguments, target: Target) -> Draft:
    column = column_of(args, "date_col", "column", "column_name")
    part = date_part(args.take("date_part", default="day"))
    args.ignore("column", "column_name")
    interval, excluded = args.take("interval"), args.take("exclusion_condition")
    first, last = args.take("test_start_date"), args.take("test_end_date")
    sql, plain, step = column_sql(column), plain_name(column), span(interval or 1, part)
    low = f"CAST('{first}' AS TIMESTAMP)" if first else f"min(date_trunc('{part.upper()}', {sql}))"
    high = f"CAST('{last}' AS TIMESTAMP) - {span(1, part)}" if last else f"max(date_trunc('{part.upper()}', {sql}))"
    wanted = (
        f"SELECT explode(sequence(CAST(low AS TIMESTAMP), CAST(high AS TIMESTAMP), {step})) AS date_{part} "
        f"FROM (SELECT {low} AS low, {high} AS high FROM {target.rows} AS rows) AS ends WHERE low <= high"
    )
    present = f"SELECT 1 FROM {target.rows} AS rows WHERE {sql} >= date_{part} AND {sql} < date_{part} + {step}"
    also = f" AND ({excluded})" if excluded else ""
    query = f"SELECT date_{part} FROM ({wanted}) AS wanted WHERE NOT EXISTS ({present}){also}"
    simple = plain and not any([interval, excluded, first, last]) and part in ("hour", "day", "week", "month", "year")
    return Draft(query, native("row_per_date_part", column=plain, part=part) if simple else [])


@expectation("expect_column_values_to_be_within_n_stdevs", "expect_column_value_z_scores_to_be_less_than")
def _within_deviations(args: Arguments, target: Target) -> Draft:
    """Require that the sums of groups lie near their mean; in Great Expectations, the values themselves."""
    column, groups = column_sql(column_of(args)), [column_sql(str(each)) for each in args.listed("group_by")]
    limit, by_value = args.take("sigma_threshold", "threshold", default=3), args.flag("by_value")
    both_sides = args.flag("double_sided", True)
    listed, grouped = "".join(f"{each}, " for each in groups), f" GROUP BY {', '.join(groups)}" if groups else ""
    aggregate = column if by_value else f"sum({column})"
    values = f"SELECT {listed}{aggregate} AS value FROM {target.rows} AS rows{'' if by_value else grouped}"
    scores = f"SELECT *, (value - avg(value) OVER ()) / nullif(stddev(value) OVER (), 0) AS sigma FROM ({values}) AS v"
    distance = "abs(sigma)" if both_sides else "sigma"
    operator = ">=" if by_value else ">"
    return Draft(f"SELECT * FROM ({scores}) AS scores WHERE {distance} {operator} {bound_sql(limit)}")


@expectation("expect_column_values_to_be_within_n_moving_stdevs")
def _within_moving_deviations(args: Arguments, target: Target) -> Draft:
    """Require that the sum of each of the last periods lies near the mean of the periods before it."""
    column, time = column_sql(column_of(args)), column_sql(args.text("date_column_name"))
    groups = [column_sql(str(each)) for each in args.listed("group_by")]
    part = date_part(args.take("period", default="day"))
    lookback, trend, tested = (
        _whole(args.take(name, default=default), name)
        for name, default in (("lookback_periods", 1), ("trend_periods", 7), ("test_periods", 14))
    )
    threshold = args.take("sigma_threshold", default=3)
    upper = args.take("sigma_threshold_upper", default=threshold)
    lower = args.take("sigma_threshold_lower", default=f"-{threshold}")
    differences, logs = args.flag("take_diffs", True), args.flag("take_logs", True)
    listed, by = "".join(f"{each}, " for each in groups), f"PARTITION BY {', '.join(groups)} " if groups else ""
    period = f"date_trunc('{part.upper()}', {time})"
    grouped = ", ".join([period, *groups])
    sums = f"SELECT {listed}{period} AS period, sum({column}) AS total FROM {target.rows} AS rows GROUP BY {grouped}"
    value, before = _metric("total", logs), _metric(f"lag(total, {lookback}) OVER ({by}ORDER BY period)", logs)
    values = f"SELECT *, {f'{value} - {before}' if differences else value} AS value FROM ({sums}) AS sums"
    window = f"OVER ({by}ORDER BY period ROWS BETWEEN {trend} PRECEDING AND 1 PRECEDING)"
    sigma = f"(value - avg(value) {window}) / nullif(stddev(value) {window}, 0)"
    scores = f"SELECT *, {sigma} AS sigma FROM ({values}) AS measured"
    today = f"date_trunc('{part.upper()}', current_timestamp())"
    return Draft(
        f"SELECT * FROM ({scores}) AS scores WHERE period >= {today} - {span(tested, part)} AND period < {today} "
        f"AND NOT (sigma >= {bound_sql(lower)} AND sigma <= {bound_sql(upper)})"
    )


def _metric(sql: str, logs: bool) -> str:
    return f"coalesce(ln(nullif({sql}, 0)), 0)" if logs else f"coalesce({sql}, 0)"


def _whole(value: Any, name: str) -> int:
    length = number(value)
    if not isinstance(length, int):
        raise NotCarriedOver(f"{name} is not a whole number")
    return length
