"""Import the expectations of a Great Expectations suite, in the form of releases before and after 1.0."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from importing.arguments import UNREADABLE, Arguments
from importing.dbt.jinja_values import plain_identifier
from importing.drafts import Draft, Limits, Target, finished
from importing.expectations.rows import without_missing
from importing.expectations.vocabulary import EXPECTATIONS, SUITE_EXPECTATIONS
from importing.imported import AlwaysPasses, ImportedChecks, NotCarriedOver, Parameters, SourceText, is_valid
from importing.sql_text import TextValue, column_sql, plain_name, quoted_name, spark_condition
from sluice.errors import InvalidPipeline

_ENTRY = re.compile(r'"(?:expectation_type|type)"\s*:\s*"(\w+)"')
_IGNORED = (
    "result_format", "include_config", "catch_exceptions", "meta", "batch_id", "condition_parser", "rendered_content",
    "id", "notes", "profiler_config", "auto", "windows", "allow_relative_error", "strftime_format", "description",
)  # fmt: skip
_OFF = ("parse_strings_as_datetimes", "allow_cross_type_comparisons", "ties_okay")
"""Arguments that change nothing if they are off."""
_WITH_NULLS = ("expect_column_values_to_not_be_null", "expect_column_values_to_be_null")
_AGGREGATES = tuple(f"expect_column_{name}_to_be_between" for name in ("max", "min", "mean", "sum", "stdev", "median"))
_BOUNDS = ("min_value", "max_value", "value", "sum_total", "threshold")
"""Arguments that dbt_expectations writes into SQL unchanged. In a suite, a text in one of them is a value."""
_TEXTS = (
    "column", "column_a", "column_b", "regex", "like_pattern", "strftime_format", "other_table_name", "row_condition",
    "unexpected_rows_query", "ignore_row_if",
)  # fmt: skip
"""Arguments that must be texts if they are given."""
_PANDAS = re.compile(r"[&|~]|==|\bisin\(|\.str\.|notnull\(|isnull\(")


def is_suite(tree: object) -> bool:
    """Return True if a JSON tree is a suite."""
    return isinstance(tree, dict) and isinstance(tree.get("expectations"), list)


def read_json(source: SourceText) -> Any:
    """Return the tree of a JSON file.

    Raises:
        InvalidPipeline: it is not valid JSON, or is nested too deeply.
    """
    try:
        return json.loads(source.text)
    except (ValueError, RecursionError) as error:
        raise InvalidPipeline(f"{source.path} cannot be read: {error}") from error


def import_suite(
    source: SourceText, namespace: str | None, table: str | None, scope: str, dialect: str | None
) -> ImportedChecks:
    """Convert a suite to checks.

    Args:
        table: the table of the suite; if None, the table with the suite's name in the namespace.

    Raises:
        InvalidPipeline: it is not a suite, or its table is not known.
    """
    tree = read_json(source)
    if not is_suite(tree):
        raise InvalidPipeline(f"{source.path} is not a suite: it has no list `expectations`")
    names = (tree.get("name"), tree.get("expectation_suite_name"), source.path.rpartition("/")[2])
    name = next(each for each in names if isinstance(each, str) and each)
    if table is None and namespace is None:
        raise InvalidPipeline(
            f"{source.path}: say which table the suite is about: --table namespace.table, or --namespace for "
            f"{plain_identifier(name.removesuffix('.json'))} in it"
        )
    about = table or f"{namespace}.{plain_identifier(name.removesuffix('.json'))}"
    lines = _lines(source.text, tree["expectations"])
    imported = ImportedChecks()
    for line, written in zip(lines, tree["expectations"], strict=True):
        kind, column = _name_and_column(written)
        try:
            if not isinstance(written, dict) or not isinstance(written.get("kwargs") or {}, dict):
                raise NotCarriedOver("it cannot be read: an expectation and its `kwargs` are mappings")
            checks = _checks(kind, written, Target(about, scope=scope), dialect)
        except NotCarriedOver as error:
            inactive = isinstance(error, AlwaysPasses)
            imported.leave(about, (source.path, line), kind, str(error), about=column, inactive=inactive)
        except UNREADABLE as error:
            imported.leave(about, (source.path, line), kind, f"it cannot be read: {error}", about=column)
        else:
            imported.add(about, (source.path, line), kind, checks, about=column)
    return imported


def _snake_case(name: str) -> str:
    """Convert the class name of an expectation, which releases since 1.0 also use, to its name in files."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _written_name(written: Any) -> str:
    return str((written.get("expectation_type") or written.get("type") or "?") if isinstance(written, dict) else "?")


def _name_and_column(written: Any) -> tuple[str, str]:
    """Return the name of an expectation and the column that it is about, for messages."""
    kwargs = written.get("kwargs") if isinstance(written, dict) else None
    column = kwargs.get("column") if isinstance(kwargs, dict) else None
    return _snake_case(_written_name(written)), str(column or "")


def _lines(text: str, written: list[Any]) -> list[int]:
    """Return the line of each expectation, by the order of their types in the text."""
    names = [_written_name(each) for each in written]
    entries = iter(_ENTRY.finditer(text))
    lines, line, start = [], 1, 0
    for name in names:
        entry = next((each for each in entries if each[1] == name), None)
        if entry is not None:
            line, start = line + text.count("\n", start, entry.start()), entry.start()
        lines.append(line)
    return lines


def _checks(kind: str, written: Mapping[str, Any], target: Target, dialect: str | None) -> list[Parameters]:
    given = {
        str(key).lower(): _meant(kind, str(key).lower(), value, target)
        for key, value in (written.get("kwargs") or {}).items()
    }
    limits = Limits(severity="warn" if written.get("severity") in ("warning", "info") else "fail")
    if dynamic := [key for key, value in given.items() if isinstance(value, dict) and "$PARAMETER" in value]:
        raise NotCarriedOver(f"{dynamic[0]!r} is computed when the suite runs")
    if kind == "unexpected_rows_expectation":
        query = str(given.get("unexpected_rows_query", "")).replace("{batch}", quoted_name(target.table))
        return finished(Draft(spark_condition(query, dialect)), target, limits, kind)
    builder = SUITE_EXPECTATIONS.get(kind) or EXPECTATIONS.get(kind)
    if builder is None:
        raise NotCarriedOver(f"there is no equivalent of {kind}")
    if given.get("condition_parser") == "pandas" and _PANDAS.search(str(given.get("row_condition") or "")):
        raise NotCarriedOver("the row_condition is code for pandas, not SQL")
    condition, mostly = given.pop("row_condition", None), given.pop("mostly", None)
    if condition and "other_table" in kind:
        raise NotCarriedOver("a row_condition together with another table has no equivalent here")
    if condition:
        target = target.narrowed(spark_condition(_in_sql(str(condition)), dialect))
    args = Arguments({**given, **_differences(kind), "expectation": kind})
    args.ignore(*_IGNORED, *(key for key in _OFF if not given.get(key)))
    _shift_index(kind, args)
    draft = builder(args, target)
    args.ignore("expectation")
    args.refuse_rest()
    if mostly is None or mostly == 1:
        return finished(draft, target, limits, kind)
    return _mostly(draft, _counted(kind, given, target), limits, mostly, kind)


def _meant(kind: str, key: str, value: Any, target: Target) -> Any:
    """Convert an argument to the form of dbt_expectations: no text is an expression, and tables have a namespace.

    Raises:
        NotCarriedOver: a value that must be a text or a list of names is something else.
    """
    if value is not None and (key in _TEXTS and not isinstance(value, str)):
        raise NotCarriedOver(f"{key!r} is not text: {str(value)[:40]}")
    if key in ("column_list", "column_set") and isinstance(value, list) and not _are_texts(value):
        raise NotCarriedOver(f"{key!r} is not a list of names: {str(value)[:40]}")
    if key in _BOUNDS and isinstance(value, str):
        return TextValue(value)
    if key == "other_table_name" and isinstance(value, str) and "." not in value:
        return f"{target.table.rpartition('.')[0]}.{value}"
    if key not in ("column", "column_a", "column_b", "column_list") or not value or kind.startswith("expect_table_"):
        return value  # an expectation about the columns of a table names them, and has no expressions
    return list(map(_quoted, value)) if isinstance(value, Sequence) and not isinstance(value, str) else _quoted(value)


def _are_texts(values: Sequence[Any]) -> bool:
    return all(isinstance(each, str) for each in values)


def _quoted(column: Any) -> str:
    """Return a column, in quotes unless its name is plain."""
    return str(column) if plain_name(str(column)) else f"`{column}`"


def _differences(kind: str) -> dict[str, Any]:
    """Return arguments that give the builders of dbt_expectations the meaning of Great Expectations."""
    if "_to_not_match_" in kind and kind.endswith("_list"):
        return {"match_on": "all"}
    if kind in _AGGREGATES:
        return {"needs_values": True}
    return {"by_value": True} if kind == "expect_column_value_z_scores_to_be_less_than" else {}


def _shift_index(kind: str, args: Arguments) -> None:
    if kind == "expect_column_to_exist" and (index := args.take("column_index")) is not None:
        args.put("column_index", int(index) + 1)  # Great Expectations counts from 0


def _in_sql(condition: str) -> str:
    """Convert a condition of the parser `great_expectations`, such as `col("a").notNull()`, to SQL."""
    text = re.sub(r"""col\((['"])(.*?)\1\)""", lambda match: f"`{match[2]}`", condition)
    text = text.replace(".notNull()", " IS NOT NULL").replace("==", "=")
    return text.replace('"', "'") if "`" in text else text


def _counted(kind: str, given: Mapping[str, Any], target: Target) -> Target:
    """Return the rows that `mostly` counts: those with a value, or those that `ignore_row_if` keeps."""
    column = given.get("column")
    if column:
        return target if kind in _WITH_NULLS else target.narrowed(f"{column_sql(str(column))} IS NOT NULL")
    pair = [str(given[key]) for key in ("column_a", "column_b") if given.get(key)]
    names = pair or [str(each) for each in given.get("column_list") or []]
    ignored = given.get("ignore_row_if") or ("both_values_are_missing" if pair else "all_values_are_missing")
    return target.narrowed(without_missing(names, str(ignored))) if names else target


def _mostly(draft: Draft, rows: Target, limits: Limits, mostly: Any, kind: str) -> list[Parameters]:
    """Return the checks with `mostly`, the required share of good rows among the counted rows."""
    if len(draft.native) != 1 or draft.query is None:
        raise NotCarriedOver("`mostly` has no equivalent for this expectation here")
    made = finished(Draft(native=draft.native), rows, limits, kind)
    checks = [{name: {**parameters, "mostly": mostly}} for check in made for name, parameters in check.items()]
    if not all(map(is_valid, checks)):
        raise NotCarriedOver("`mostly` has no equivalent for this expectation here")
    return checks
