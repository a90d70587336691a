"""Validate SQL that users write before anything runs, and translate it for DuckDB if that is safe."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from sluice.lines import shortened_line
from sluice.sql import tokens
from sluice.sql.tokens import SqlProblem
from sluice.sql.validation import check_condition, check_query, check_statement, first_error, parse_condition
from sluice.sql.values import kind_of

__all__ = [
    "columns_of", "expression_problem", "query_problem", "statement_problem", "tables_of", "tables_of_duckdb",
    "to_duckdb", "without_comments",
]  # fmt: skip
_SPARK, _DUCKDB = Spark, DuckDB
_SAME = (
    exp.And, exp.Or, exp.Not, exp.Paren, exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Is,
    exp.In, exp.Between, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Neg, exp.Add, exp.Sub,
    exp.Mul, exp.Coalesce,
)  # fmt: skip
"""Expressions with the same meaning in both engines, if their operands are of one kind (see `_families`)."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.In, exp.Between, exp.Coalesce)
_ARITHMETIC = (exp.Neg, exp.Add, exp.Sub, exp.Mul)
_REMEMBERED = 20_000
"""Number of texts whose results are cached: each message of a run contains its pipeline and validates it."""
_SHOWN = 80
"""Maximum number of characters of an expression in a message."""


@lru_cache(_REMEMBERED)
def expression_problem(text: str) -> str | None:
    """Return the reason why a text is not one condition in Spark SQL, or None."""
    return _problem(text, partial(check_condition, text))


def columns_of(text: str) -> list[str]:
    """Return the columns that a condition reads, in order."""
    condition = parse_condition(text)
    names = [each.parts[0].name for each in condition.find_all(exp.Column)] if condition else []
    return list(dict.fromkeys(names))


@lru_cache(_REMEMBERED)
def query_problem(text: str, views: tuple[str, ...] = ()) -> str | None:
    """Return the reason why a text is not one query that only reads catalog tables and these views, or None."""
    return _problem(text, partial(check_query, text, views))


@lru_cache(_REMEMBERED)
def statement_problem(text: str) -> str | None:
    """Return the reason why a text is not one statement that changes tables of the catalog, or None."""
    return _problem(text, partial(check_statement, text))


@lru_cache(_REMEMBERED)
def without_comments(text: str) -> str:
    """Return SQL without its comments. The rest keeps its line and column.

    Raises:
        SqlProblem: as `tokens.tokens` does.
    """
    return tokens.without_comments(text)


def tables_of(text: str) -> list[str]:
    """Return the full names of the tables that a query reads, except its own common table expressions."""
    return [*_tables_of(text)]


class NoQuery(SqlProblem):
    """Raised when SQL is a statement of another kind, or several statements."""

    def __init__(self) -> None:
        super().__init__("it is not one query")


def tables_of_duckdb(text: str) -> list[tuple[str, ...]]:
    """Return the tables that a query in DuckDB's SQL reads, each as the parts of its name.

    Raises:
        SqlProblem: it is not one query.
    """
    try:
        (tree,) = sqlglot.parse(text, dialect=_DUCKDB)
        if not isinstance(tree, exp.Query | exp.Describe | exp.Summarize):
            raise NoQuery
        own = {each.alias_or_name.lower() for each in tree.find_all(exp.CTE)}
        named = [each for each in tree.find_all(exp.Table) if isinstance(each.this, exp.Identifier)]
        parts = {tuple(part.name for part in each.parts) for each in named}
        return sorted(each for each in parts if len(each) > 1 or each[0].lower() not in own)
    except (SqlglotError, ValueError, RecursionError) as error:
        raise (SqlProblem(first_error(error)) if isinstance(error, SqlglotError) else NoQuery()) from error


@lru_cache(_REMEMBERED)
def _tables_of(text: str) -> tuple[str, ...]:
    tree = sqlglot.parse_one(text, dialect=_SPARK)
    return tuple(sorted({".".join(parts) for parts in _table_parts(tree)}))


def _table_parts(tree: exp.Expr) -> set[tuple[str, ...]]:
    return {
        tuple(part.name for part in source.parts)
        for scope in traverse_scope(tree)
        for source in scope.sources.values()
        if isinstance(source, exp.Table)
    }


def likely_duckdb(text: str) -> str:
    """Return an expression in DuckDB's SQL. Its meaning may differ from Spark's, so it is only for previews.

    Raises:
        ValueError: it cannot be parsed.
    """
    try:
        return str(sqlglot.transpile(text, read=Spark, write=DuckDB)[0])
    except SqlglotError as error:
        raise ValueError(str(error)) from error


def to_duckdb(text: str, types: Mapping[str, str]) -> str | None:
    """Return the condition in DuckDB's SQL if it certainly has the same meaning as in Spark SQL, else None."""
    condition = parse_condition(text)
    if condition is None:
        return None
    nodes = list(condition.walk(prune=_is_date))
    if not all(isinstance(node, _SAME) or _is_date(node) for node in nodes):
        return None
    for node in nodes:
        if isinstance(node, exp.Column) and (len(node.parts) > 1 or node.name not in types):
            return None  # a field of a struct, or a name in another case
        if isinstance(node, _COMPARISONS) and not _one_family(node, types):
            return None
        if isinstance(node, _ARITHMETIC) and _families(node, types) - {"whole"}:
            return None  # decimals differ in their scale, doubles in what overflows
    return condition.sql(dialect=_DUCKDB, identify=True, comments=False)


def _one_family(node: exp.Expression, types: Mapping[str, str]) -> bool:
    families = _families(node, types)
    numbers = {"whole", "number"} if "number" in families else {"whole", "number", "double"}
    return len(families) <= 1 or families <= numbers or families == {"number", "double"}


def _is_date(node: exp.Expr) -> bool:
    """Return True for a literal such as DATE '2024-01-31'."""
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Literal):
        return False
    return bool(_DATE.fullmatch(node.this.name)) and bool(node.args["to"].is_type("date"))


def _families(node: exp.Expression, types: Mapping[str, str]) -> set[str]:
    """Return the kinds of values below a node. Mixed kinds are cast, and the engines cast differently."""
    families = set()
    for leaf in node.walk(prune=_is_date):
        if not isinstance(leaf, exp.Column | exp.Literal | exp.Boolean | exp.Cast):
            continue
        if isinstance(leaf, exp.Cast):
            families.add("date")
        elif isinstance(leaf, exp.Column):
            families.add(_FAMILIES.get(kind_of(types.get(leaf.name, "")), f"other {leaf.name}"))
        elif isinstance(leaf, exp.Boolean):
            families.add("truth")
        elif leaf.is_string:
            families.add("text")
        else:
            families.add("whole" if leaf.is_int and len(leaf.name) <= _SAFE_DIGITS else "number")
    return families


_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SAFE_DIGITS = 9
_FAMILIES = {
    "int": "whole",
    "long": "whole",
    "decimal": "number",
    "float": "single",
    "double": "double",
    "string": "text",
    "boolean": "truth",
    "date": "date",
}


def _problem(text: str, check: Callable[[], None]) -> str | None:
    try:
        check()
    except SqlProblem as problem:
        return f"{shortened_line(text, _SHOWN)!r}: {problem}"
    return None
