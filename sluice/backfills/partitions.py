"""Parse the partitions of a backfill: ranges of years, months or days, and lists."""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from sluice.errors import InvalidPipeline
from sluice.pipeline.placeholders import partition_values

MAX_PARTITIONS = 10_000
MAX_TEXT = 200_000
"""Maximum number of characters of all names together. Temporal's messages carry them."""
_FORMS = {4: "year", 7: "month", 10: "day"}
_DATE = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?")
_HOW = "write a range as 2018..2020, 2018-01..2020-12 or 2018-01-01..2018-01-31, or a list as a,b,c"


def parse_partitions(text: str) -> list[str]:
    """Return the partitions in a text of ranges and names with commas, in its order, each once.

    Raises:
        InvalidPipeline: the text names no partition or too many, or is not a range or a list.
    """
    partitions: dict[str, None] = {}
    for item in text.split(","):
        for partition in _expand(item.strip(), text):
            partitions[partition] = None
            if len(partitions) > MAX_PARTITIONS:
                raise InvalidPipeline(f"{_shown(text)} has more than {MAX_PARTITIONS:,} partitions, which is the limit")
    if sum(map(len, partitions)) > MAX_TEXT:
        raise InvalidPipeline(
            f"the names of the partitions have more than {MAX_TEXT:,} characters together, which is the limit"
        )
    return list(partitions)


def _expand(item: str, text: str) -> Iterator[str]:
    if not item:
        raise InvalidPipeline(f"{_shown(text)} has an empty name of a partition: {_HOW}")
    if ".." not in item:
        partition_values(item)
        yield item
        return
    first, _, last = (each.strip() for each in item.partition(".."))
    if not (_DATE.fullmatch(first) and _DATE.fullmatch(last)):
        raise InvalidPipeline(f"{_shown(item)} is not a range of partitions: {_HOW}")
    if len(first) != len(last):
        raise InvalidPipeline(
            f"{_shown(item)} goes from a {_FORMS[len(first)]} to a {_FORMS[len(last)]}: write both ends in the same "
            "form"
        )
    start, end = _first_day(first), _first_day(last)
    if end < start:
        raise InvalidPipeline(f"{_shown(item)} goes backwards: write {last}..{first}")
    yield from _steps(start, end, len(first))


def _first_day(partition: str) -> date:
    return date.fromisoformat(partition_values(partition)["partition.start"])


def _steps(start: date, end: date, length: int) -> Iterator[str]:
    """Yield each year, month or day from `start` to `end`, written with `length` characters of a date."""
    if length == len("2018-01-01"):
        for days in range((end - start).days + 1):
            yield (start + timedelta(days=days)).isoformat()
    elif length == len("2018-01"):
        for month in range(start.year * 12 + start.month - 1, end.year * 12 + end.month):
            yield f"{month // 12:04}-{month % 12 + 1:02}"
    else:
        yield from (f"{year:04}" for year in range(start.year, end.year + 1))


def _shown(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:100]}…")
