"""The tables that checks read: from the audit until the merge, main may not change them."""

from collections.abc import Iterator, Mapping

from sluice.pipeline.table import Table


def watched_tables(tables: Mapping[str, Table]) -> list[str]:
    """Return every table that a check of a pipeline reads, on whichever branch, in alphabetical order.

    A table that has checks is read by them, also where the run leaves it as it is.

    Args:
        tables: the tables of the pipeline.
    """
    checked = {name for name, table in tables.items() if table.checks}
    read = {each for table in tables.values() for check in table.checks for each in check.tables_read}
    return sorted(checked | {name for each in read for name in _possible_names(each)})


def _possible_names(name: str) -> Iterator[str]:
    """Yield the tables of the catalog that a name in a query may mean; that one of them exists is not needed.

    Spark allows the name of the catalog before it, and that of a metadata table of Iceberg's, such as `files`, after.
    """
    parts = name.split(".")
    yield name
    if len(parts) > 2:
        yield from (".".join(parts[1:]), ".".join(parts[:-1]))
    if len(parts) > 3:
        yield ".".join(parts[1:-1])
