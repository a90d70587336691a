"""Times as people read them: the same form in every message."""

import re
from datetime import datetime, timezone

_FRACTION = re.compile(r"\.\d+")
"""Python 3.10 reads fractions of three and six digits alone."""


def format_time(time: str | datetime) -> str:
    """Return a time in UTC to the minute: `2026-11-22 07:45 UTC`.

    Args:
        time: a time, or its ISO 8601 text; one without an offset is in UTC. Other text is returned as it is.
    """
    if isinstance(time, str):
        try:
            return format_time(parse_time(time))
        except (ValueError, OverflowError):
            return time
    in_utc = time.astimezone(timezone.utc) if time.tzinfo else time
    return f"{in_utc:%Y-%m-%d %H:%M} UTC"


def parse_time(text: str) -> datetime:
    """Return a time from its ISO 8601 text, to the second.

    Raises:
        ValueError: it is no such text.
    """
    return datetime.fromisoformat(_FRACTION.sub("", text).replace("Z", "+00:00"))
