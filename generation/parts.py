"""Steps through time by hour, day, week, month or year."""

from datetime import date, datetime, timedelta
from typing import Any

_FIXED = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}


def next_part(part: str, at: Any) -> Any:
    """Return a time in the part after that of `at`."""
    if part in _FIXED:
        return at + _FIXED[part]
    if part == "year":
        return at.replace(year=at.year + 1, month=1, day=1)
    return at.replace(year=at.year + at.month // 12, month=at.month % 12 + 1, day=1)


def parts_between(part: str, first: date | datetime, last: date | datetime | None, most: int) -> list[Any]:
    """Return a time in each part from the first to the last, or in `most` parts if there is no last."""
    times: list[Any] = [first]
    while len(times) < most if last is None else next_part(part, times[-1]) <= last:
        times.append(next_part(part, times[-1]))
    return [*times, last] if last is not None and times[-1] != last else times
