"""The scope of a load: the partition and the scheduled time that decide what a run writes."""

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sluice.base_model import StrictModel
from sluice.pipeline.placeholders import placeholders_in
from sluice.times import parse_moment

_WRITES_NOTHING = ("checks",)
"""The keys of a table whose placeholders do not decide what is written."""
_TIME = re.compile(r"\d{4}(-\d\d){0,2}|\d{4}-\d\d-\d\dT\d\d(:\d\d){0,2}([+-]\d\d:\d\d)?")
"""A year, a month, a day, an hour or a time. One contains another if it is its beginning."""
_NEXT_PART = ("-", "T", ":")
"""Characters that may follow a date or an hour where the next smaller part begins."""
_SEPARATOR = ", "
"""Separator of the values of several placeholders."""
_YEAR, _MONTH, _DAY, _HOUR, _MINUTE = 4, 7, 10, 13, 16
"""Length of a time in ISO 8601 down to each part, in characters."""
_EXACTNESS = {"year": _YEAR, "month": _MONTH, "day": _DAY, "date": _DAY, "hour": _HOUR, "minute": _MINUTE}
"""Length of the beginning of a value that each part of a placeholder stands for, in characters."""


class LoadScope(StrictModel):
    """Values of the placeholders that a load depends on, such as `2018-01`; empty if there are none.

    A partition and a scheduled time with the same value are the same scope: both may load the same day.
    """

    path: str = ""
    """Values of the placeholders that only the path of the source contains. They decide the location of a file."""
    content: str = ""
    """Values of the other placeholders of the write and the tables. They decide what a file's rows become."""

    @property
    def digest_text(self) -> str:
        """The scope as part of a digest; empty for an empty scope."""
        return f"\0scope\0{self.path}\0{self.content}" if self.path or self.content else ""

    @property
    def label(self) -> str:
        """The scope as people read it."""
        return _SEPARATOR.join(dict.fromkeys(filter(None, (self.content, self.path))))

    def covers(self, wanted: "LoadScope", *, is_same_path: bool) -> bool:
        """Return True if a load with this scope counts as the wanted load of a file with the same content.

        Copies of one file in the folders of two partitions are two loads. A path that names no partition belongs to
        any partition.
        """
        if not _are_same(self.content, wanted.content):
            return False
        return is_same_path or not self.path or not wanted.path or _are_same(self.path, wanted.path)

    def overlaps_partly(self, wanted: "LoadScope") -> bool:
        """Return True if the two loads are of different parts of a file that have rows in common.

        Either one load is of the whole file, and the other of a partition. Or both are of dates or times, and one
        contains the other: 2018 contains 2018-01.
        """
        if not self.content or not wanted.content:
            return self.content != wanted.content
        one, other = sorted((self.content, wanted.content), key=len)
        are_times = bool(_TIME.fullmatch(one) and _TIME.fullmatch(other))
        return are_times and other.startswith(tuple(one + each for each in _NEXT_PART))

    def shares_rows(self, other: "LoadScope") -> bool:
        """Return True if two loads of one path have rows in common: of the same part, or of parts that overlap."""
        return _are_same(self.content, other.content) or self.overlaps_partly(other)


NO_SCOPE = LoadScope()


def load_scope(tree: Mapping[str, Any], values: Mapping[str, str]) -> LoadScope:
    """Return the scope of the loads of a pipeline file.

    Args:
        tree: the values of the file, before its placeholders are replaced.
        values: the values of its placeholders.
    """
    path, content = _used_placeholders(tree)
    return LoadScope(path=_describe(path - content, values), content=_describe(content, values))


def placeholders_of_loads(tree: Mapping[str, Any]) -> set[str]:
    """Return the placeholders of a pipeline file that decide what is written."""
    path, content = _used_placeholders(tree)
    return path | content


def _used_placeholders(tree: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """Return the placeholders in the path of the source, and those elsewhere in the write and the tables."""
    write, path = tree.get("write"), None
    if isinstance(write, dict) and isinstance(source := write.get("source"), dict):
        path = source.get("path")
        write = {**write, "source": {key: value for key, value in source.items() if key != "path"}}
    tables = tree.get("tables")
    if isinstance(tables, dict):
        tables = {name: _without_checks(table) for name, table in tables.items()}
    return placeholders_in(path), placeholders_in([write, tables])


def _without_checks(table: Any) -> Any:
    return {key: value for key, value in table.items() if key not in _WRITES_NOTHING} if isinstance(table, dict) else {}


def _describe(names: Collection[str], values: Mapping[str, str]) -> str:
    """Return the values of placeholders, each cut to the finest of its parts in use."""
    parts: dict[str, set[str]] = {}
    for name in names:
        root, _, part = name.partition(".")
        parts.setdefault(root, set()).add(part)
    return _SEPARATOR.join(_exact(values.get(root, ""), parts[root]) for root in sorted(parts))


def _are_same(one: str, other: str) -> bool:
    """Return True if two scopes have the same values. One moment in two time zones is the same scheduled time."""
    return one == other or _moments(one) == _moments(other)


def _moments(scope: str) -> list[datetime | str]:
    return [parse_moment(value) or value for value in scope.split(_SEPARATOR)]


def _exact(value: str, parts: set[str]) -> str:
    """Cut a value to the finest of its parts: 2018-03 for `year` and `month` of 2018-03-01, all of it for `start`."""
    if parts - _EXACTNESS.keys():
        return value
    return value[: max(_EXACTNESS[part] for part in parts)]


def overlapping(scopes: Mapping[str, LoadScope]) -> tuple[str, str] | None:
    """Return a partition and a smaller one within it, or None if no partition lies within another.

    Args:
        scopes: the scope of the loads of each partition.
    """
    by_content = {scope.content: partition for partition, scope in scopes.items()}
    for content, partition in by_content.items():
        for part in larger_times(content):
            if larger := by_content.get(part):
                return larger, partition
    return None


def larger_times(content: str) -> list[str]:
    """Return the year, month, day and hour within which a smaller date or time lies; none for a name."""
    if not _TIME.fullmatch(content):
        return []
    return [content[:length] for length in (_YEAR, _MONTH, _DAY, _HOUR) if length < len(content)]
