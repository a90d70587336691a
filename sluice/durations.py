"""Durations as people write them: 90, 90s, 15m, 24h, 14d."""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST = 100 * 365 * 86400
"""Longest duration, in seconds."""
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*")


def seconds(value: object) -> float:
    """Return a duration in seconds.

    Raises:
        ValueError: the value is not a duration, is not more than zero, or is longer than a hundred years.
    """
    duration = 0.0
    if isinstance(value, int | float) and not isinstance(value, bool):
        duration = min(value, float(_LONGEST) + 1)
    elif match := _DURATION.fullmatch(str(value)):
        duration = float(match[1]) * _UNITS[match[2]]
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


Duration = Annotated[float, BeforeValidator(seconds)]
"""Duration in seconds, parsed from any of the forms above."""
