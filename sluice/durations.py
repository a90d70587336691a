"""Durations as people write them: 90s, 15m, 24h, 14d."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, ValidationInfo

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST = 100 * 365 * 86400
"""Longest duration, in seconds."""
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhd])\s*")
_NUMBER = re.compile(r"\s*\d+(?:\.\d+)?\s*")
STATED = {"durations": "stated"}
"""Context of the validation of a file that a person wrote. Messages have durations as numbers of seconds."""


def seconds(value: object) -> float:
    """Return a duration that a person stated, in seconds.

    Raises:
        ValueError: the value is not a duration, has no unit, is not more than zero, or is longer than a hundred years.
    """
    duration, text = 0.0, str(value)
    if match := _DURATION.fullmatch(text):
        duration = float(match[1]) * _UNITS[match[2]]
    elif _NUMBER.fullmatch(text):
        number = text.strip()[:100]
        raise ValueError(f"{number} has no unit: write {number}s, {number}m, {number}h or {number}d")
    return _in_range(duration, value)


def _seconds_of(value: object, info: ValidationInfo) -> float:
    """Return a duration that a person stated, or that a message has as a number of seconds."""
    if info.context == STATED or isinstance(value, bool) or not isinstance(value, int | float):
        return seconds(value)
    return _in_range(float(min(value, _LONGEST + 1)), value)


def _in_range(duration: float, value: object) -> float:
    if not duration > 0:
        raise ValueError(f"{str(value)[:100]!r} is not a duration: write 90s, 15m, 24h or 14d")
    if duration > _LONGEST:
        raise ValueError(f"{str(value)[:100]!r} is longer than a hundred years, the longest duration")
    return float(duration)


def format_duration(value: float) -> str:
    """Format a number of seconds for a person, in the largest unit that fits evenly."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if value >= size and value % size == 0:
            return f"{value / size:.0f}{unit}"
    return f"{value:.3f}".rstrip("0").rstrip(".") + "s"


def format_roughly(duration: timedelta | float) -> str:
    """Format a duration for a person, rounded to one unit: `40 s`, `25 min`, `50 h`, `4 d`."""
    total = duration.total_seconds() if isinstance(duration, timedelta) else duration
    for unit, size, least in (("d", 86400, 3 * 86400), ("h", 3600, 2 * 3600), ("min", 60, 2 * 60)):
        if total >= least:
            return f"{total / size:.0f} {unit}"
    return f"{total:.0f} s"


Duration = Annotated[float, BeforeValidator(_seconds_of)]
"""Duration in seconds, parsed from any of the forms above."""
