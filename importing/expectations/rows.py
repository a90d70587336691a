"""Expectations about several columns of a row."""

from importing.arguments import Arguments
from importing.drafts import Draft, Target, native
from importing.expectations.values import expectation, row_condition, unquoted
from importing.imported import NotCarriedOver
from importing.sql_text import column_sql, literal, plain_name

_MISSING = {
    "both_values_are_missing": " AND ",
    "either_value_is_missing": " OR ",
    "neither": "",
    "all_values_are_missing": " AND ",
    "any_value_is_missing": " OR ",
    "never": "",
}
"""Operators that join the `IS NULL` tests of ignored rows, by the value of `ignore_row_if`; empty ignores no row."""


def without_missing(columns: list[str], ignored: str) -> str | None:
    """Return the condition of the rows that `ignore_row_if` keeps, or None if it keeps all.

    Raises:
        NotCarriedOver: its value is not known.
    """
    if ignored not in _MISSING:
        raise NotCarriedOver(f"{ignored[:40]!r} is not a known value of ignore_row_if")
    joined = _MISSING[ignored].join(f"{column_sql(each)} IS NULL" for each in columns)
    return f"NOT ({joined})" if _MISSING[ignored] else None


@expectation("expect_column_pair_values_to_be_equal")
def _pair_equal(args: Arguments, target: Target) -> Draft:
    return compared(args.text("column_a"), args.text("column_b"), "=", target)


@expectation("expect_column_pair_values_a_to_be_greater_than_b")
def _pair_greater(args: Arguments, target: Target) -> Draft:
    operator = ">=" if args.flag("or_equal") else ">"
    return compared(args.text("column_a"), args.text("column_b"), operator, target)


def compared(left: str, right: str, operator: str, target: Target) -> Draft:
    """Require a comparison of two columns in each row. A row with a null in one of them passes."""
    draft = row_condition(target, f"{column_sql(left)} {operator} {column_sql(right)}")
    names = plain_name(left), plain_name(right)
    if None in names or left == right:
        return draft
    return Draft(draft.query, native("compare_columns", left=names[0], operator=operator, right=names[1]))


@expectation("expect_column_pair_values_to_be_in_set")
def _pair_in_set(args: Arguments, target: Target) -> Draft:
    columns = args.text("column_a"), args.text("column_b")
    pairs = [unquoted(pair) for pair in pairs_of(args)]
    return row_condition(target, one_of_pairs(columns, pairs, "="))


def pairs_of(args: Arguments) -> list[list[object]]:
    """Return the pairs of values that rows may have.

    Raises:
        NotCarriedOver: the list is empty, or an item is not a pair.
    """
    pairs = args.listed("value_pairs_set")
    if not pairs or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise NotCarriedOver("value_pairs_set is not a list of pairs")
    return pairs


def one_of_pairs(columns: tuple[str, str], pairs: list[list[object]], operator: str) -> str:
    """Return the condition that two columns have the values of a pair. The operator `<=>` also compares nulls."""
    left, right = map(column_sql, columns)
    return " OR ".join(
        f"({left} {operator} {literal(one)} AND {right} {operator} {literal(two)})" for one, two in pairs
    )


@expectation("expect_select_column_values_to_be_unique_within_record")
def _unique_within(args: Arguments, target: Target) -> Draft:
    """Require that the values of a row differ. A row with a null fails, unless it is left out."""
    columns, kept = columns_of(args)
    pairs = [f"{one} <> {two}" for index, one in enumerate(columns) for two in columns[index + 1 :]]
    return row_condition(target, f"coalesce({' AND '.join(pairs)}, FALSE)", kept)


def columns_of(args: Arguments) -> tuple[list[str], str | None]:
    """Return a list of columns as SQL, and the condition of the rows that `ignore_row_if` keeps."""
    names = [str(each) for each in args.listed("column_list")]
    args.ignore("quote_columns")
    if len(names) < 2:
        raise NotCarriedOver("column_list does not name several columns")
    kept = without_missing(names, str(args.take("ignore_row_if", default="all_values_are_missing")))
    return [column_sql(each) for each in names], kept
