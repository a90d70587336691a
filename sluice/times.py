"""Format and parse times, in one form for all messages."""

import re
from datetime import datetime, timezone

_FRACTION = re.compile(r"\.\d+")
"""Fraction of a second. Python 3.10 only parses fractions of three or six digits."""


def format_time(time: str | datetime) -> str:
    """Return a time in UTC to the minute: `2026-11-22 07:45 UTC`.

    Args:
        time: a time, or its ISO 8601 text. Without an offset it is in UTC. Other text is returned unchanged.
    """
    if isinstance(time, str):
        try:
            return format_time(parse_time(time))
        except (ValueError, OverflowError):
            return time
    in_utc = time.astimezone(timezone.utc) if time.tzinfo else time
    return f"{in_utc:%Y-%m-%d %H:%M} UTC"


def format_expiry(time: str) -> str:
    """Return the time until which something is kept, with a mark if it has passed: the reaper will delete it.

    Args:
        time: ISO 8601 text. Other text is returned unchanged.
    """
    text = format_time(time)
    try:
        ends = parse_time(time)
    except (ValueError, OverflowError):
        return text
    in_utc = ends if ends.tzinfo else ends.replace(tzinfo=timezone.utc)
    return f"{text} (expired)" if in_utc <= datetime.now(timezone.utc) else text


def parse_time(text: str) -> datetime:
    """Parse a time from ISO 8601 text, to the second.

    Raises:
        ValueError: the text is not a time in this form.
    """
    return datetime.fromisoformat(_FRACTION.sub("", text).replace("Z", "+00:00"))
