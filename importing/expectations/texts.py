"""Expectations about texts: their length, and patterns that they match."""

from importing.arguments import Arguments, Range
from importing.drafts import Draft, Target
from importing.expectations.values import column_of, expectation, on_column, row_condition
from importing.imported import NotCarriedOver
from importing.sql_text import column_sql, literal


@expectation("expect_column_value_lengths_to_be_between")
def _lengths(args: Arguments, target: Target) -> Draft:
    return length_range(column_of(args), args.range(), target)


@expectation("expect_column_value_lengths_to_equal")
def _length(args: Arguments, target: Target) -> Draft:
    column, value = column_of(args), args.required("value")
    return length_range(column, Range(value, value), target)


def length_range(column: str, limits: Range, target: Target) -> Draft:
    """Require that the length of every string lies in a range."""
    good = limits.condition_on(f"length({column_sql(column)})")
    bounds = limits.as_whole_numbers
    return on_column(column, target, good, "string_length", **bounds) if bounds else row_condition(target, good)


@expectation("expect_column_values_to_match_regex")
def _regex(args: Arguments, target: Target) -> Draft:
    column, pattern = column_of(args), _flags(args) + args.text("regex")
    good = f"{column_sql(column)} RLIKE {literal(pattern)}"
    return on_column(column, target, good, "match_regex", pattern=pattern)


@expectation("expect_column_values_to_not_match_regex")
def _not_regex(args: Arguments, target: Target) -> Draft:
    column, pattern = column_of(args), _flags(args) + args.text("regex")
    good = f"NOT ({column_sql(column)} RLIKE {literal(pattern)})"
    return on_column(column, target, good, "not_match_regex", pattern=pattern)


def _flags(args: Arguments) -> str:
    """Return the prefix of a pattern for flags of dbt_expectations: `i`, `m` and `s` mean the same in Java."""
    args.ignore("is_raw")
    flags = str(args.take("flags", default=""))
    if unknown := set(flags) - set("cims"):
        raise NotCarriedOver(f"the flag {min(unknown)!r} of a regular expression has no equivalent here")
    kept = "".join(flag for flag in flags if flag != "c")
    return f"(?{kept})" if kept else ""


@expectation(
    "expect_column_values_to_match_regex_list",
    "expect_column_values_to_match_like_pattern_list",
)
def _match_any(args: Arguments, target: Target) -> Draft:
    return _pattern_list(args, target, positive=True)


@expectation(
    "expect_column_values_to_not_match_regex_list",
    "expect_column_values_to_not_match_like_pattern_list",
)
def _match_none(args: Arguments, target: Target) -> Draft:
    return _pattern_list(args, target, positive=False)


def _pattern_list(args: Arguments, target: Target, *, positive: bool) -> Draft:
    """Require that each value matches, or does not match, any or all of the patterns.

    In Great Expectations, a value must match none of the patterns of a "not" list. In dbt_expectations, the default
    `match_on: any` requires that the value does not match at least one of them.
    """
    column, match_on = column_sql(column_of(args)), args.take("match_on", default="any")
    if match_on not in ("any", "all"):
        raise NotCarriedOver(f"match_on is {str(match_on)[:40]!r}, and must be any or all")
    flags = _flags(args)
    regexes = [flags + str(each) for each in args.listed("regex_list")]
    likes = [str(each) for each in args.listed("like_pattern_list", "pattern_list")]
    if not regexes and not likes:
        raise NotCarriedOver("the list of patterns is missing")
    verb = "RLIKE" if regexes else "LIKE"
    tests = [f"{'' if positive else 'NOT '}{column} {verb} {literal(each)}" for each in regexes or likes]
    tests = [f"({test})" for test in tests]
    return row_condition(target, (" AND " if match_on == "all" else " OR ").join(tests))


@expectation("expect_column_values_to_match_like_pattern")
def _like(args: Arguments, target: Target) -> Draft:
    column, pattern = column_of(args), args.text("like_pattern")
    return on_column(column, target, f"{column_sql(column)} LIKE {literal(pattern)}", "match_like", pattern=pattern)


@expectation("expect_column_values_to_not_match_like_pattern")
def _not_like(args: Arguments, target: Target) -> Draft:
    column, pattern = column_of(args), args.text("like_pattern")
    good = f"NOT ({column_sql(column)} LIKE {literal(pattern)})"
    return on_column(column, target, good, "not_match_like", pattern=pattern)
