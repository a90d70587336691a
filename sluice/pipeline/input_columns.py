"""Compare the columns that a pipeline names with the known columns of its input, before anything starts."""

from collections.abc import Iterator, Mapping, Sequence

from sluice.checks.base import Check, check_location
from sluice.checks.query import Sql
from sluice.identifiers import suggestion
from sluice.pipeline.model import Pipeline
from sluice.pipeline.table import Table
from sluice.pipeline.table_layout import order_parts, partition_parts
from sluice.pipeline.write import SOURCE_VIEW
from sluice.pipeline.yaml_values import Location
from sluice.sql.expression import returned_columns, unknown_columns
from sluice.sql.schema_ddl import schema_types, stored_type


def columns_of_table(pipeline: Pipeline, columns: Sequence[str] | None) -> list[str] | None:
    """Return the columns of the written rows, or None if they are unknown before the write.

    Args:
        columns: the columns of the input, if they are known.
    """
    write = pipeline.write
    if not write.built_in or write.source is None or len(pipeline.tables) != 1:
        return None
    if write.transform is not None:
        return returned_columns(write.transform, {} if columns is None else {SOURCE_VIEW: columns})
    return None if columns is None else list(columns)


def transform_column_problems(pipeline: Pipeline, columns: Sequence[str]) -> list[tuple[Location, str]]:
    """Return a problem for each column that the transform reads and the input does not have."""
    transform = pipeline.write.transform
    unknown = unknown_columns(transform, {SOURCE_VIEW: columns}) if transform else []
    return [(("write", "transform"), f"transform: {_missing(name, columns)}") for name in unknown]


def check_column_problems(pipeline: Pipeline, columns: Sequence[str]) -> list[str]:
    """Return a problem for each column that a check names and the written rows do not have.

    Each problem begins with file and line of the check.
    """
    return [
        f"{check_location(check)}{table}: {_missing(name, columns, _owner(pipeline))}"
        for table, settings in pipeline.tables.items()
        for check in settings.checks
        for name in _unknown(check, table, columns)
    ]


def check_type_hints(pipeline: Pipeline, guessed: Mapping[str, str]) -> list[str]:
    """Return a hint for each check that does not fit the stated or guessed type of its column.

    It is a hint and not an error, because a table that exists may have other types.

    Args:
        guessed: by the name of a column, its type in SQL notation; empty if `schema` states the types.
    """
    write = pipeline.write
    if not write.built_in or write.source is None or write.transform is not None or len(pipeline.tables) != 1:
        return []
    stated = schema_types(write.source.schema_) if write.source.schema_ else {}
    types = {name: stored_type(type) for name, type in (stated or guessed).items()}
    checks = (check for table in pipeline.tables.values() for check in table.checks)
    origin = "types of `schema`" if stated else "types guessed"
    return [
        f"{check_location(check)}{problem} ({origin}, used if the table is new)"
        for check in checks
        if types.keys() >= set(check.column_names)
        for problem in check.type_problems(types)
    ]


def _unknown(check: Check, table: str, columns: Sequence[str]) -> list[str]:
    if isinstance(check, Sql):
        return unknown_columns(check.query, {table.lower(): columns})
    known = {name.lower() for name in columns}
    return [name for name in check.column_names if name.lower() not in known]


def layout_column_problems(pipeline: Pipeline, columns: Sequence[str]) -> list[tuple[Location, str]]:
    """Return a problem for each column of keys, partitions, order or comments that the written rows do not have."""
    known = {name.lower() for name in columns}
    named: list[tuple[Location, str]] = [(("write", "keys"), key) for key in pipeline.write.keys]
    for table, settings in pipeline.tables.items():
        named += [(("tables", table, key), name) for key, name in _columns_of_layout(settings)]
    return [
        (where, f"{where[-1]}: {_missing(name, columns, _owner(pipeline))}")
        for where, name in dict.fromkeys(named)
        if name.lower() not in known
    ]


def _columns_of_layout(table: Table) -> Iterator[tuple[str, str]]:
    yield from (("partition_by", partition_parts(term)[2]) for term in table.partition_by)
    yield from (("sort_by", partition_parts(order_parts(term)[0])[2]) for term in table.sort_by)
    yield from (("comments", name) for name in table.comments)


def _owner(pipeline: Pipeline) -> str:
    return "the input has" if pipeline.write.transform is None else "the transform returns"


def _missing(name: str, columns: Sequence[str], owner: str = "the input has") -> str:
    return f"{owner} no column {name!r}{suggestion(name, columns)}"
