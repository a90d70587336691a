"""Plain notation of each type, from which the types of CSV columns are guessed (docs/values.md).

Regular expressions here mean the same to Python, with `re.ASCII`, and to Java.
"""

import re
from collections.abc import Collection
from datetime import date

WHOLE = r"(?:0|-?[1-9]\d*)"
FRACTION = r"-?(?:0|[1-9]\d*)\.\d+"
MARKED = r"(?:\+|-?0\d)"
"""The beginning of a number with a leading zero or a plus sign: it may be a code or a telephone number."""
DAY = r"\d{4}-\d{2}-\d{2}"
TIME = r"\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6}0*)?)?"
ZONE = r"(?:Z|[+-]\d{2}(?::\d{2})?)"
MOMENT = rf"{DAY}[T ]{TIME}{ZONE}?"
BOOLEANS = ("true", "false")
NUMBERS, DATES = frozenset({"whole", "fraction"}), frozenset({"day", "moment"})
"""Notations of numbers, and of dates and times."""
LEAST_INT, MOST_INT = -(2**31), 2**31 - 1
LEAST_LONG, MOST_LONG = -(2**63), 2**63 - 1
MAX_DIGITS = 38
"""Maximum number of digits of a DECIMAL."""
DOUBLE_DIGITS = 15
"""Number of digits that every DOUBLE preserves."""
_LENGTH_OF_DAY = 10
_NOTATIONS = {name: re.compile(pattern, re.ASCII) for name, pattern in (("whole", WHOLE), ("fraction", FRACTION))}
_OFFSET = r"(?:Z|[+-](\d\d)(?::(\d\d))?)"
_MOMENT = re.compile(rf"({DAY})(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d{{1,6}}0*)?{_OFFSET}?)?)?", re.ASCII)
"""A day, maybe with a time. Spark reads an offset only after seconds."""
_HOURS, _MINUTES = 24, 60
_MOST_OFFSET = 18 * _MINUTES
"""Maximum offset from UTC, in minutes, that Spark reads."""
BEGINS_NUMBER = tuple("+-.0123456789")


def notation_of(text: str) -> str:
    """Return the notation of a value: whole, fraction, day, moment, boolean, or text."""
    for name, pattern in _NOTATIONS.items():
        if pattern.fullmatch(text):
            return name
    if text.lower() in BOOLEANS:
        return "boolean"
    if (match := _MOMENT.fullmatch(text)) and _exists(*match.groups()):
        return "day" if len(text) == _LENGTH_OF_DAY else "moment"
    return "text"


def looks_numeric(text: str) -> bool:
    """Return True if a text begins like a number, so that people may mistake it for one."""
    return text[:1] in BEGINS_NUMBER


def guess_type(notations: Collection[str], *, are_int: bool, are_long: bool, are_double: bool) -> str:
    """Return the SQL type of a column; empty if it has no value, DECIMAL if its digits decide.

    Args:
        notations: notations of its values.
        are_int: True if INT can represent all whole numbers.
        are_long: True if BIGINT can represent all whole numbers.
        are_double: True if DOUBLE can represent all numbers exactly.
    """
    given = frozenset(notations)
    if not given:
        return ""
    if given == {"boolean"}:
        return "BOOLEAN"
    if given <= DATES:
        return "TIMESTAMP" if "moment" in given else "DATE"
    if not given <= NUMBERS:
        return "STRING"
    if given == {"whole"}:
        return "INT" if are_int else "BIGINT" if are_long else "DECIMAL"
    return "DOUBLE" if are_double else "DECIMAL"


def decimal_type(whole: int, fraction: int) -> str:
    """Return the SQL type for numbers with at most this many digits before and after the point."""
    return f"DECIMAL({MAX_DIGITS},{fraction})" if whole + fraction <= MAX_DIGITS else "STRING"


def digits_of(number: str) -> tuple[int, int]:
    """Return the number of digits before and after the point, without zeros at the end."""
    whole, _, fraction = number.removeprefix("-").partition(".")
    return len(whole), len(fraction.rstrip("0"))


def is_exact_double(number: str) -> bool:
    """Return True if a DOUBLE represents a number exactly: its digits identify the DOUBLE."""
    lower = number.lower()
    if len(number) <= DOUBLE_DIGITS and "e" not in lower:
        return True
    shortest = repr(float(number))
    return number == shortest or _significant(lower) == _significant(shortest)


def _significant(number: str) -> str:
    return number.partition("e")[0].replace("-", "").replace(".", "").strip("0")


def _exists(day: str, *rest: str | None) -> bool:
    """Return True if a clock shows this time on this day.

    Args:
        rest: hour, minute and second, then the hours and minutes of the offset.
    """
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    hour, minute, second, hours, minutes = (int(each or 0) for each in rest)
    is_offset = minutes < _MINUTES and hours * _MINUTES + minutes <= _MOST_OFFSET
    return hour < _HOURS and max(minute, second) < _MINUTES and is_offset
