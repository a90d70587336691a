"""The SQL query that finds the bad rows of a check on the branch of a run."""

from collections.abc import Mapping

from sluice.checks.base import ROWS, Check, CheckQuery, Evaluation
from sluice.checks.verdicts import BadRowsQuery
from sluice.sql.dialect import DUCKDB, SPARK, Dialect, NeedsSpark

_BAD, _SHOWN = "sluice_bad", "sluice_shown"


def bad_rows_query(table: str, check: Check, types: Mapping[str, str], evaluation: Evaluation) -> BadRowsQuery | None:
    """Return the query that finds the bad rows of a check that did not pass; None if there is none.

    It reads all rows of the table. So with `scope: added`, it also returns bad rows that main had before.

    Args:
        types: the Iceberg type of each column of the table.
    """
    if evaluation.passed or not evaluation.failed_rows:
        return None
    for sql in (DUCKDB, SPARK):
        try:
            query = check.build_query(sql, types)
        except NeedsSpark:
            continue
        except NotImplementedError:  # metadata answers this check, which counts no rows
            return None
        text = _text(table, query, sql)
        return BadRowsQuery(sql=text, dialect="duckdb" if sql is DUCKDB else "spark") if text else None
    return None


def _text(table: str, query: CheckQuery, sql: Dialect) -> str:
    """Return the query in a dialect; empty if no query on one branch finds the rows."""
    if query.user_query:
        return query.user_query
    if query.bad:
        return f"SELECT *\nFROM {_name(table, sql)}\nWHERE {query.bad}"
    other = query.reference
    if not query.groups or (other and other.ref == "main"):
        return ""
    views = {ROWS: table, **({other.view: other.table} if other else {})}
    named = ",\n  ".join(f"{view} AS (SELECT * FROM {_name(name, sql)})" for view, name in views.items())
    return f"WITH {named}\n{_rows_of_groups(query, sql) if query.group_keys else query.groups}"


def _rows_of_groups(query: CheckQuery, sql: Dialect) -> str:
    columns = [sql.column(name) for name in query.group_keys]
    only = f" WHERE {query.where}" if query.where else ""
    same = " AND ".join(f"{_SHOWN}.{each} IS NOT DISTINCT FROM {_BAD}.{each}" for each in columns)
    return (
        f"SELECT {_SHOWN}.*\nFROM (SELECT * FROM {ROWS}{only}) AS {_SHOWN}\nJOIN (\n  {query.groups}\n) AS {_BAD}\n"
        f"ON {same}\nORDER BY {', '.join(f'{_SHOWN}.{each}' for each in columns)}"
    )


def _name(table: str, sql: Dialect) -> str:
    """Return the quoted name of a table. DuckDB has one level of namespaces, whose name may have dots."""
    namespace, _, name = table.rpartition(".")
    levels = [namespace] if sql is DUCKDB else namespace.split(".")
    return ".".join(sql.column(each) for each in (*levels, name))
