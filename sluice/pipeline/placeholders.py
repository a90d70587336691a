"""Placeholders in pipeline files: `{{ partition }}`, `{{ scheduled_for }}` and their parts.

Sluice replaces them in the values of a file after it was read as YAML, so that a value never changes the structure of
the file. Keys and the name of the pipeline have none: the name identifies a pipeline, whatever it loads.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from sluice.errors import InvalidPipeline
from sluice.identifiers import suggestion

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_]\w*(?:\.\w+)?)\s*\}\}")
_PARTITION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:+-]{0,99}")
_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_TIME_PARTS = ("date", "year", "month", "day", "hour", "minute")
_PARTITION_PARTS = ("year", "month", "day", "start", "end")
_GIVEN_BY = {
    "partition": "`backfill` gives it one for each partition, and --partition gives one run its own",
    "scheduled_for": "a schedule gives it its time, and --scheduled-for gives one run its own",
}
_READ_BY_PEOPLE = ("description", "schedule", "arrival")
"""The keys of a pipeline that do not affect its runs."""
NAMES = (
    *("partition", *(f"partition.{part}" for part in _PARTITION_PARTS)),
    *("scheduled_for", *(f"scheduled_for.{part}" for part in _TIME_PARTS)),
)
"""All placeholders."""


def partition_values(partition: str) -> dict[str, str]:
    """Return the values of the placeholders of one partition.

    A year, month or day (2018, 2018-01, 2018-01-31) has parts: `partition.start` is its first day, `partition.end` the
    day after its last.

    Raises:
        InvalidPipeline: the partition has characters that do not belong in paths and statements, or is a date that does
            not exist.
    """
    if not _PARTITION.fullmatch(partition):
        raise InvalidPipeline(
            f"{partition!r} is not a valid name of a partition: write a date as 2018, 2018-01 or 2018-01-31, or a name "
            "of letters, digits, '_', '.', ':', '+' and '-'"
        )
    values = {"partition": partition}
    match = _DAY.fullmatch(partition)
    if match is None:
        return values
    try:
        start = date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
        end = _day_after(start, match)
    except (ValueError, OverflowError) as error:
        raise InvalidPipeline(f"{partition!r} is not a valid date: {error}") from error
    parts = {"year": match[1], "month": match[2], "day": match[3], "start": start.isoformat(), "end": end.isoformat()}
    return values | {f"partition.{part}": value for part, value in parts.items() if value}


def values_of_all(partitions: Sequence[str]) -> dict[str, str]:
    """Return the values of the placeholders for several partitions together.

    `partition` is the first and the last of them, with names before dates; `partition.start` is the first day of all,
    `partition.end` the day after the last. A part with different values, such as the month of two months, is `*`, which
    matches all in a path.
    """
    each = [partition_values(name) for name in partitions]
    together = {}
    for key in sorted(set.intersection(*(set(values) for values in each))):
        values = [values_of_one[key] for values_of_one in each]
        together[key] = values[0] if len({*values}) == 1 else "*"
    if len(partitions) > 1:
        in_order = sorted(each, key=lambda values: (values.get("partition.end", ""), values.get("partition.start", "")))
        together["partition"] = f"{in_order[0]['partition']}..{in_order[-1]['partition']}"
    starts, ends = ([values.get(f"partition.{part}", "") for values in each] for part in ("start", "end"))
    return together | ({"partition.start": min(starts), "partition.end": max(ends)} if all(starts) else {})


def _day_after(start: date, match: re.Match[str]) -> date:
    if match[3]:
        return start + timedelta(days=1)
    if match[2]:
        return (start.replace(day=1) + timedelta(days=32)).replace(day=1)
    return start.replace(year=start.year + 1)


def time_values(scheduled_for: datetime) -> dict[str, str]:
    """Return the values of the placeholders of a scheduled time, in its own time zone."""
    return {
        "scheduled_for": scheduled_for.isoformat(timespec="seconds"),
        "scheduled_for.date": f"{scheduled_for:%Y-%m-%d}",
        "scheduled_for.year": f"{scheduled_for:%Y}",
        "scheduled_for.month": f"{scheduled_for:%m}",
        "scheduled_for.day": f"{scheduled_for:%d}",
        "scheduled_for.hour": f"{scheduled_for:%H}",
        "scheduled_for.minute": f"{scheduled_for:%M}",
    }


def placeholders_in(tree: Any) -> set[str]:
    """Return the names of the placeholders in the values of a file."""
    if isinstance(tree, dict):
        return {name for value in tree.values() for name in placeholders_in(value)}
    if isinstance(tree, list):
        return {name for value in tree for name in placeholders_in(value)}
    return set(_PLACEHOLDER.findall(tree)) if isinstance(tree, str) else set()


def differing_placeholders(tree: Any, values: Mapping[str, str]) -> set[str]:
    """Return the placeholders that have the value `*` for several partitions, outside of the keys that allow it.

    In the path of the source, `*` matches all partitions. In descriptions and messages, only people read it.
    """
    kept = {key: each for key, each in tree.items() if key not in _READ_BY_PEOPLE}
    if isinstance(write := kept.get("write"), dict) and isinstance(source := write.get("source"), dict):
        kept["write"] = {**write, "source": {key: each for key, each in source.items() if key != "path"}}
    if isinstance(publish := kept.get("publish"), dict):
        kept["publish"] = {key: each for key, each in publish.items() if key != "message"}
    return {name for name in placeholders_in(kept) if values.get(name) == "*"}


def replace_placeholders(text: str, values: Mapping[str, str]) -> str:
    """Return a text with its placeholders replaced.

    Raises:
        InvalidPipeline: a placeholder has no value, or does not exist.
    """
    return _PLACEHOLDER.sub(lambda match: _value(match[1], values), text)


def _value(name: str, values: Mapping[str, str]) -> str:
    if name in values:
        return values[name]
    if name not in NAMES:
        raise InvalidPipeline(
            f"there is no placeholder {{{{ {name} }}}}{suggestion(name, NAMES)}; there are {', '.join(NAMES)}"
        )
    root, _, part = name.partition(".")
    if root in values:
        raise InvalidPipeline(f"{{{{ {name} }}}} has no value: {values[root]!r} has no {part}")
    raise InvalidPipeline(f"{{{{ {name} }}}} has no value in this run: {_GIVEN_BY[root]}")
