"""Read YAML with the line of each item, as leniently as the tools that the files belong to."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarbool import ScalarBoolean

from importing.imported import SourceText
from sluice.errors import InvalidPipeline
from sluice.located_yaml import UNREADABLE, LocatedConstructor, LocatedScanner
from sluice.pipeline.limits import MAX_NODES, BoundedComposer, count_nodes

_PLAIN: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (bool, bool), (ScalarBoolean, bool), (int, int), (float, float), (str, str),
)  # fmt: skip
"""The types of values in a tree, each with its conversion to a plain value."""


@dataclass(frozen=True)
class RepeatedKey:
    """A key that occurs twice in one mapping. Only its last value counts."""

    key: str
    line: int
    """The line of the value that does not count."""
    last_line: int


class _Constructor(LocatedConstructor):
    """Constructor that refuses a repeated key, as Soda's YAML does."""

    def check_mapping_key(self, node: Any, key_node: Any, mapping: Any, key: Any, value: Any) -> bool:
        """Return True for a key that is not set yet.

        Raises:
            ConstructorError: the key is set already.
        """
        if key in mapping:
            problem = f"the key {str(key)[:60]!r} occurs twice in one mapping"
            raise ConstructorError(None, None, problem, key_node.start_mark)
        return True


class _ConstructorOfDbt(LocatedConstructor):
    """Constructor that keeps the last value of a repeated key, as dbt's YAML does, and records the others."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.repeated: list[RepeatedKey] = []

    def check_mapping_key(self, node: Any, key_node: Any, mapping: Any, key: Any, value: Any) -> bool:
        """Return True, so that every key is set. Record the earlier value of a repeated key."""
        if key in mapping:
            self.repeated.append(RepeatedKey(str(key), line_of(mapping, key), key_node.start_mark.line + 1))
        return True


class _ResolverOfDbt(VersionedResolver):
    """Resolver of plain texts by YAML 1.1, as dbt reads it: `yes` is a truth value, and `y` is a text."""

    @property
    def versioned_resolver(self) -> dict[str, list[tuple[str, re.Pattern[str]]]]:
        """The tags and patterns of plain texts, by their first character."""
        return _TAGS


def _tags() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    tags: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for kind, first, pattern in (
        ("bool", "yYnNtTfFoO", r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"),
        ("float", "-+0123456789.",
         r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
         r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"),
        ("int", "-+0123456789",
         r"[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+"
         r"|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"),
        ("merge", "<", "<<"),
        ("timestamp", "0123456789",
         r"\d{4}-\d\d-\d\d|\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?"
         r"(?:[ \t]*(?:Z|[-+]\d\d?(?::\d\d)?))?"),
    ):  # fmt: skip
        for character in first:
            tags.setdefault(character, []).append((f"tag:yaml.org,2002:{kind}", re.compile(f"(?:{pattern})\\Z", re.A)))
    null = ("tag:yaml.org,2002:null", re.compile(r"(?:~|null|Null|NULL|)\Z"))
    for character in ("~", "n", "N", ""):
        tags.setdefault(character, []).append(null)
    return tags


_TAGS = _tags()


def read_yaml(source: SourceText) -> Any:
    """Return the tree of a YAML file. Its mappings and lists record their lines.

    Raises:
        InvalidPipeline: it is not valid YAML, or a key is repeated.
    """
    return _read(source, _reader)[0]


def read_yaml_of_dbt(source: SourceText) -> tuple[Any, list[RepeatedKey]]:
    """Return the tree of a YAML file as dbt reads it, and the repeated keys whose earlier values do not count.

    Raises:
        InvalidPipeline: it is not valid YAML.
    """
    tree, reader = _read(source, _reader_of_dbt)
    return tree, reader.constructor.repeated


def _reader() -> YAML:
    reader = YAML(typ="rt")
    reader.Constructor = _Constructor
    return reader


def _reader_of_dbt() -> YAML:
    reader = YAML(typ="rt")
    reader.version = (1, 1)
    reader.Resolver, reader.Constructor = _ResolverOfDbt, _ConstructorOfDbt
    return reader


def _read(source: SourceText, new_reader: Callable[[], YAML]) -> tuple[Any, YAML]:
    try:
        return _load(source.text, new_reader())
    except UNREADABLE as first:
        try:
            return _load(source.text.expandtabs(2), new_reader())  # dbt's YAML allows tabs in texts
        except UNREADABLE:
            mark = first.problem_mark if isinstance(first, MarkedYAMLError) else None
            problem = first.problem if isinstance(first, MarkedYAMLError) else None
            why = problem or (str(first).splitlines() or [type(first).__name__])[0]
            where = f"{source.path}:{mark.line + 1}" if mark else source.path
            raise InvalidPipeline(f"{where}: this is not valid YAML: {why}") from first


def _load(text: str, reader: YAML) -> tuple[Any, YAML]:
    reader.Composer, reader.Scanner = BoundedComposer, LocatedScanner
    tree = reader.load(text)
    if isinstance(tree, dict | list) and count_nodes(tree) > MAX_NODES:
        raise YAMLError(f"with its aliases replaced, it has more than {MAX_NODES:,} values")
    return tree, reader


def line_of(node: Any, key: Any = None, default: int = 1) -> int:
    """Return the line, counted from 1, of a mapping, of a key in it, or of an item of a list."""
    position = getattr(node, "lc", None)
    if position is None:
        return default
    try:
        if key is not None:
            return int((position.key(key) if isinstance(node, dict) else position.item(key))[0]) + 1
        return int(position.line) + 1
    except (KeyError, TypeError, AttributeError):
        return default


def plain(node: Any) -> Any:
    """Return a YAML tree as plain values."""
    if isinstance(node, dict):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, list | tuple | set):
        return [plain(each) for each in node]
    for stored, kind in _PLAIN:
        if isinstance(node, stored):
            return kind(node)
    return node
