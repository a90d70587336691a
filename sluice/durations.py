"""Durations as people write them: 90, 90s, 15m, 24h, 14d."""

import re
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


Duration = Annotated[float, BeforeValidator(seconds)]
"""Duration in seconds, parsed from any of the forms above."""
