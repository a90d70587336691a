"""The tables that SodaCL names: those that queries read without a namespace are of the namespace of the import."""

from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from sluice.importing.imported import NotCarriedOver
from sluice.importing.sql_text import quoted_name


def qualified(query: str, namespace: str) -> str:
    """Return a query in Spark SQL whose tables without a namespace are those of one; all else stays as it is.

    Raises:
        NotCarriedOver: it does not parse, or a table stands in double quotes, which are no quotes of names in Spark.
    """
    try:
        (tree,) = sqlglot.parse(query, dialect=Spark)
        tables = list(_unqualified(tree)) if isinstance(tree, exp.Query) else []
    except (SqlglotError, ValueError, RecursionError) as error:
        raise NotCarriedOver(f"{query[:80]!r} does not parse as one query of Spark SQL") from error
    for table in sorted(tables, key=_start, reverse=True):
        start, end = _start(table), table.this.meta["end"] + 1
        if query[start] == '"':
            raise NotCarriedOver(f"{query[start:end]} is a literal in Spark SQL: name the dialect with --dialect")
        query = query[:start] + quoted_name(f"{namespace}.{table.name}") + query[end:]
    return query


def _unqualified(tree: exp.Query) -> Iterator[exp.Table]:
    """Yield the tables of a query that have no namespace, and are none of its own common table expressions."""
    for scope in traverse_scope(tree):
        own = {name.lower() for name in scope.cte_sources}
        for table in scope.tables:
            is_name = isinstance(table.this, exp.Identifier) and len(table.parts) == 1
            if is_name and table.name.lower() not in own:
                yield table


def _start(table: exp.Table) -> int:
    return int(table.this.meta["start"])
