"""Convert constraints, contracts and freshness of sources in dbt's property files to drafts of checks."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

from importing.arguments import Arguments
from importing.dbt.generic_tests import DBT_TESTS, relationship
from importing.dbt.jinja_values import DbtValues
from importing.dbt.properties import DbtTable
from importing.dbt.sql import DbtSql
from importing.drafts import Draft, Target, native
from importing.expectations.columns import column_types
from importing.expectations.tables import measured
from importing.expectations.times import date_part, span
from importing.expectations.values import row_condition
from importing.imported import NotCarriedOver, Parameters
from importing.sql_text import column_sql, number, plain_name
from importing.yaml_lines import line_of, plain

_SECONDS = {"minute": 60, "hour": 3600, "day": 86400}


def constraint_drafts(
    table: DbtTable, values: DbtValues, target: Target, sql: DbtSql
) -> Iterator[tuple[int, str, Callable[[], Draft]]]:
    """Yield the line, the name and the draft builder of each constraint of a table and of its columns."""
    for node, column in [(table.node, None), *((each, str(each.get("name", ""))) for each in table.columns)]:
        config = node.get("config") or {}
        listed = node.get("constraints") or config.get("constraints") or []
        for index, each in enumerate(listed):
            line = line_of(listed, index, line_of(node))
            kind = str(each.get("type", each) if isinstance(each, dict) else each)
            name = f"constraint {kind}{f'({column})' if column else ''}"
            given = plain(each) if isinstance(each, dict) else {}
            yield line, name, partial(_constraint, kind.lower(), given, column, values, target, sql)


def _constraint(
    kind: str, given: dict[str, Any], column: str | None, values: DbtValues, target: Target, sql: DbtSql
) -> Draft:
    listed = given.get("columns") or []
    columns = [column] if column else [str(each) for each in (listed if isinstance(listed, list) else [listed])]
    if kind == "check":
        expression = str(values.resolve(given.get("expression") or ""))
        if not expression:
            raise NotCarriedOver("the constraint has no `expression`")
        return row_condition(target, f"({sql.condition(expression)})")
    if not columns:
        raise NotCarriedOver("the constraint names no columns")
    if kind == "not_null":
        checks = [check for name in columns for check in native("not_null", column=name)]
        return Draft(native=checks)
    if kind in ("unique", "primary_key"):
        one = kind == "unique" and len(columns) == 1
        args = Arguments({"column_name": columns[0]} if one else {"columns": columns, "kind": kind})
        return DBT_TESTS["unique" if one else "unique_combination_of_columns"](args, target)
    if kind == "foreign_key":
        fields = given.get("to_columns") or []
        if not given.get("to") or len(fields) != 1 or len(columns) != 1:
            raise NotCarriedOver("a foreign key needs `to` and exactly one column on each side to be carried over")
        return relationship(columns[0], str(values.resolve(given["to"])), str(fields[0]), target)
    raise NotCarriedOver(f"a constraint {kind} says nothing about the rows")


def contract_checks(table: DbtTable) -> Iterator[tuple[int, str, Callable[[], list[Parameters]]]]:
    """Yield the line, the name and the builder of the checks of an enforced contract, and of each unknown type."""
    config = table.node.get("config") or {}
    contract = config.get("contract") or table.node.get("contract") or {}
    if contract.get("enforced") is not True or not table.columns:
        return
    names = [plain_name(str(each.get("name", ""))) or str(each.get("name", "")) for each in table.columns]
    checks = native("column_names", columns=names)
    for name, column in zip(names, table.columns, strict=True):
        try:
            kind = column_types([column["data_type"]]) if column.get("data_type") else None
        except NotCarriedOver as error:
            yield line_of(column, "data_type", table.line), f"contract type({name})", partial(_refuse, str(error))
        else:
            checks += native("column_type", column=name, type=kind) if kind else []
    yield table.line, "contract", partial(list, checks)


def _refuse(why: str) -> list[Parameters]:
    raise NotCarriedOver(why)


def freshness_drafts(
    table: DbtTable, values: DbtValues, target: Target, sql: DbtSql
) -> Iterator[tuple[int, Literal["fail", "warn"], Callable[[], tuple[Draft, Target]]]]:
    """Yield the line, the severity and the draft builder of each limit on the age of a source's table."""
    source, node = table.source, table.node
    levels = (source, source.get("config") or {}, node, node.get("config") or {})
    freshness: dict[str, Any] = {}
    for level in levels:
        if "freshness" in level and level["freshness"] is None:
            freshness = {}
        freshness |= plain(level.get("freshness") or {})
    field = next((each["loaded_at_field"] for each in reversed(levels) if each.get("loaded_at_field")), None)
    line = line_of(node, "freshness", 0) or line_of(source, "freshness", 0) or table.line
    kinds: tuple[tuple[str, Literal["fail", "warn"]], ...] = (("error_after", "fail"), ("warn_after", "warn"))
    for key, severity in kinds:
        limit = freshness.get(key)
        if isinstance(limit, dict) and limit.get("count") is not None:
            yield line, severity, _limit_on_age(limit, field, freshness.get("filter"), values, target, sql)


def _limit_on_age(
    limit: dict[str, Any], field: Any, condition: Any, values: DbtValues, target: Target, sql: DbtSql
) -> Callable[[], tuple[Draft, Target]]:
    def build() -> tuple[Draft, Target]:
        if field is None:
            raise NotCarriedOver("there is no `loaded_at_field`: dbt asks the warehouse when the table was loaded")
        column, given = sql.expression(str(values.resolve(str(field)))), values.resolve(limit)
        part, count = date_part(given.get("period", "day")), number(given["count"])
        rows = target.narrowed(sql.condition(values.resolve(condition)) if condition else None)
        name = plain_name(column)
        newest = f"max(CAST({column_sql(column)} AS TIMESTAMP))"
        is_new = f"observed >= current_timestamp() - {span(given['count'], part)}"
        query = measured(newest, f"coalesce({is_new}, FALSE)", rows)  # a table without rows is not fresh
        simple = name and part in _SECONDS and isinstance(count, int)
        age = f"{count * _SECONDS[part]}s" if simple and isinstance(count, int) else None
        return Draft(query, native("freshness", column=name, max_age=age) if age else []), rows

    return build
