"""Importing checks: the generic tests of a dbt `schema.yml`, or the expectations of a Great Expectations suite.

Each imported check is valid; everything else is reported, with the reason.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from sluice.checks import REGISTRY, expand
from sluice.errors import InvalidPipeline

Parameters = dict[str, Any]
_REFERENCE = re.compile(r"""[\s{]*(?:ref|source)\s*\(\s*(?:['"]([^'"]+)['"]\s*,\s*)?['"]([^'"]+)['"]\s*\)[\s}]*""")
_KINDS = ("models", "seeds", "snapshots")
_CONFIG = {"severity": "severity", "where": "where", "warn_if": "warn_if", "error_if": "fail_if"}
_SILENT = ("name", "description", "tags", "meta", "enabled", "alias", "config", "store_failures", "group", "docs")
_RENAMED = {"mostly": "mostly", "row_condition": "where"}
_IGNORED = ("result_format", "catch_exceptions", "include_config", "batch_id", "strict_min", "strict_max")
_UNSUPPORTED = ("strictly", "parse_strings_as_datetimes", "ignore_row_if", "condition_parser")


@dataclass
class ImportedChecks:
    """The checks that a file was turned into."""

    checks: dict[str, list[Parameters]] = field(default_factory=dict)
    """The checks by table, as a pipeline file has them."""
    left: list[str] = field(default_factory=list)
    """What could not be imported, and why."""

    def add(self, table: str, what: str, name: str, parameters: Parameters) -> None:
        """Add one check if it is valid, else the reason why it is not."""
        written = {name: parameters}
        try:
            for one in expand(written):
                REGISTRY[one["check"]].model_validate(one)
        except InvalidPipeline as error:
            self.left.append(f"{what}: {error}")
        except ValidationError as error:
            first = error.errors()[0]
            path = ".".join(str(part) for part in first["loc"])
            self.left.append(f"{what}: {path + ': ' if path else ''}{first['msg'].removeprefix('Value error, ')}")
        else:
            self.checks.setdefault(table, []).append(written)


def import_checks(path: Path, scope: str, namespace: str, table: str | None = None) -> ImportedChecks:
    """Turn a dbt `schema.yml` or a Great Expectations suite into checks.

    Args:
        scope: which rows the checks are about; in dbt and Great Expectations, all rows of the table.
        namespace: the namespace that the tables of dbt models get.
        table: the table that a suite is about; a suite may name none.

    Raises:
        InvalidPipeline: the file cannot be read, or is neither.
    """
    try:
        text = path.read_text(encoding="utf-8")
        tree = json.loads(text) if path.suffix == ".json" else YAML(typ="safe").load(text)
    except (OSError, UnicodeDecodeError, ValueError, YAMLError) as error:
        raise InvalidPipeline(f"{path} cannot be read: {str(error).splitlines()[0]}") from error
    if isinstance(tree, dict) and isinstance(tree.get("expectations"), list):
        return _suite(tree, scope, table or f"{namespace}.{_plain(str(tree.get('name') or path.stem))}")
    if isinstance(tree, dict) and any(isinstance(tree.get(key), list) for key in (*_KINDS, "sources")):
        return _dbt(tree, scope, namespace)
    raise InvalidPipeline(
        f"{path} is neither a dbt schema.yml (`models:`) nor a Great Expectations suite (`expectations`)"
    )


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _dbt(tree: Mapping[str, Any], scope: str, namespace: str) -> ImportedChecks:
    imported = ImportedChecks()
    for model in _models(tree):
        table = f"{namespace}.{_plain(str(model.get('name', '')))}"
        for test in _tests(model):
            _import_test(imported, table, None, test, scope, namespace)
        for column in model.get("columns") or []:
            for test in _tests(column):
                _import_test(imported, table, str(column.get("name", "")), test, scope, namespace)
    return imported


def _models(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in _KINDS:
        yield from tree.get(key) or []
    for source in tree.get("sources") or []:
        yield from source.get("tables") or []


def _tests(node: Mapping[str, Any]) -> list[Any]:
    return [*(node.get("tests") or []), *(node.get("data_tests") or [])]


def _import_test(
    imported: ImportedChecks, table: str, column: str | None, test: Any, scope: str, namespace: str
) -> None:
    name, given = (test, {}) if isinstance(test, str) else next(iter(test.items()))
    given = dict(given or {})
    what = f"{table}{'.' + column if column else ''}: {name}"
    config = {**(given.get("config") or {}), **{key: given.pop(key) for key in _CONFIG if key in given}}
    if config.get("enabled") is False:
        imported.left.append(f"{what}: it is not enabled")
        return
    arguments = {**given, **(given.pop("arguments", None) or {})}
    parameters = {key: value for key, value in arguments.items() if key not in (*_SILENT, "arguments")}
    if column is not None and "column" not in parameters and name != "dbt_utils.expression_is_true":
        parameters["column"] = parameters.pop("column_name", column)
    if name == "dbt_utils.expression_is_true" and column is not None:
        parameters["expression"] = f"`{column}` {parameters.get('expression', '')}"
    for key in ("to", "compare_model"):
        if key in parameters:
            parameters[key] = _referenced(str(parameters[key]), namespace)
    for key, option in _CONFIG.items():
        if key in config:
            parameters[option] = (
                {"error": "fail"}.get(str(config[key]), config[key]) if key == "severity" else config[key]
            )
    imported.add(table, what, str(name), {**parameters, "scope": scope})


def _referenced(text: str, namespace: str) -> str:
    match = _REFERENCE.fullmatch(text)
    return f"{_plain(match[1]) if match[1] else namespace}.{_plain(match[2])}" if match else text


def _suite(tree: Mapping[str, Any], scope: str, table: str) -> ImportedChecks:
    imported = ImportedChecks()
    for expectation in tree["expectations"]:
        name = str(expectation.get("expectation_type") or expectation.get("type") or "?")
        given = dict(expectation.get("kwargs") or {})
        what = f"{table}: {name}({given.get('column') or given.get('column_list') or ''})"
        unsupported = [key for key in _UNSUPPORTED if given.get(key)]
        strict = [key for key in ("strict_min", "strict_max") if given.get(key)]
        if unsupported or len(strict) == 1:
            imported.left.append(f"{what}: {(unsupported or strict)[0]} has no equivalent here")
            continue
        kept = {
            key: value for key, value in given.items() if key not in (*_IGNORED, *_UNSUPPORTED) and value is not None
        }
        parameters: Parameters = {_RENAMED.get(str(key), str(key)): value for key, value in kept.items()}
        if strict:
            parameters["inclusive"] = False
        if expectation.get("severity") in ("warning", "info"):
            parameters["severity"] = "warn"
        imported.add(table, what, name, {**parameters, "scope": scope})
    return imported
