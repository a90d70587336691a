"""Importing from Great Expectations: the expectations of a suite, in the form of releases before and after 1.0."""

import json
import re
from collections.abc import Mapping
from typing import Any

from sluice.errors import InvalidPipeline
from sluice.importing.arguments import Arguments
from sluice.importing.drafts import Draft, Limits, Target, finished
from sluice.importing.imported import AlwaysPasses, ImportedChecks, NotCarriedOver, Parameters, SourceText, is_valid
from sluice.importing.jinja_values import plain_identifier
from sluice.importing.sql_text import column_sql, plain_name, quoted_name, spark_condition
from sluice.importing.vocabulary import EXPECTATIONS

_ENTRY = re.compile(r'"(?:expectation_type|type)"\s*:\s*"(\w+)"')
_IGNORED = (
    "result_format", "include_config", "catch_exceptions", "meta", "batch_id", "condition_parser", "rendered_content",
    "id", "notes", "profiler_config", "auto", "windows", "allow_relative_error", "strftime_format", "description",
)  # fmt: skip
_WITH_NULLS = ("expect_column_values_to_not_be_null", "expect_column_values_to_be_null")
_PANDAS = re.compile(r"[&|~]|==|\bisin\(|\.str\.|notnull\(|isnull\(")


def is_suite(tree: object) -> bool:
    """Return whether a tree of JSON is a suite."""
    return isinstance(tree, dict) and isinstance(tree.get("expectations"), list)


def import_suite(
    source: SourceText, namespace: str | None, table: str | None, scope: str, dialect: str | None
) -> ImportedChecks:
    """Turn a suite into checks.

    Args:
        table: the table that it is about; without it, the suite's name in the namespace.

    Raises:
        InvalidPipeline: it is no suite, or no table is known.
    """
    try:
        tree = json.loads(source.text)
    except ValueError as error:
        raise InvalidPipeline(f"{source.path} cannot be read: {error}") from error
    if not is_suite(tree):
        raise InvalidPipeline(f"{source.path} is no suite: it has no list `expectations`")
    name = str(tree.get("name") or tree.get("expectation_suite_name") or source.path.rpartition("/")[2])
    if table is None and namespace is None:
        raise InvalidPipeline(
            f"{source.path}: say which table the suite is about: --table namespace.table, or --namespace for "
            f"{plain_identifier(name.removesuffix('.json'))} in it"
        )
    about = table or f"{namespace}.{plain_identifier(name.removesuffix('.json'))}"
    lines = _lines(source.text, tree["expectations"])
    imported = ImportedChecks()
    for line, written in zip(lines, tree["expectations"], strict=True):
        kind = _snake_case(str(written.get("expectation_type") or written.get("type") or "?"))
        column = str((written.get("kwargs") or {}).get("column") or "")
        try:
            checks = _checks(kind, written, Target(about, scope=scope), dialect)
        except NotCarriedOver as error:
            inactive = isinstance(error, AlwaysPasses)
            imported.leave(about, (source.path, line), kind, str(error), about=column, inactive=inactive)
        else:
            imported.add(about, (source.path, line), kind, checks, about=column)
    return imported


def _snake_case(name: str) -> str:
    """Return the name of an expectation as files have it: releases from 1.0 on also name its class."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _lines(text: str, written: list[Any]) -> list[int]:
    """Return the line of each expectation: the n-th type in the text is that of the n-th."""
    names = [str(each.get("expectation_type") or each.get("type") or "?") for each in written]
    entries = iter(_ENTRY.finditer(text))
    lines, line, start = [], 1, 0
    for name in names:
        entry = next((each for each in entries if each[1] == name), None)
        if entry is not None:
            line, start = line + text.count("\n", start, entry.start()), entry.start()
        lines.append(line)
    return lines


def _checks(kind: str, written: Mapping[str, Any], target: Target, dialect: str | None) -> list[Parameters]:
    given = {str(key): _names(str(key).lower(), value) for key, value in (written.get("kwargs") or {}).items()}
    limits = Limits(severity="warn" if written.get("severity") in ("warning", "info") else "fail")
    if dynamic := [key for key, value in given.items() if isinstance(value, dict) and "$PARAMETER" in value]:
        raise NotCarriedOver(f"{dynamic[0]!r} is computed when the suite runs")
    if kind == "unexpected_rows_expectation":
        query = str(given.get("unexpected_rows_query", "")).replace("{batch}", quoted_name(target.table))
        return finished(Draft(spark_condition(query, dialect)), target, limits, kind)
    builder = EXPECTATIONS.get(kind)
    if builder is None:
        raise NotCarriedOver(f"there is no equivalent of {kind}")
    if given.get("condition_parser") == "pandas" and _PANDAS.search(str(given.get("row_condition") or "")):
        raise NotCarriedOver("the row_condition is written for pandas, and not in SQL")
    condition, mostly = given.pop("row_condition", None), given.pop("mostly", None)
    if condition:
        target = target.narrowed(spark_condition(_in_sql(str(condition)), dialect))
    args = Arguments({**given, **_differences(kind), "expectation": kind})
    args.ignore(*_IGNORED, "ignore_row_if" if "pair" in kind else "")
    _shift_index(kind, args)
    draft = builder(args, target)
    args.ignore("expectation")
    args.refuse_rest()
    if mostly is None or mostly == 1:
        return finished(draft, target, limits, kind)
    return _mostly(kind, draft, target, limits, mostly, str(given.get("column") or ""))


def _names(key: str, value: Any) -> Any:
    """Return the columns that an argument names in quotes, where they are no plain names: none is an expression."""
    if key not in ("column", "column_a", "column_b", "column_list") or not value:
        return value
    if isinstance(value, list):
        return [_names("column", each) for each in value]
    return value if plain_name(str(value)) else f"`{value}`"


def _differences(kind: str) -> dict[str, Any]:
    """Return what says in dbt_expectations' words what the expectation means here."""
    if "_to_not_match_" in kind and kind.endswith("_list"):
        return {"match_on": "all"}
    return {"by_value": True} if kind == "expect_column_value_z_scores_to_be_less_than" else {}


def _shift_index(kind: str, args: Arguments) -> None:
    if kind == "expect_column_to_exist" and (index := args.take("column_index")) is not None:
        args.put("column_index", int(index) + 1)  # counted from 0 there


def _in_sql(condition: str) -> str:
    """Return a condition of the parser `great_expectations`, such as `col("a").notNull()`, in SQL."""
    text = re.sub(r"""col\((['"])(.*?)\1\)""", lambda match: f"`{match[2]}`", condition)
    text = text.replace(".notNull()", " IS NOT NULL").replace("==", "=")
    return text.replace('"', "'") if "`" in text else text


def _mostly(kind: str, draft: Draft, target: Target, limits: Limits, mostly: Any, column: str) -> list[Parameters]:
    """Return the checks with a share of good rows, of those with a value: there nulls count neither way."""
    if len(draft.native) != 1 or draft.query is None:
        raise NotCarriedOver("`mostly` has no equivalent for this expectation here")
    rows = target if kind in _WITH_NULLS or not column else target.narrowed(f"{column_sql(column)} IS NOT NULL")
    made = finished(Draft(native=draft.native), rows, limits, kind)
    checks = [{name: {**parameters, "mostly": mostly}} for check in made for name, parameters in check.items()]
    if not all(map(is_valid, checks)):
        raise NotCarriedOver("`mostly` has no equivalent for this expectation here")
    return checks
