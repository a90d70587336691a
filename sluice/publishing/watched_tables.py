"""Tables that checks read. From the audit until the merge, main may not change them."""

from collections.abc import Iterator, Mapping

from sluice.pipeline.table import Table


def watched_tables(tables: Mapping[str, Table]) -> list[str]:
    """Return every table that a check of a pipeline reads, on any branch, in alphabetical order.

    A table with checks is always read by them, even if the run does not change it.

    Args:
        tables: the tables of the pipeline.
    """
    checked = {name for name, table in tables.items() if table.checks}
    read = {each for table in tables.values() for check in table.checks for each in check.tables_read}
    return sorted(checked | {name for each in read for name in _possible_names(each)})


def _possible_names(name: str) -> Iterator[str]:
    """Yield the tables of the catalog that a name in a query may mean. They need not exist.

    Spark allows the name of the catalog before a table's name, and that of an Iceberg metadata table, such as `files`,
    after it.
    """
    parts = name.split(".")
    yield name
    if len(parts) > 2:
        yield from (".".join(parts[1:]), ".".join(parts[:-1]))
    if len(parts) > 3:
        yield ".".join(parts[1:-1])
