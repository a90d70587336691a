"""Read YAML into plain values, and refuse values that mean nothing in a pipeline, each with its location."""

import math
import re
from collections.abc import Set
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scalarbool import ScalarBoolean

from sluice.errors import InvalidPipeline
from sluice.located_yaml import LocatedConstructor, LocatedScanner, shown_tag
from sluice.pipeline.limits import MAX_NODES, BoundedComposer, count_nodes

Location = tuple[str | int, ...]
Problem = tuple[Location, str]

_TEXT_TAG = "tag:yaml.org,2002:str"
_SHOWN = 60
_REPEATED_KEY = re.compile(r'found duplicate key "(.{1,100}?)" with value')


def load_tree(text: str, name: str) -> CommentedMap:
    """Return the tree of a pipeline file, with the lines of its mappings and lists.

    Args:
        name: the name of the file in messages.

    Raises:
        InvalidPipeline: the file is not valid YAML, not a mapping, or too large.
    """
    reader = YAML(typ="rt")
    reader.Scanner, reader.Composer, reader.Constructor = LocatedScanner, BoundedComposer, LocatedConstructor
    try:
        tree = reader.load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"{name}:{mark.line + 1}" if mark else name
        if repeated := _REPEATED_KEY.match(error.problem or ""):
            raise InvalidPipeline(f"{line}: the key `{repeated[1]}` occurs twice in one mapping: remove one") from error
        raise InvalidPipeline(f"{line}: this is not valid YAML: {error.problem}") from error
    except ReaderError as error:
        code = error.character if isinstance(error.character, int) else ord(error.character)
        number = text.count("\n", 0, error.position) + 1
        raise InvalidPipeline(
            f"{name}:{number}: this is not valid YAML: it contains the control character U+{code:04X}: leave it out"
        ) from error
    if not isinstance(tree, CommentedMap):
        held = "contains nothing" if tree is None else f"begins with a {'list' if isinstance(tree, list) else 'value'}"
        raise InvalidPipeline(f"{name}:1: the file {held}: a pipeline file is a mapping that begins with `name:`")
    if count_nodes(tree) > MAX_NODES:
        raise InvalidPipeline(
            f"{name}: with its aliases (`*name`) replaced, the file has more than {MAX_NODES:,} values, which is the "
            "limit: write less, or split the pipeline"
        )
    return tree


def plain_values(node: Any, where: Location, problems: list[Problem]) -> Any:
    """Return a tree as plain values. Dates and times become text.

    Each value that means nothing in a pipeline is added to the problems.
    """
    if problem := _problem(node):
        problems.append((where, problem))
        return None
    if isinstance(node, dict):
        return _plain_mapping(node, where, problems)
    if isinstance(node, list):
        return [plain_values(value, (*where, index), problems) for index, value in enumerate(node)]
    if node is None or isinstance(node, bool | ScalarBoolean):
        return None if node is None else bool(node)
    kind = next((kind for kind in (int, float) if isinstance(node, kind)), None)
    return kind(node) if kind else str(getattr(node, "value", node))  # a text tagged `!!str` has it in `value`


def _plain_mapping(node: dict[Any, Any], where: Location, problems: list[Problem]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, value in node.items():
        name = str(key)
        if key is None or isinstance(key, dict | list | tuple):
            problems.append((where, f"{name[:_SHOWN]!r} is not a key: write a text"))
        elif problem := _problem(key):
            problems.append((where, problem))
        elif name in plain:
            problems.append(((*where, name), f"the key {name[:_SHOWN]!r} occurs twice in one mapping"))
        else:
            plain[name] = plain_values(value, (*where, name), problems)
    return plain


def _problem(node: Any) -> str:
    """Return the reason why a value means nothing in a pipeline, or ""."""
    tag = getattr(getattr(node, "tag", None), "value", None)
    if tag and (tag != _TEXT_TAG or isinstance(node, dict | list)):
        return f"the tag {shown_tag(tag)!r} means nothing here: leave it out"
    if isinstance(node, bytes | Set) or type(node).__name__ == "CommentedOrderedMap":
        return "the tags !!binary, !!set and !!omap mean nothing here: write a text, a list or a mapping"
    if isinstance(node, float) and not math.isfinite(node):
        return f"{float(node)} is not a number that rows can be compared with: write a finite number, or leave it out"
    if isinstance(node, str) and not node.isascii() and any("\ud800" <= each <= "\udfff" for each in node):
        return f"{node[:_SHOWN]!r} contains an unpaired surrogate (U+D800 to U+DFFF): leave it out"
    return ""
