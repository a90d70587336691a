"""Expectations about values, by the names that Great Expectations and dbt_expectations share."""

from collections.abc import Callable
from typing import Any

from importing.arguments import Arguments, Range
from importing.drafts import Draft, Target, bad_rows, native
from importing.imported import NotCarriedOver
from importing.sql_text import TextValue, bound_sql, column_sql, is_time, literal, literals, number, plain_name

Builder = Callable[[Arguments, Target], Draft]
EXPECTATIONS: dict[str, Builder] = {}
"""Draft builders of expectations, by name in lower case."""


def register(builders: dict[str, Builder], names: tuple[str, ...]) -> Callable[[Builder], Builder]:
    """Return a decorator that adds a builder to a table under names."""

    def add(builder: Builder) -> Builder:
        builders.update(dict.fromkeys(names, builder))
        return builder

    return add


def expectation(*names: str) -> Callable[[Builder], Builder]:
    """Register a draft builder of an expectation of both tools under names."""
    return register(EXPECTATIONS, names)


def column_of(args: Arguments, *names: str) -> str:
    """Return the column or expression that a test is about."""
    return args.text(*(names or ("column", "column_name")))


def row_condition(target: Target, good: str, kept: str | None = None) -> Draft:
    """Return the draft of a condition on each row, or on each row that another condition keeps.

    A row for which the condition is unknown passes.
    """
    rows = target.narrowed(kept)
    where = rows.where if kept else None
    check = native("expression_is_true", expression=f"coalesce({good}, TRUE)", where=where)
    return Draft(bad_rows(rows, f"NOT ({good})"), check)


def on_column(column: str, target: Target, good: str, name: str, **parameters: Any) -> Draft:
    """Return the draft of a condition on a column's values. `name` is the equivalent check, if the column is plain."""
    plain = plain_name(column)
    if plain is None:
        return row_condition(target, good)
    return Draft(bad_rows(target, f"NOT ({good})"), native(name, column=plain, **parameters))


@expectation("expect_column_values_to_not_be_null")
def _not_null(args: Arguments, target: Target) -> Draft:
    column = column_of(args)
    return on_column(column, target, f"{column_sql(column)} IS NOT NULL", "not_null")


@expectation("expect_column_values_to_be_null")
def _null(args: Arguments, target: Target) -> Draft:
    return row_condition(target, f"{column_sql(column_of(args))} IS NULL")


@expectation("expect_column_values_to_be_unique")
def unique(args: Arguments, target: Target) -> Draft:
    """Require that every value occurs once. Nulls may repeat."""
    column = column_of(args)
    sql, plain = column_sql(column), plain_name(column)
    query = (
        f"SELECT {sql} AS repeated, count(*) AS times FROM {target.rows} AS rows WHERE {sql} IS NOT NULL "
        f"GROUP BY {sql} HAVING count(*) > 1"
    )
    return Draft(query, native("unique", column=plain) if plain else [])


@expectation("expect_column_values_to_be_in_set", "expect_column_distinct_values_to_be_in_set")
def _in_set(args: Arguments, target: Target) -> Draft:
    column = column_of(args)
    return in_set(column, set_values(args), target)


def in_set(column: str, values: list[Any], target: Target) -> Draft:
    """Require that every value is in a list."""
    kept = [value for value in values if value is not None]
    if not kept:
        raise NotCarriedOver("the set of values is empty")
    return on_column(column, target, f"{column_sql(column)} IN ({literals(kept)})", "accepted_values", values=kept)


@expectation("expect_column_values_to_not_be_in_set")
def _not_in_set(args: Arguments, target: Target) -> Draft:
    column, values = column_of(args), set_values(args)
    return not_in_set(column, values, target)


def not_in_set(column: str, values: list[Any], target: Target) -> Draft:
    """Require that no value is in a list."""
    kept = [value for value in values if value is not None]
    if not kept:
        raise NotCarriedOver("the set of values is empty")
    good = f"{column_sql(column)} NOT IN ({literals(kept)})"
    return on_column(column, target, good, "not_accepted_values", values=kept)


def set_values(args: Arguments) -> list[Any]:
    """Return the values of a set. Without quotes, texts become the values that they spell."""
    values, quoted = args.listed("value_set", "values"), args.flag("quote_values", True)
    return list(values) if quoted else unquoted(values)


def unquoted(values: list[Any]) -> list[Any]:
    """Convert texts that dbt writes into SQL unchanged to numbers, truth values or texts.

    Raises:
        NotCarriedOver: a text is an expression.
    """
    kept: list[Any] = []
    for value in values:
        text = str(value).strip()
        if not isinstance(value, str):
            kept.append(value)
        elif (spelled := number(text)) is not None:
            kept.append(spelled)
        elif text.lower() in ("true", "false"):
            kept.append(text.lower() == "true")
        elif len(text) > 1 and text[0] == text[-1] == "'" and "'" not in text[1:-1]:
            kept.append(text[1:-1])
        else:
            raise NotCarriedOver(f"{text[:60]!r} is an expression where a value is needed")
    return kept


@expectation("expect_column_distinct_values_to_equal_set")
def _equal_set(args: Arguments, target: Target) -> Draft:
    column, values = column_of(args), distinct_values(args)
    good, extra = f"{column_sql(column)} IN ({literals(values)})", missing_members(column, values, target)
    query = f"SELECT DISTINCT {column_sql(column)} AS member FROM {target.rows} AS rows WHERE NOT ({good})"
    plain = plain_name(column)
    checks = native("accepted_values", column=plain, values=values, all_present=True) if plain else []
    return Draft(f"{query} UNION ALL {extra}", checks)


@expectation("expect_column_distinct_values_to_contain_set")
def _contain_set(args: Arguments, target: Target) -> Draft:
    return Draft(missing_members(column_of(args), distinct_values(args), target))


def distinct_values(args: Arguments) -> list[Any]:
    """Return the values of a set, each once.

    Raises:
        NotCarriedOver: the set is empty.
    """
    values = list(dict.fromkeys(set_values(args)))
    if not values:
        raise NotCarriedOver("the set of values is empty")
    return values


def missing_members(column: str, values: list[Any], target: Target) -> str:
    """Return the query of the values of a list that a column does not have."""
    rows = ", ".join(f"({literal(value)})" for value in values)
    present = f"SELECT 1 FROM {target.rows} AS rows WHERE {column_sql(column)} = members.member"
    return f"SELECT member FROM VALUES {rows} AS members(member) WHERE NOT EXISTS ({present})"


@expectation("expect_column_most_common_value_to_be_in_set")
def _most_common(args: Arguments, target: Target) -> Draft:
    column, values, top = column_sql(column_of(args)), set_values(args), number(args.take("top_n", default=1))
    args.ignore("data_type")
    if not isinstance(top, int):
        raise NotCarriedOver("top_n is not a whole number")
    counted = f"SELECT {column} AS member, count(*) AS times FROM {target.rows} AS rows GROUP BY {column}"
    ranked = f"SELECT member, times, dense_rank() OVER (ORDER BY times DESC) AS place FROM ({counted}) AS counted"
    return Draft(
        f"SELECT member, times FROM ({ranked}) AS ranked WHERE place = {top} AND member NOT IN ({literals(values)})"
    )


@expectation("expect_column_values_to_be_between")
def _between(args: Arguments, target: Target) -> Draft:
    column, limits = column_of(args), args.range()
    return value_range(column, limits, target)


def value_range(column: str, limits: Range, target: Target) -> Draft:
    """Require that every value lies in a range."""
    bounds = {"min": limits.low, "max": limits.high}
    given = {name: number(value) if number(value) is not None else value for name, value in bounds.items()}
    given = {name: value for name, value in given.items() if value is not None}
    strict = {limits.strict_low if "min" in given else None, limits.strict_high if "max" in given else None} - {None}
    good = limits.condition_on(column_sql(column))
    is_text = any(isinstance(value, str) and not is_time(value) for value in given.values())
    if len(strict) > 1 or is_text:
        return row_condition(target, good)
    if any(isinstance(value, str) for value in given.values()):
        good = _dated(limits).condition_on(column_sql(column))
    given = {name: str(value) if isinstance(value, TextValue) else value for name, value in given.items()}
    inclusive = False if strict == {True} else None
    return on_column(column, target, good, "accepted_range", **given, inclusive=inclusive)


def _dated(limits: Range) -> Range:
    low, high = (
        f"TIMESTAMP '{each.strip()}'"
        if isinstance(each, str) and is_time(each) and not isinstance(each, TextValue)
        else each
        for each in (limits.low, limits.high)
    )
    return Range(low, high, limits.strict_low, limits.strict_high)


@expectation("expect_column_values_to_have_consistent_casing")
def _casing(args: Arguments, target: Target) -> Draft:
    column = column_sql(column_of(args))
    args.ignore("display_inconsistent_columns")
    return Draft(
        f"SELECT lower({column}) AS value, count(DISTINCT {column}) AS spellings FROM {target.rows} AS rows "
        f"GROUP BY lower({column}) HAVING count(DISTINCT {column}) > 1"
    )


@expectation("expect_column_values_to_be_json_parseable")
def _json(args: Arguments, target: Target) -> Draft:
    column = column_sql(column_of(args))
    return row_condition(target, f"{column} IS NULL OR try_parse_json({column}) IS NOT NULL")


@expectation("expect_column_values_to_be_dateutil_parseable")
def _parseable(args: Arguments, target: Target) -> Draft:
    raise NotCarriedOver("what Python's dateutil can read has no equivalent in SQL")


@expectation("expect_column_values_to_be_increasing")
def _increasing(args: Arguments, target: Target) -> Draft:
    return _sequence(args, target, rising=True)


@expectation("expect_column_values_to_be_decreasing")
def _decreasing(args: Arguments, target: Target) -> Draft:
    return _sequence(args, target, rising=False)


def _sequence(args: Arguments, target: Target, *, rising: bool) -> Draft:
    """Require that each value is above, or below, the one before it, in the order of another column."""
    column, strictly = column_sql(column_of(args)), args.flag("strictly", True)
    order = args.take("sort_column")
    if order is None:
        raise NotCarriedOver("the rows of a table have no order: there is no `sort_column`")
    groups, step = args.listed("group_by"), args.take("step")
    by = f"PARTITION BY {', '.join(column_sql(str(each)) for each in groups)} " if groups else ""
    lag = f"lag({column}) OVER ({by}ORDER BY {column_sql(str(order))})"
    good = f"value {'>' if rising else '<'}{'' if strictly else '='} previous"
    if step is not None:
        good += f" AND {'value - previous' if rising else 'previous - value'} = {bound_sql(step)}"
    steps = f"SELECT {column} AS value, {lag} AS previous FROM {target.rows} AS rows"
    return Draft(f"SELECT * FROM ({steps}) AS steps WHERE previous IS NOT NULL AND NOT ({good})")
