"""Convert Python's formats of dates and times (`strptime`) to conditions of Spark SQL."""

import re

from importing.imported import NotCarriedOver
from importing.sql_text import literal

_DIRECTIVES = {
    "Y": r"(?!0000)\d\d\d\d",
    "m": r"1[0-2]|0[1-9]|[1-9]",
    "d": r"3[0-1]|[1-2]\d|0[1-9]|[1-9]| [1-9]",
    "H": r"2[0-3]|[0-1]\d|\d",
    "M": r"[0-5]\d|\d",
    "S": r"[0-5]\d|\d",
}
"""Patterns that Python reads for each directive. It also reads the year 0 and the second 60, but then refuses them."""
_PART = re.compile(r"%(?P<directive>.?)|(?P<space>\s+)|(?P<text>[^%\s]+)", re.DOTALL)
_YEAR_WITHOUT_ONE = "1900"


def strptime_condition(column: str, format_: str) -> str:
    """Return an SQL condition that is true if a text of the column is a date or time in the format.

    Raises:
        NotCarriedOver: a part of the format has no equivalent.
    """
    pattern, order = strptime_pattern(format_)
    good = f"{column} RLIKE {literal(pattern)}"
    if not {"m", "d"} <= {*order}:
        return good  # no month limits the days
    year, month, day = (
        f"regexp_extract({column}, {literal(pattern)}, {order.index(name) + 1})" if name in order else "''"
        for name in "Ymd"
    )
    date = f"concat_ws('-', {year if 'Y' in order else literal(_YEAR_WITHOUT_ONE)}, {month}, trim({day}))"
    return f"{good} AND try_cast({date} AS DATE) IS NOT NULL"


def strptime_pattern(format_: str) -> tuple[str, list[str]]:
    """Return the regular expression of a format, and its directives in the order of their groups."""
    parts, order = [], []
    for match in _PART.finditer(format_):
        directive = match["directive"]
        if directive is None:
            parts.append(r"\s+" if match["space"] else _literal(match["text"]))
        elif directive == "%":
            parts.append("%")
        elif directive not in _DIRECTIVES or directive in order:
            raise NotCarriedOver(f"{match[0]!r} in the format {format_[:40]!r} has no equivalent here")
        else:
            parts.append(f"({_DIRECTIVES[directive]})")
            order.append(directive)
    if re.search(r"%S(?=%[YmdHM]|\d)", format_):
        raise NotCarriedOver(f"digits after the seconds of the format {format_[:40]!r} have no equivalent here")
    # Python does not backtrack to make the format reach the end of the text, so the group is atomic.
    return rf"(?i)\A(?>{''.join(parts)})\z", order


def _literal(text: str) -> str:
    if not text.isascii():
        raise NotCarriedOver(f"{text[:40]!r} in a format of dates has no equivalent here")
    return re.escape(text)
