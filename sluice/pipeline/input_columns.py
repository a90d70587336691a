"""Columns that a pipeline names, held against those that its input is known to have before anything starts."""

from collections.abc import Iterator, Sequence

from sluice.checks.base import check_location
from sluice.identifiers import suggestion
from sluice.pipeline.file import Location
from sluice.pipeline.model import Pipeline
from sluice.pipeline.table import Table
from sluice.pipeline.table_layout import order_parts, partition_parts


def becomes_the_table(pipeline: Pipeline) -> bool:
    """Return whether the columns of the input are those of the table: no transform or program changes them."""
    write = pipeline.write
    return write.built_in and write.source is not None and write.transform is None and len(pipeline.tables) == 1


def check_column_problems(pipeline: Pipeline, columns: Sequence[str]) -> list[str]:
    """Return which columns the checks name and the input does not have, each with the file and line of its check."""
    known = {name.lower() for name in columns}
    return [
        f"{check_location(check)}{table}: {_missing(name, columns)}"
        for table, settings in pipeline.tables.items()
        for check in settings.checks
        for name in check.column_names
        if name.lower() not in known
    ]


def layout_column_problems(pipeline: Pipeline, columns: Sequence[str]) -> list[tuple[Location, str]]:
    """Return which columns keys, partitions, order and comments name and the input does not have."""
    known = {name.lower() for name in columns}
    named: list[tuple[Location, str]] = [(("write", "keys"), key) for key in pipeline.write.keys]
    for table, settings in pipeline.tables.items():
        named += [(("tables", table, key), name) for key, name in _columns_of_layout(settings)]
    return [
        (where, f"{where[-1]}: {_missing(name, columns)}")
        for where, name in dict.fromkeys(named)
        if name.lower() not in known
    ]


def _columns_of_layout(table: Table) -> Iterator[tuple[str, str]]:
    yield from (("partition_by", partition_parts(term)[2]) for term in table.partition_by)
    yield from (("sort_by", partition_parts(order_parts(term)[0])[2]) for term in table.sort_by)
    yield from (("comments", name) for name in table.comments)


def _missing(name: str, columns: Sequence[str]) -> str:
    return f"the input has no column {name!r}{suggestion(name, columns)}"
