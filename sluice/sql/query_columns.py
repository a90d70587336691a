"""Columns that a query in Spark SQL reads and returns, derived from its text and the columns of its tables.

Uncertain cases are left to Spark, which reports an error of its own when the query runs.
"""

from collections.abc import Iterator, Mapping, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

Tables = Mapping[str, Sequence[str]]
"""The columns of tables and views, by their names in lower case."""

_FUNCTIONS = frozenset(
    (
        "current_catalog", "current_database", "current_date", "current_schema", "current_time", "current_timestamp",
        "current_user", "grouping__id", "localtimestamp", "session_user", "session_window",
        "spark_grouping_id", "user", "window",
    )
)  # fmt: skip
"""Names that Spark reads as functions even without brackets, unless a column has the name."""
_OF_SEVERAL_NAMES = (
    exp.Aliases,
    exp.Anonymous,
    exp.Column,
    exp.Explode,
    exp.Inline,
    exp.Posexplode,
    exp.Star,
    exp.UDTF,
)
"""Expressions of SELECT that may produce columns whose names are not in the text."""


def unknown_columns(query: str, tables: Tables) -> list[str]:
    """Return the columns that a query names but none of its tables has, in order.

    A scope of the query that reads a table which is not in `tables` is skipped.
    """
    names = [name for scope in _scopes(query) for name in _unknown_in(scope, tables)]
    return list(dict.fromkeys(names))


def returned_columns(query: str, tables: Tables) -> list[str] | None:
    """Return the names of the columns that a query returns, or None if they are uncertain."""
    scopes = _scopes(query)
    return _returned(scopes[-1], tables) if scopes else None


def _scopes(query: str) -> list[Scope]:
    """Return the scopes of a query, the outermost last; empty if it cannot be parsed."""
    try:
        return traverse_scope(sqlglot.parse_one(query, dialect=Spark))
    except (SqlglotError, RecursionError):
        return []


def _unknown_in(scope: Scope, tables: Tables) -> list[str]:
    if scope.set_operation_scopes or _is_pivoted(scope):
        return []
    sources, selected = _sources(scope), _selected(scope, tables)
    readable, all_are_known = _readable(scope, tables)
    unknown = []
    for column in scope.find_all(exp.Column):
        if isinstance(column.this, exp.Star) or column.find_ancestor(exp.Lambda):
            continue
        first, *rest = [part.name for part in column.parts]
        if rest:
            source = sources.get(first.lower())
            of_source = None if source is None or _has(readable, first) else _columns(source, tables)
            if of_source is not None and len(rest) == 1 and not _has(of_source, rest[0]):
                unknown.append(rest[0])
        elif all_are_known and selected is not None and not _has([*readable, *selected], first):
            unknown.append(first)
    return unknown


def _selected(scope: Scope, tables: Tables) -> list[str] | None:
    """Return the names that SELECT introduces in addition to columns, or None if they are uncertain."""
    names: list[str] = []
    for projection in _projections(scope):
        of_projection = _names(projection, scope, tables)
        if of_projection is None and isinstance(projection, _OF_SEVERAL_NAMES):
            return None
        is_own_name = isinstance(projection, exp.Column) and len(projection.parts) == 1
        names += [] if is_own_name else of_projection or []
    return names


def _is_pivoted(scope: Scope) -> bool:
    """Return True if PIVOT or UNPIVOT changes the columns of a table or a subquery."""
    return any(node.args.get("pivots") for node in scope.find_all(exp.Table, exp.Subquery))


def _has(columns: Sequence[str], name: str) -> bool:
    """Return True for a listed or hidden column (`_file`), a generated name (`count(1)`) or a function's name."""
    lower = name.lower()
    return name.startswith("_") or "(" in name or lower in _FUNCTIONS or lower in {each.lower() for each in columns}


def _around(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and its enclosing scopes, the innermost first."""
    around: Scope | None = scope
    while around is not None:
        yield around
        around = around.parent


def _sources(scope: Scope) -> dict[str, exp.Table | Scope]:
    """Return the tables and subqueries that a scope can name, by their names in lower case."""
    sources: dict[str, exp.Table | Scope] = {}
    for each in _around(scope):
        for name, source in each.sources.items():
            sources.setdefault(name.lower(), source)
    return sources


def _readable(scope: Scope, tables: Tables) -> tuple[list[str], bool]:
    """Return the known columns that a scope and its enclosing scopes can read, and whether they are all."""
    of_sources = [_columns(source, tables) for each in _around(scope) for source in each.sources.values()]
    known = [columns for columns in of_sources if columns is not None]
    return [name for columns in known for name in columns], len(known) == len(of_sources)


def _columns(source: exp.Table | Scope, tables: Tables) -> list[str] | None:
    if isinstance(source, Scope):
        return _returned(source, tables)
    if source.args.get("pivots"):
        return None
    if source.alias_column_names:
        return list(source.alias_column_names)
    columns = tables.get(".".join(part.name for part in source.parts).lower())
    return None if columns is None else list(columns)


def _returned(scope: Scope, tables: Tables) -> list[str] | None:
    if scope.outer_columns:
        return list(scope.outer_columns)
    if _is_pivoted(scope):
        return None
    if scope.set_operation_scopes:
        return _returned(scope.set_operation_scopes[0], tables)
    projections = _projections(scope)
    if not projections:
        return None
    columns: list[str] = []
    for projection in projections:
        names = _names(projection, scope, tables)
        if names is None:
            return None
        columns += names
    return columns


def _names(projection: exp.Expr, scope: Scope, tables: Tables) -> list[str] | None:
    """Return the columns that one expression of SELECT produces, or None if Spark generates a name."""
    is_all = isinstance(projection, exp.Star) or isinstance(projection.this, exp.Star)
    if is_all and isinstance(projection, exp.Star | exp.Column):
        return _all_columns(projection, scope, tables)
    return [projection.alias_or_name] if isinstance(projection, exp.Alias | exp.Column) else None


def _all_columns(star: exp.Star | exp.Column, scope: Scope, tables: Tables) -> list[str] | None:
    """Return the columns that `*` or `t.*` stands for, or None if they are not known."""
    table = star.table.lower() if isinstance(star, exp.Column) else ""
    plain = star.this if isinstance(star, exp.Column) else star
    if any(plain.args.values()) or scope.expression.args.get("laterals"):
        return None
    columns: list[str] = []
    if table and table not in {name.lower() for name in scope.selected_sources}:
        return None  # the name is a column, and `*` its fields
    for name, source in scope.selected_sources.items():
        if table in ("", name.lower()):
            of_source = _columns(source[1], tables)
            if of_source is None:
                return None
            columns += of_source
    return columns


def _projections(scope: Scope) -> list[exp.Expr]:
    return list(scope.expression.expressions) if isinstance(scope.expression, exp.Select) else []
