"""Parse and run SQL that a person wrote, in the process of a query."""

import json
import re
from typing import Any

import duckdb

from sluice.contracts.lake_queries import QueryRows, check_result_size
from sluice.errors import InvalidInput
from sluice.sql.arrow_values import python_values
from sluice.sql.parsing import NoQuery, tables_of_duckdb
from sluice.sql.tokens import SqlProblem
from sluice.sql.values import json_value

NARROW = "narrow the query by fewer columns, a condition or LIMIT"
NESTED = "the query is nested too deeply: write it in fewer levels"
_BATCH = 1000
_LARGER_IN_MEMORY = 20
"""Maximum ratio of rows' size in memory to their size as JSON: that of a wide column of short values."""
_SHOW_TABLES = re.compile(r"\s*SHOW\s+(?:ALL\s+)?TABLES\s*;?\s*", re.I)


def asks_for_tables(sql: str) -> bool:
    """Return True if SQL requests the list of tables, which the catalog answers."""
    return _SHOW_TABLES.fullmatch(sql) is not None


def tables_in(sql: str) -> list[str]:
    """Return the full names of the tables that a query reads, without those that it defines itself.

    Raises:
        InvalidInput: the SQL is not exactly one query, or a table has no namespace, or one with unquoted dots.
    """
    try:
        named = tables_of_duckdb(sql)
    except SqlProblem as problem:
        if isinstance(problem.__cause__, RecursionError):
            raise InvalidInput(NESTED) from None
        if not isinstance(problem, NoQuery):
            raise InvalidInput(f"the query does not parse: {problem}") from None
        raise InvalidInput(
            "write one query, such as SELECT * FROM shop.orders LIMIT 10: `query` runs nothing else"
        ) from None
    for parts in named:
        if len(parts) == 1:
            raise InvalidInput(f"name the table {parts[0]!r} with its namespace, such as shop.{parts[0]}")
        if len(parts) > 2:
            *namespace, name = parts
            raise InvalidInput(f'write a namespace with dots in quotes: "{".".join(namespace)}".{name}')
    return [".".join(parts) for parts in named]


def read_rows(connection: duckdb.DuckDBPyConnection, sql: str) -> QueryRows:
    """Return the rows of a query. The caller has restricted what the query may read.

    Raises:
        InvalidInput: the SQL is not a query, or its result is too large.
        duckdb.Error, pyarrow.ArrowException, OSError: the query fails. Arrow raises errors after the first rows.
    """
    relation = connection.sql(sql)
    if relation is None:
        raise InvalidInput("this SQL returns no rows: write a query, such as SELECT * FROM results LIMIT 10")
    rows: list[list[Any]] = []
    size = len(json.dumps(relation.columns))
    for batch in relation.to_arrow_reader(_BATCH):
        check_result_size(batch.nbytes // _LARGER_IN_MEMORY, NARROW)
        columns = [python_values(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            rows.append([json_value(value) for value in row])
            size += len(json.dumps(rows[-1]))
        check_result_size(size, NARROW)
    return QueryRows(columns=list(relation.columns), rows=rows)
