"""Strict parser of cron expressions of five fields: minute, hour, day of the month, month, day of the week.

Temporal parses an expression only when a schedule is created, and gives some expressions another meaning than cron
does: runs would start on other days. So Sluice parses the expression, and Temporal gets the numbers.
"""

import re
from dataclasses import dataclass

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(?:(\*)|([0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?)(?:/([0-9]{1,2}))?")
_LONGEST_MONTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}


@dataclass(frozen=True)
class Range:
    """Every `step`-th number from `start` to `end`."""

    start: int
    end: int
    step: int = 1


@dataclass(frozen=True)
class _Field:
    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _DAYS),
)


@dataclass(frozen=True)
class Cron:
    """The numbers of a cron expression."""

    minute: tuple[Range, ...]
    hour: tuple[Range, ...]
    day_of_month: tuple[Range, ...]
    month: tuple[Range, ...]
    day_of_week: tuple[Range, ...]
    """Days from 0 (Sunday) to 6."""


def parse_cron(text: str) -> Cron:
    """Parse a cron expression.

    Raises:
        ValueError: the text is not a cron expression, names only days that do not exist, or means something else to
            Temporal than to cron.
    """
    parts = text.lower().split()
    if len(parts) != len(_FIELDS):
        raise ValueError(
            f"{text!r} is not a cron expression of five fields (minute, hour, day of the month, month, day of the "
            "week), such as 30 5 * * mon-fri"
        )
    minute, hour, day, month, weekday = (_parse(part, field) for part, field in zip(parts, _FIELDS, strict=True))
    if not parts[2].startswith("*") and not parts[4].startswith("*"):
        raise ValueError(
            f"{text!r} names days of the month and of the week: cron starts on days that match either, Temporal on "
            "days that match both. Write * for one of them"
        )
    _refuse_days_that_never_come(text, day, month)
    return Cron(minute, hour, day, month, _weekdays(weekday))


def _parse(text: str, field: _Field) -> tuple[Range, ...]:
    return tuple(_parse_part(part, field) for part in text.split(","))


def _parse_part(text: str, field: _Field) -> Range:
    match = _PART.fullmatch(text)
    if match is None:
        raise ValueError(f"the {field.name} {text!r} is not of the form *, 5, 1-5 or */2, or a list of these")
    every, start, end, step = match.groups()
    width = int(step or 1)
    if not 1 <= width <= field.last:
        raise ValueError(f"the step of the {field.name} {text!r} is not between 1 and {field.last}")
    if every:
        return Range(field.first, 6 if field.names == _DAYS else field.last, width)
    first = _number(start, text, field)
    if end is None and step is not None:
        raise ValueError(f"the {field.name} {text!r} has a step but no end: write {start}-{field.last}/{step}")
    last = first if end is None else _number(end, text, field)
    if last < first:
        raise ValueError(f"the {field.name} {text!r} ends before it begins: write two ranges, with a comma")
    return Range(first, last, width)


def _number(text: str, part: str, field: _Field) -> int:
    if text in field.names:
        return field.names.index(text) + field.first
    if not text.isdigit():
        raise ValueError(f"the {field.name} {part!r} is not one of {', '.join(field.names) or 'the numbers'}")
    if not field.first <= int(text) <= field.last:
        raise ValueError(f"the {field.name} {part!r} is not between {field.first} and {field.last}")
    return int(text)


def _weekdays(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """Return days of the week with 0 in place of 7, the other number of Sunday."""
    if not any(each.end == 7 for each in ranges):
        return ranges
    days = {day % 7 for each in ranges for day in range(each.start, each.end + 1, each.step)}
    return tuple(Range(day, day) for day in sorted(days))


def _refuse_days_that_never_come(text: str, days: tuple[Range, ...], months: tuple[Range, ...]) -> None:
    first = min(each.start for each in days)
    named = {month for each in months for month in range(each.start, each.end + 1, each.step)}
    if all(first > _LONGEST_MONTHS.get(month, 31) for month in named):
        raise ValueError(f"{text!r} never starts: none of its months has a day {first}")
