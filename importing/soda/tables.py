"""Tables that SodaCL names in headers, references and queries."""

import re
from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from importing.dbt.jinja_values import plain_identifier
from importing.imported import NotCarriedOver
from importing.sql_text import quoted_name

VARIABLE = re.compile(r"\$\{\s*(\w+)\s*\}|\$\{\{.*?\}\}")
"""A variable that Soda replaces with a value when it scans."""


def refuse_variables(text: str) -> None:
    """Make sure that a text does not depend on a scan.

    Raises:
        NotCarriedOver: it contains a variable of Soda.
    """
    if variable := VARIABLE.search(text):
        raise NotCarriedOver(f"{variable[0]} is set when Soda scans")


def full_name(name: str) -> str:
    """Return the name of a data set without quotes, with its schema if it has one."""
    return re.sub(r"[\"`\s]", "", name)


class Datasets:
    """The data sets of an import. Each is the table of the same name in the namespace of the import.

    The schema before a name is dropped, so data sets of two schemas could become the same table.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._checked: dict[str, set[str]] = {}
        self._referred: dict[str, set[str]] = {}

    def note(self, name: str, *, checked: bool) -> None:
        """Record a data set that a file names, in checks or in a reference."""
        noted = self._checked if checked else self._referred
        noted.setdefault(self.unchecked_table(name), set()).add(full_name(name))

    def table(self, name: str) -> str:
        """Return the table of a data set.

        Raises:
            NotCarriedOver: its name depends on a scan, or another data set would become the same table.
        """
        refuse_variables(name)
        table = self.unchecked_table(name)
        known = {full_name(name), *(self._checked.get(table) or self._referred.get(table) or [])}
        if len(known) > 1:
            names = " and ".join(sorted(known))
            raise NotCarriedOver(f"{names} would all be {table}: import each schema with a namespace of its own")
        return table

    def unchecked_table(self, name: str) -> str:
        """Return the table of a data set, without a check that no other data set becomes the same table."""
        return f"{self._namespace}.{plain_identifier(full_name(name).rpartition('.')[2])}"

    def checked_name(self, table: str) -> str:
        """Return the name of the data set with checks that became a table; empty if there is none."""
        return next(iter(self._checked.get(table, ())), "")


def qualified(query: str, namespace: str) -> str:
    """Add a namespace to the tables of a Spark SQL query that have none. The rest stays unchanged.

    Raises:
        NotCarriedOver: it does not parse, or a table is in double quotes, which do not quote names in Spark.
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
    """Yield the tables of a query without a namespace, except its own common table expressions."""
    for scope in traverse_scope(tree):
        own = {name.lower() for name in scope.cte_sources}
        for table in scope.tables:
            is_name = isinstance(table.this, exp.Identifier) and len(table.parts) == 1
            if is_name and table.name.lower() not in own:
                yield table


def _start(table: exp.Table) -> int:
    return int(table.this.meta["start"])
