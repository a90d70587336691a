"""Read and validate pipeline files.

Each error has its line, the valid keys and, if one of them is similar, a suggestion.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from sluice.checks.base import Check
from sluice.checks.registry import REGISTRY, expand
from sluice.checks.rows import RowCheck
from sluice.durations import STATED
from sluice.errors import InvalidPipeline
from sluice.identifiers import suggestion
from sluice.pipeline.arrival import Arrival, BatchLimits
from sluice.pipeline.limits import MAX_FILE_BYTES, MAX_PIPELINE_BYTES
from sluice.pipeline.loading_order import partition_problem
from sluice.pipeline.model import Approval, Pipeline
from sluice.pipeline.placeholders import replace_placeholders
from sluice.pipeline.publish_options import PublishOptions
from sluice.pipeline.schedule import Schedule
from sluice.pipeline.scope import load_scope
from sluice.pipeline.source import Source
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.pipeline.write_modes import unknown_mode
from sluice.pipeline.yaml_values import Location, load_tree, plain_values
from sluice.validation_errors import plain_message

_NO_VALUES: Mapping[str, str] = {}
_MODELS: dict[Location, type[BaseModel]] = {
    (): Pipeline,
    ("write",): Write,
    ("write", "source"): Source,
    ("tables", "*"): Table,
    ("approval",): Approval,
    ("publish",): PublishOptions,
    ("schedule",): Schedule,
    ("arrival",): Arrival,
    ("arrival", "batch"): BatchLimits,
}
_MANY_LOCATIONS = 3
"""Minimum number of valid locations of a key at which a message names none of them."""


def read_pipeline(path: Path, values: Mapping[str, str] = _NO_VALUES) -> Pipeline:
    """Read and validate a pipeline file.

    Args:
        values: the values of its placeholders.

    Raises:
        InvalidPipeline: the file cannot be read, or is not valid.
    """
    return parse_pipeline(read_pipeline_text(path), str(path), values)


def read_pipeline_text(path: Path) -> str:
    """Read the text of a pipeline file.

    Raises:
        InvalidPipeline: the file cannot be read.
    """
    try:
        if (size := path.stat().st_size) > MAX_FILE_BYTES:
            raise InvalidPipeline(_too_large(str(path), size))
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        problem = f"{path} cannot be read: byte {error.start + 1:,} is not UTF-8: save the file as UTF-8"
        raise InvalidPipeline(problem) from error
    except OSError as error:
        raise InvalidPipeline(f"{path} cannot be read: {error.strerror or error}") from error


def parse_pipeline(text: str, name: str, values: Mapping[str, str] = _NO_VALUES) -> Pipeline:
    """Validate the text of a pipeline file.

    Args:
        name: the name of the file in messages.
        values: the values of its placeholders; see `placeholders.py`.

    Raises:
        InvalidPipeline: the text is not valid. The message has every error.
    """
    if len(text) > MAX_FILE_BYTES:
        raise InvalidPipeline(_too_large(name, len(text)))
    tree = load_tree(text, name)
    problems: list[tuple[Location, str]] = []
    written = plain_values(tree, (), problems)
    if problems:
        raise _invalid(name, tree, problems)
    plain = {key: node if key == "name" else _replaced(node, values, (key,), problems) for key, node in written.items()}
    if problems:  # a statement cannot be parsed while it contains a placeholder
        raise _invalid(name, tree, problems)
    expanded, origins = _expand_checks(plain, lambda where: f"{name}:{_line(tree, where)}", problems)
    try:
        pipeline = Pipeline.model_validate(expanded, context=STATED)
        if not pipeline.write.traits.is_for_pipelines:
            problems.append((("write", "mode"), f"`mode: {pipeline.write.mode}` is only for the command of that name"))
        if problem := partition_problem(pipeline.write, pipeline.tables):
            problems.append((("write", "mode"), problem))
        if not problems:
            return _of_a_size(pipeline, name).with_scope(load_scope(written, values))
    except ValidationError as error:
        problems += [(_original(where, origins), sentence) for where, sentence in _sentences(error.errors())]
    raise _invalid(name, tree, problems)


def _invalid(name: str, tree: CommentedMap, problems: Sequence[tuple[Location, str]]) -> InvalidPipeline:
    lines = sorted({(_line(tree, where), sentence) for where, sentence in problems})
    return InvalidPipeline("\n".join(f"{name}:{line}: {sentence}" for line, sentence in lines))


def locate(path: Path, problems: Sequence[tuple[Location, str]]) -> list[str]:
    """Return the problems of a pipeline file that was read before, each with its line.

    The file is read again for the lines. If that fails, the problems have no lines.
    """
    try:
        tree = YAML(typ="rt").load(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, ValueError, YAMLError):
        tree = None
    if not isinstance(tree, CommentedMap):
        return [sentence for _, sentence in problems]
    lines = sorted((_line(tree, where), sentence) for where, sentence in problems)
    return [f"{path}:{line}: {sentence}" for line, sentence in lines]


def _too_large(name: str, size: int) -> str:
    return (
        f"{name}: a pipeline file of {size:,} bytes is too large: the limit is {MAX_FILE_BYTES:,}. Long lists of "
        "values are better kept in a table, for the check `relationships`"
    )


def _of_a_size(pipeline: Pipeline, name: str) -> Pipeline:
    size = len(pipeline.model_dump_json(by_alias=True).encode())
    if size > MAX_PIPELINE_BYTES:
        raise InvalidPipeline(
            f"{name}: with its checks written out, the pipeline takes {size:,} bytes, too large for Temporal's "
            f"messages: the limit is {MAX_PIPELINE_BYTES:,}. Write fewer or shorter checks, or split the pipeline"
        )
    return pipeline


def _replaced(node: Any, values: Mapping[str, str], where: Location, problems: list[tuple[Location, str]]) -> Any:
    """Replace the placeholders of a node. A text with one that has no value stays, and becomes a problem."""
    if isinstance(node, dict):
        return {key: _replaced(value, values, (*where, key), problems) for key, value in node.items()}
    if isinstance(node, list):
        return [_replaced(value, values, (*where, index), problems) for index, value in enumerate(node)]
    if not isinstance(node, str):
        return node
    try:
        return replace_placeholders(node, values)
    except InvalidPipeline as error:
        problems.append((where, str(error)))
        return node


def _expand_checks(
    plain: dict[str, Any], at: Callable[[Location], str], problems: list[tuple[Location, str]]
) -> tuple[dict[str, Any], dict[Location, int]]:
    """Replace each check as written by the checks that it stands for, and add the errors to the problems.

    Return the values, and for each expanded check its position in the list as written.
    """
    origins: dict[Location, int] = {}
    tables = plain.get("tables")
    for name, table in tables.items() if isinstance(tables, dict) else ():
        written = table.get("checks") if isinstance(table, dict) else None
        if not isinstance(written, list):
            continue
        checks: list[dict[str, Any]] = []
        for index, item in enumerate(written):
            where: Location = ("tables", name, "checks", index)
            try:
                for one in expand(item):
                    origins[(name, len(checks))] = index
                    if "at" in one:
                        raise InvalidPipeline(_unknown_key("at", _check_keys(one["check"])))
                    checks.append({**one, "at": at(where)})
            except InvalidPipeline as error:
                problems.append((where, str(error)))
        table["checks"] = checks
    return plain, origins


def _original(where: Location, origins: dict[Location, int]) -> Location:
    """Translate the location of an expanded check into the location in the file."""
    if len(where) >= 4 and where[0] == "tables" and where[2] == "checks":
        index = origins.get((where[1], where[3]))
        return (*where[:3], index if index is not None else where[3], *where[4:])
    return where


def _sentences(errors: Sequence[Any]) -> Iterator[tuple[Location, str]]:
    """Yield each error with its location.

    The message about the first unknown key of a mapping also names the keys that are missing there.
    """
    keys: dict[Location, list[Any]] = {}
    for error in errors:
        if error["type"] in ("extra_forbidden", "missing"):
            keys.setdefault(tuple(error["loc"])[:-1], []).append(error)
        else:
            yield tuple(error["loc"]), _sentence(error)
    for parent, wrong in keys.items():
        known = _known_keys(parent)
        missing = [str(error["loc"][-1]) for error in wrong if error["type"] == "missing"]
        unknown = [str(error["loc"][-1]) for error in wrong if error["type"] == "extra_forbidden"]
        lacking = [f"{name!r} is missing" for name in missing]
        for name in unknown:  # the first one was probably meant to be a missing key
            hint = _valid_location(name) or suggestion(name, missing or known)
            parts = [f"unknown key {name!r}{hint}", *lacking]
            yield (*parent, name), f"{', '.join(parts)}{_valid(known)}"
            missing, lacking = [], []
        if lacking:
            yield (*parent, missing[0]), f"{', '.join(lacking)}{_valid(known)}"


def _sentence(error: Any) -> str:
    where: Location = tuple(error["loc"])
    message = plain_message(error)
    given = f", not {error['input']!r}" if message.startswith("input should") else ""
    path = ".".join(str(part) for part in where if part != "[key]")
    if error["type"] in ("model_type", "model_attributes_type"):
        return f"{path}: {error['input']!r} is not a mapping{_as_mapping(where, error['input'])}"
    if where == ("write", "mode") and error["type"] == "literal_error":
        return f"{path}: input should be {unknown_mode(str(error['input']))}"
    close = suggestion(str(error["input"]), _permitted(error)) if given else ""
    return f"{path}: {message}{given}{close}" if where else message


def _permitted(error: Any) -> list[str]:
    """Return the texts that are permitted where another was written; empty if the error is another one."""
    return re.findall(r"'([^']+)'", error["ctx"]["expected"]) if error["type"] in ("literal_error", "enum") else []


def _valid_location(name: str) -> str:
    """Return the locations where a key is valid; empty if there is none, or too many."""
    locations = [where for where in _MODELS if name in _known_keys(where)]
    if name in REGISTRY and not locations:
        return " (list checks under `tables.TABLE.checks`)"
    if not 0 < len(locations) < _MANY_LOCATIONS:
        return ""
    named = [
        "at the top level" if not where else f"under `{'.'.join(map(str, where)).replace('*', 'TABLE')}`"
        for where in locations
    ]
    return f" (it belongs {' or '.join(named)})"


def _as_mapping(where: Location, written: Any) -> str:
    """Return how to write a value as the mapping that is valid at a location, or the keys of that mapping."""
    model = _MODELS.get(where)
    required = [field.alias or key for key, field in model.model_fields.items() if field.is_required()] if model else []
    if len(required) == 1 and isinstance(written, str) and written.isprintable():
        return f": write {{{required[0]}: {written}}}"
    return _valid(_known_keys(where))


def _unknown_key(name: str, known: list[str]) -> str:
    return f"unknown key {name!r}{suggestion(name, known)}{_valid(known)}"


def _valid(keys: list[str]) -> str:
    return f"; valid keys: {', '.join(keys)}" if keys else ""


def _known_keys(where: Location) -> list[str]:
    if where[:1] == ("tables",) and len(where) >= 5 and where[2] == "checks":
        return _check_keys(str(where[4]))
    pattern = ("tables", "*") if where[:1] == ("tables",) else where
    model = _MODELS.get(pattern)
    return [field.alias or key for key, field in model.model_fields.items()] if model else []


def _check_keys(check: str) -> list[str]:
    """Return the valid keys of a check: its own, those of row checks, those of every check."""
    cls = REGISTRY[check]
    common = [key for key in Check.model_fields if key not in ("check", "at")]
    rows = [key for key in RowCheck.model_fields if key in cls.model_fields and key not in Check.model_fields]
    own = [key for key in cls.model_fields if key not in Check.model_fields and key not in rows]
    if "column" in own and cls.shorthand == "columns":
        own.insert(own.index("column") + 1, "columns")
    return [*own, *rows, *common]


def _line(tree: Any, where: Location) -> int:
    """Return the line, counted from 1, of the deepest part of a location that the file contains."""
    line = 1
    for node, key in _walk(tree, where):
        position = node.lc.data.get(key) if node.lc.data else None
        if position:
            line = position[0] + 1
    return line


def _walk(node: Any, where: Location) -> Iterator[tuple[Any, Any]]:
    for key in where:
        if isinstance(node, CommentedMap) and key not in node and len(node) == 1 and "check" not in node:
            continue  # pydantic names the kind of check; the file has it as the key that follows
        if (isinstance(node, CommentedMap) and key in node) or (
            isinstance(node, CommentedSeq) and isinstance(key, int) and key < len(node)
        ):
            yield node, key
            node = node[key]
        else:
            return
