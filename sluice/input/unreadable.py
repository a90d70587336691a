"""Describe rows of a source that cannot be read: file, line, column and value."""

import re

from sluice.contracts.spark_jobs import UnreadableRows
from sluice.input.plain_notation import MARKED
from sluice.row_values import HIDDEN_VALUE
from sluice.sizes import format_count

_MAX_VALUE = 80
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WITH_DIGITS = ("decimal", "double", "float")
"""Beginnings of the names of types that may store a number only with fewer digits."""
_NUMERIC = ("tinyint", "smallint", "int", "bigint", *_WITH_DIGITS)
_MARKED = re.compile(MARKED, re.ASCII)
_CORRECT = ". Correct the file"
_READ_AS_TEXT = _CORRECT + ", or read {column} as STRING and convert it by a transform"


def describe_unreadable(rows: UnreadableRows, line: int | None, *, show_values: bool) -> str:
    """Describe unreadable rows: `orders.csv, line 101: amount: 'twelve' is not a valid decimal(10,2); 1 such row`.

    Args:
        line: line of the first such row in its file, from 1; None if it is not known.
        show_values: True if the text may quote the value.
    """
    where = rows.path + (f", line {line:,}" if line else "")
    remedy = _CORRECT
    if rows.problem and rows.column:
        problem, remedy = f"{rows.column} is {rows.problem}", ""  # it says what to do
    elif rows.problem:
        problem = rows.problem
    elif rows.column:
        remedy = "" if _is_marked(rows) else _READ_AS_TEXT.format(column=rows.column)
        value = rows.value if len(rows.value) <= _MAX_VALUE else rows.value[:_MAX_VALUE] + "…"
        problem = f"{rows.column}: '{value if show_values else HIDDEN_VALUE}' {_why(rows)}"
    elif rows.values is not None:
        is_one = rows.columns == 1 or (rows.values == 1 and rows.rows > 1)
        separator, remedy = (": set `source.options.sep` to its separator", "") if is_one else ("", _CORRECT)
        problem = f"it has {format_count(rows.values, 'value')} for {format_count(rows.columns, 'column')}{separator}"
    else:
        problem = "a value does not fit its column, or the number of values is wrong"
    number = f"{rows.rows:,} such rows" if rows.rows > 1 else "1 such row"
    more = " or more" if rows.there_may_be_more else ""
    hidden = "" if show_values or rows.problem or not rows.column else " (`show_values: true` shows the value)"
    return f"{where}: {problem}{hidden}; {number}{more}{remedy}"


def _why(rows: UnreadableRows) -> str:
    """Return why a type does not accept a value."""
    if _is_marked(rows):
        return (
            f"has a leading zero or a plus sign, which the table's type {rows.type_name} would drop: if it is a "
            "number, state its type in `source.schema`; if it is a code, the column must be STRING"
        )
    if _NUMBER.fullmatch(rows.value) and rows.type_name.startswith(_WITH_DIGITS):
        return f"cannot be stored exactly as a {rows.type_name}"
    return f"is not a valid {rows.type_name}"


def _is_marked(rows: UnreadableRows) -> bool:
    """Return True if a value may be a code: its type is the table's, and it has a leading zero or a plus sign."""
    is_number = _NUMBER.fullmatch(rows.value) and rows.type_name.startswith(_NUMERIC)
    return bool(is_number and rows.is_of_table and _MARKED.match(rows.value))
