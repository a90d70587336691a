"""Write Spark SQL for imported tests: quoted names, literals, conditions and queries."""

import math
import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import sqlglot
from sqlglot.errors import SqlglotError

from importing.imported import NotCarriedOver
from sluice.identifiers import literal as quoted_literal
from sluice.identifiers import quoted
from sluice.sql.tokens import SqlProblem, tokens

_PLAIN = re.compile(r"[^\W\d]\w*")
_QUOTED = re.compile(r"""(["`])([^"`]+)\1""")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?=$|[T ])")
_PLACEHOLDER = re.compile(r"__\w+__")
"""A name between double underscores. Macros of a project replace it before dbt runs the test."""


class TextValue(str):
    """A text that is a value. Any other text is a SQL expression."""


def plain_name(text: str) -> str | None:
    """Return the column that a text names, without quotes, or None if it is an expression."""
    quoted = _QUOTED.fullmatch(text.strip())
    if quoted:
        return quoted[2]
    return text.strip() if _PLAIN.fullmatch(text.strip()) else None


def quoted_name(name: str) -> str:
    """Return the name of a table or column in Spark SQL's quotes. Dots separate its parts."""
    return ".".join(map(quoted, name.split(".")))


def column_sql(text: str) -> str:
    """Return a column, quoted, or an expression in parentheses."""
    name = plain_name(text)
    return f"`{name}`" if name else f"({text.strip()})"


def literal(value: Any) -> str:
    """Return a value as a literal of Spark SQL.

    Raises:
        NotCarriedOver: it is a list, a mapping, or a number that is not finite.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise NotCarriedOver(f"{value} is not a finite number")
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value}'"
    if isinstance(value, date):
        return f"DATE '{value}'"
    if value is None or isinstance(value, bool | int | float | str):
        return quoted_literal(value)
    raise NotCarriedOver(f"{str(value)[:60]!r} is not one value")


def literals(values: Sequence[Any]) -> str:
    """Return values as a list of literals."""
    return ", ".join(map(literal, values))


def number(value: Any) -> int | float | None:
    """Return the finite number that a value is, or that a text spells, or None. A `TextValue` is not a number."""
    if isinstance(value, bool | TextValue):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = int(value) if re.fullmatch(r"\s*[+-]?\d+\s*", value) else float(value)
    return value if isinstance(value, int | float) and math.isfinite(value) else None


def is_time(text: str) -> bool:
    """Return True if a whole text is a date, with or without a time, as in `2020-01-31 10:00`."""
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return _DATE.match(text.strip()) is not None


def bound_sql(value: Any) -> str:
    """Return a bound of a range as SQL. A text is a number or an expression, unless it is a `TextValue`."""
    if isinstance(value, str) and not isinstance(value, TextValue):
        return value.strip() if number(value) is not None else f"({value.strip()})"
    return literal(value)


def spark_condition(text: str, dialect: str | None) -> str:
    """Convert a condition in another dialect to Spark SQL.

    Raises:
        NotCarriedOver: it does not parse, or contains a name that a macro would replace.
    """
    if placeholder := _PLACEHOLDER.search(text):
        raise NotCarriedOver(f"{placeholder[0]} is replaced by a macro of the project")
    return _translated(text, dialect) if dialect else text.strip()


def spark_query(text: str, dialect: str | None) -> str:
    """Convert a query to Spark SQL without comments, on one line except for its literals.

    Raises:
        NotCarriedOver: it does not parse, or contains a name that a macro would replace.
    """
    if dialect:
        return spark_condition(_translated(text.strip(), dialect), None)
    parts, end = [], 0
    try:
        for token in tokens(text.strip()):
            parts.append(f"{' ' if token.start > end else ''}{token.text}")
            end = token.start + len(token.text)
    except SqlProblem as error:
        raise NotCarriedOver(f"query: {error}") from error
    return spark_condition("".join(parts).strip().removesuffix(";"), None)


def _translated(text: str, dialect: str) -> str:
    try:
        statements = sqlglot.transpile(text, read=dialect, write="spark", comments=False)
    except SqlglotError as error:
        raise NotCarriedOver(f"{text[:80]!r} does not parse as SQL of {dialect}") from error
    if len(statements) != 1:
        raise NotCarriedOver(f"{text[:80]!r} contains {len(statements)} SQL statements instead of one")
    return str(statements[0])


def dialects() -> list[str]:
    """Return the names of the SQL dialects that can be translated."""
    return sorted(name.value for name in sqlglot.Dialects if name.value)
