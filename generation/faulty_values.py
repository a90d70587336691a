"""Changes of single rows that should make a check report them as bad. An engine decides which of them do."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from generation.columns import Column
from generation.hints import comparisons
from generation.patterns import matching_like, matching_regex, random_word
from generation.values import Bounds, beyond, random_value, step_of
from sluice.checks.base import Check
from sluice.checks.nulls import NotNull
from sluice.checks.query import ExpressionIsTrue
from sluice.checks.references import CompareColumns, Relationships
from sluice.checks.strings import MatchLike, MatchRegex, NotEmptyString, NotMatchLike, NotMatchRegex, ValidFormat
from sluice.checks.strings import StringLength as Length
from sluice.checks.values import AcceptedRange, AcceptedValues, NotAcceptedValues, NotNan, bound_of
from sluice.sql.values import typed

Change = Mapping[str, Any]
"""New values of a row, by column."""

_MATCHES = 5


def changes(check: Check, row: Mapping[str, Any], columns: Mapping[str, Column], random: Random) -> list[Change]:
    """Return changes of a row that should break a check, the most likely first."""
    if isinstance(check, CompareColumns):
        return _compared(check, row, columns)
    if isinstance(check, ExpressionIsTrue):
        return _conditional(check.expression, columns, random)
    column = columns.get(getattr(check, "column", ""))
    if column is None:
        return []
    return [{column.name: value} for value in _values(check, row[column.name], column, random)]


def where_changes(condition: str | None, columns: Mapping[str, Column]) -> Change:
    """Return the values of columns that should make the condition of `where` true."""
    values: dict[str, Any] = {}
    for name, operator, value in comparisons(condition) if condition else []:
        if name in columns and (typed_value := _typed(value, columns[name])) is not None:
            shifted = beyond(columns[name], typed_value, typed_value)
            values[name] = {">": shifted[0], "<": shifted[-1]}.get(operator, typed_value) if shifted else typed_value
    return values


def _values(check: Check, value: Any, column: Column, random: Random) -> Sequence[Any]:
    if isinstance(check, NotNull):
        return [None]
    if isinstance(check, NotNan):
        return [float("nan")]
    if isinstance(check, AcceptedValues | NotAcceptedValues):
        members = [typed(each, column.type) for each in check.values]
        return _outside(column, members) if isinstance(check, AcceptedValues) else members
    if isinstance(check, AcceptedRange):
        low, high = bound_of(check.min, column.type), bound_of(check.max, column.type)
        excluded = [] if check.inclusive else [each for each in (low, high) if each is not None]
        return [*beyond(column, low, high), *excluded]
    if isinstance(check, Relationships):
        return _strange(column, random)
    return _texts(check, value, random)


def _outside(column: Column, members: Sequence[Any]) -> list[Any]:
    if column.kind == "boolean":
        return [each for each in (True, False) if each not in members]
    if column.kind == "string":
        return [f"not {members[0]}", "?"]
    return beyond(column, min(members), max(members))


def _strange(column: Column, random: Random) -> list[Any]:
    """Return generated values that are unlikely to occur in the referenced table."""
    some = random_value(column, Bounds(), random)
    return [f"nobody's {some}"] if column.kind == "string" else beyond(column, None, some, by=10**8 + 7)


def _texts(check: Check, value: Any, random: Random) -> list[str]:
    if isinstance(check, NotEmptyString):
        return [""]
    if isinstance(check, Length):
        longer = ["x" * (check.max + 1)] if check.max is not None else []
        return longer + (["x" * (check.min - 1)] if check.min else [])
    if isinstance(check, NotMatchRegex):
        return [text for _ in range(_MATCHES) if (text := matching_regex(check.pattern, random)) is not None]
    if isinstance(check, NotMatchLike):
        return [matching_like(check.pattern, random) for _ in range(_MATCHES)]
    if isinstance(check, MatchRegex | MatchLike | ValidFormat):
        return ["not valid", f"{value}~", f"~{value}", "?", "0", "~~~", random_word(random, 12), ""]
    return []


def _compared(check: CompareColumns, row: Mapping[str, Any], columns: Mapping[str, Column]) -> list[Change]:
    left, right = row[check.left], row[check.right]
    if left is None or right is None:
        return []
    shifted = [{check.left: each} for each in beyond(columns[check.left], right, right)]
    if columns[check.left].type != columns[check.right].type:
        return []
    return [{check.left: right, check.right: left}, {check.left: right}, *shifted]


def _conditional(expression: str, columns: Mapping[str, Column], random: Random) -> list[Change]:
    """Return changes of the columns of a condition, near the literals that it compares them with."""
    made: list[Change] = []
    for name, _, value in comparisons(expression):
        column = columns.get(name)
        if column and (typed_value := _typed(value, column)) is not None:
            made += [{name: each} for each in [typed_value, *beyond(column, typed_value, typed_value)]]
    for name, column in columns.items():
        if name in expression:
            made += [{name: random_value(column, Bounds(), random)} for _ in range(2)]
            made += [{name: -abs(random_value(column, Bounds(), random))}] if _is_number(column) else []
            made.append({name: None})
    return made


def _is_number(column: Column) -> bool:
    return column.kind in ("int", "long", "float", "double", "decimal") and step_of(column) is not None


def _typed(value: Any, column: Column) -> Any:
    try:
        return bound_of(value, column.type)
    except ValueError:
        return None
