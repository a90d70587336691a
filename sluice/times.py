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
    try:
        return f"{_in_utc(time):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):
        return str(time)


def format_expiry(time: str) -> str:
    """Return the time until which something is kept, with a mark if it has passed: the reaper will delete it.

    Args:
        time: ISO 8601 text. Other text is returned unchanged.
    """
    try:
        has_passed = _in_utc(time) <= datetime.now(timezone.utc)
    except (ValueError, OverflowError):
        return time
    return f"{format_time(time)} (expired)" if has_passed else format_time(time)


def parse_time(text: str) -> datetime:
    """Parse a time from ISO 8601 text, to the second.

    Raises:
        ValueError: the text is not a time in this form.
    """
    return datetime.fromisoformat(_FRACTION.sub("", text).replace("Z", "+00:00"))


def parse_moment(text: str) -> datetime | None:
    """Return the moment that a text names by a time with an offset, or None for any other text."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None


def _in_utc(time: str | datetime) -> datetime:
    known = parse_time(time) if isinstance(time, str) else time
    return known.astimezone(timezone.utc) if known.tzinfo else known.replace(tzinfo=timezone.utc)
