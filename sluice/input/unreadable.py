"""Describe rows of a source that cannot be read: file, line, column and value."""

import re

from sluice.contracts.spark_jobs import UnreadableRows
from sluice.row_values import HIDDEN_VALUE

_MAX_VALUE = 80
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WITH_DIGITS = ("decimal", "double", "float")
"""Beginnings of the names of types that may store a number only with fewer digits."""


def describe_unreadable(rows: UnreadableRows, line: int | None, *, show_values: bool) -> str:
    """Describe unreadable rows of a source: `orders.csv, line 101: amount: 'twelve' is not a valid decimal(10,2)`.

    Args:
        line: line of the first such row in its file, from 1; None if it is not known.
        show_values: True if the text may quote the value.
    """
    where = rows.path + (f", line {line:,}" if line else "")
    if rows.column:
        value = rows.value if len(rows.value) <= _MAX_VALUE else rows.value[:_MAX_VALUE] + "…"
        loses_digits = rows.type_name.startswith(_WITH_DIGITS) and _NUMBER.fullmatch(rows.value)
        why = "cannot be stored exactly as a" if loses_digits else "is not a valid"
        problem = f"{rows.column}: '{value if show_values else HIDDEN_VALUE}' {why} {rows.type_name}"
    elif rows.values is not None:
        problem = f"it has {rows.values:,} values for {rows.columns:,} columns"
    else:
        problem = "a value does not fit its column, or the number of values is wrong"
    number = f"{rows.rows:,} such rows" if rows.rows > 1 else "1 such row"
    more = " or more" if rows.there_may_be_more else ""
    hidden = "" if show_values or not rows.column else " (`show_values: true` shows the value)"
    return f"{where}: {problem}{hidden}; {number}{more}"
