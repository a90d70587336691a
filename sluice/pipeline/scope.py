"""The scope of a load: the partition and the scheduled time that decide what a run writes."""

from collections.abc import Collection, Mapping
from typing import Any

from sluice.base_model import Model
from sluice.pipeline.placeholders import placeholders_in

_WRITES_NOTHING = ("checks",)
"""The keys of a table whose placeholders do not decide what is written."""
_YEAR, _MONTH, _DAY, _HOUR, _MINUTE = 4, 7, 10, 13, 16
"""How many characters of a time in ISO 8601 go down to each part."""
_EXACTNESS = {"year": _YEAR, "month": _MONTH, "day": _DAY, "date": _DAY, "hour": _HOUR, "minute": _MINUTE}
"""By the part of a placeholder, how many characters of the value it stands for."""


class LoadScope(Model):
    """The values of placeholders that a load depends on, as `2018-01`; empty where there are none.

    A partition and a scheduled time of one value are one scope: both may load the same day.
    """

    path: str = ""
    """Of placeholders that stand in the path of the source alone: they decide where a file is found."""
    content: str = ""
    """Of placeholders that stand elsewhere in what decides what is written: they decide what a file's rows become."""

    @property
    def digest_text(self) -> str:
        """The scope as a part of a digest; empty for an empty scope."""
        return f"\0scope\0{self.path}\0{self.content}" if self.path or self.content else ""

    @property
    def label(self) -> str:
        """The scope for people."""
        return ", ".join(dict.fromkeys(filter(None, (self.content, self.path))))

    def covers(self, wanted: "LoadScope", *, is_same_path: bool) -> bool:
        """Return whether a load with this scope is the wanted load of a file with the same content.

        Copies of a file in the folders of two partitions are a file of each. A path that names no partition is of any.
        """
        if self.content != wanted.content:
            return False
        return is_same_path or self.path == wanted.path or not self.path or not wanted.path

    def overlaps_partly(self, wanted: "LoadScope") -> bool:
        """Return whether one of both loads is of the whole file, and the other of a partition of it."""
        return bool(self.content) != bool(wanted.content)


NO_SCOPE = LoadScope()


def load_scope(tree: Mapping[str, Any], values: Mapping[str, str]) -> LoadScope:
    """Return the scope of the loads of a pipeline file.

    Args:
        tree: the values of the file, before its placeholders are replaced.
        values: the values of these placeholders.
    """
    path, content = _used_placeholders(tree)
    return LoadScope(path=_describe(path - content, values), content=_describe(content, values))


def placeholders_of_loads(tree: Mapping[str, Any]) -> set[str]:
    """Return the placeholders of a pipeline file that decide what is written."""
    path, content = _used_placeholders(tree)
    return path | content


def _used_placeholders(tree: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """Return the placeholders in the path of the source, and those elsewhere in what decides what is written."""
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
    """Return the values of placeholders, each as exact as the finest of its parts that is used."""
    parts: dict[str, set[str]] = {}
    for name in names:
        root, _, part = name.partition(".")
        parts.setdefault(root, set()).add(part)
    return ", ".join(_exact(values.get(root, ""), parts[root]) for root in sorted(parts))


def _exact(value: str, parts: set[str]) -> str:
    """Return a value as exact as its parts: `year` and `month` of 2018-03-01 are 2018-03, `start` is all of it."""
    if parts - _EXACTNESS.keys():
        return value
    return value[: max(_EXACTNESS[part] for part in parts)]
