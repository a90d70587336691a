"""SQL of a person, in a DuckDB that reaches nothing but what it is given: no other file, no network, no setting."""

import json
import re
import time
from threading import Timer
from typing import Any

import duckdb
import pyarrow as pa

from sluice.contracts.lake_queries import QueryRows, check_result_size
from sluice.errors import InvalidInput
from sluice.sql.parsing import tables_of_duckdb
from sluice.sql.tokens import SqlProblem
from sluice.sql.values import json_value

_VIEW = "results"
_LIMIT = 45.0
"""Seconds that a query may take: less than the activity has."""
_BATCH = 1000
_LARGER_IN_MEMORY = 20
"""How much larger rows may be in memory than as JSON: a wide column of short values."""
_NARROW = "ask for less, by fewer columns, a condition or LIMIT"
_SHOW_TABLES = re.compile(r"\s*SHOW\s+(?:ALL\s+)?TABLES\s*;?\s*", re.I)
_LOCKED = "SET python_enable_replacements = false; SET enable_external_access = false; SET lock_configuration = true"


def run_sql(results: pa.Table, sql: str, memory: str) -> QueryRows:
    """Return the rows of a query over `results`.

    Args:
        memory: how much memory DuckDB may use, as `2GB`.

    Raises:
        InvalidInput: DuckDB refuses the query, it takes too long, or its result is too large.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "memory_limit": memory,
    }
    with duckdb.connect(":memory:", config=config) as connection:
        connection.register(_VIEW, results)
        connection.execute(_LOCKED)
        return read_rows(connection, sql)


def read_rows(connection: duckdb.DuckDBPyConnection, sql: str) -> QueryRows:
    """Return the rows of a query; what it may read is decided before.

    Raises:
        InvalidInput: DuckDB refuses the query, it takes too long, or its result is too large.
    """
    timer = Timer(_LIMIT, connection.interrupt)
    started = time.monotonic()
    timer.start()
    try:
        return _read(connection, sql)
    except (duckdb.Error, pa.ArrowException, OSError) as error:  # Arrow raises what fails after the first rows
        if time.monotonic() - started >= _LIMIT:
            raise InvalidInput(f"the query took longer than {_LIMIT:.0f} seconds: narrow it") from None
        raise InvalidInput(str(error).split("\n\n")[0]) from None
    finally:
        timer.cancel()


def asks_for_tables(sql: str) -> bool:
    """Return whether SQL asks which tables there are: this is answered by the catalog."""
    return _SHOW_TABLES.fullmatch(sql) is not None


def tables_in(sql: str) -> list[str]:
    """Return the full names of the tables that a query reads, without those that it defines itself.

    Raises:
        InvalidInput: it is not one query, or names a table in a way that DuckDB takes for something else.
    """
    try:
        named = tables_of_duckdb(sql)
    except SqlProblem:
        raise InvalidInput("write one query, such as SELECT * FROM shop.orders LIMIT 10: nothing else is run") from None
    for parts in named:
        if len(parts) == 1:
            raise InvalidInput(f"name the table {parts[0]!r} with its namespace, such as shop.{parts[0]}")
        if len(parts) > 2:
            *namespace, name = parts
            raise InvalidInput(f'write a namespace with dots in quotes: "{".".join(namespace)}".{name}')
    return [".".join(parts) for parts in named]


def _read(connection: duckdb.DuckDBPyConnection, sql: str) -> QueryRows:
    relation = connection.sql(sql)
    if relation is None:
        raise InvalidInput("this SQL returns no rows: write a query, such as SELECT * FROM results LIMIT 10")
    rows: list[list[Any]] = []
    size = 0
    for batch in relation.to_arrow_reader(_BATCH):
        check_result_size(batch.nbytes // _LARGER_IN_MEMORY, _NARROW)
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            rows.append([json_value(value) for value in row])
            size += len(json.dumps(rows[-1]))
        check_result_size(size, _NARROW)
    return QueryRows(columns=list(relation.columns), rows=rows)
