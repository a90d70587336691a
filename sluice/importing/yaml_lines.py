"""Reading YAML with the line of each item, as leniently as the tools whose files they are."""

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from sluice.errors import InvalidPipeline
from sluice.importing.imported import SourceText
from sluice.pipeline.limits import MAX_NODES, BoundedComposer, count_nodes


def read_yaml(source: SourceText) -> Any:
    """Return the tree of a YAML file, whose mappings and lists know their lines.

    Raises:
        InvalidPipeline: it is not valid YAML.
    """
    try:
        return _load(source.text)
    except YAMLError as first:
        try:
            return _load(source.text.expandtabs(2))  # libyaml, which dbt reads with, allows tabs inside of texts
        except YAMLError:
            mark = first.problem_mark if isinstance(first, MarkedYAMLError) else None
            why = first.problem if isinstance(first, MarkedYAMLError) else str(first).splitlines()[0]
            where = f"{source.path}:{mark.line + 1}" if mark else source.path
            raise InvalidPipeline(f"{where}: this is not valid YAML: {why}") from first


def _load(text: str) -> Any:
    reader = YAML(typ="rt")
    reader.allow_duplicate_keys = True
    reader.Composer = BoundedComposer
    tree = reader.load(text)
    if isinstance(tree, dict | list) and count_nodes(tree) > MAX_NODES:
        raise YAMLError(f"with its aliases replaced, it has more than {MAX_NODES:,} values")
    return tree


def line_of(node: Any, key: Any = None, default: int = 1) -> int:
    """Return the line, from 1, of a mapping, of a key in it, or of an item of a list."""
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
    """Return a tree of YAML as plain values."""
    if isinstance(node, dict):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, list | tuple | set):
        return [plain(each) for each in node]
    if isinstance(node, bool) or node is None:
        return node
    if isinstance(node, int):
        return int(node)
    if isinstance(node, float):
        return float(node)
    return str(node) if isinstance(node, str) else node
