"""Validate SQL that users write before anything runs, and translate it for DuckDB where that is safe."""

import re
from collections.abc import Mapping

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.optimizer.scope import traverse_scope

from sluice.sql.values import kind_of

_SPARK, _DUCKDB = Spark, DuckDB
_SAME = (
    exp.And, exp.Or, exp.Not, exp.Paren, exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Is,
    exp.In, exp.Between, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Neg, exp.Add, exp.Sub,
    exp.Mul, exp.Coalesce,
)  # fmt: skip
"""Expressions with the same meaning in both engines, if their operands are of one kind (see `_families`)."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.In, exp.Between, exp.Coalesce)
_ARITHMETIC = (exp.Neg, exp.Add, exp.Sub, exp.Mul)
_READING = (exp.Select, exp.Union, exp.Intersect, exp.Except, exp.Subquery)
_OTHER_BRANCH = "@"


def expression_problem(text: str) -> str | None:
    """Return why a text is not one condition in Spark SQL, or None."""
    try:
        condition = _condition(text)
    except (ParseError, TokenError) as error:
        return f"{_short(text)} does not parse: {_first_error(error)}"
    if condition is None:
        return f"{_short(text)} is not one condition"
    if condition.find(exp.Query):
        return f"{_short(text)} holds a query: write a check `sql`"
    if condition.find(exp.AggFunc):
        return f"{_short(text)} aggregates: it must be true of each row by itself"
    return None


def columns_of(text: str) -> list[str]:
    """Return the columns that a condition reads, in order."""
    condition = _condition(text)
    names = [each.parts[0].name for each in condition.find_all(exp.Column)] if condition else []
    return list(dict.fromkeys(names))


def query_problem(text: str) -> str | None:
    """Return why a text is not one query that only reads the audited branch, or None."""
    try:
        statements = sqlglot.parse(text, dialect=_SPARK)
    except (ParseError, TokenError) as error:
        return f"{_short(text)} does not parse: {_first_error(error)}"
    if len(statements) != 1 or statements[0] is None:
        return f"{_short(text)} is not one query"
    if not isinstance(statements[0], _READING) or statements[0].find(exp.DML, exp.DDL, exp.Command, exp.Into):
        return f"{_short(text)} does not only read: a check is a SELECT that returns the bad rows"
    for table in statements[0].find_all(exp.Table):
        if any(_OTHER_BRANCH in part.name for part in table.parts) or table.args.get("version"):
            return f"{_short(text)} names a branch or a version: a check reads the audited branch"
    return None


def tables_of(text: str) -> list[str]:
    """Return the full names of the tables that a query reads, without its own common table expressions."""
    tables = {
        ".".join(part.name for part in source.parts)
        for scope in traverse_scope(sqlglot.parse_one(text, dialect=_SPARK))
        for source in scope.sources.values()
        if isinstance(source, exp.Table)
    }
    return sorted(tables)


def to_duckdb(text: str, types: Mapping[str, str]) -> str | None:
    """Return the condition in DuckDB's SQL if it certainly has the same meaning as in Spark SQL, else None."""
    condition = _condition(text)
    if condition is None:
        return None
    nodes = list(condition.walk(prune=_is_date))
    if not all(isinstance(node, _SAME) or _is_date(node) for node in nodes):
        return None
    for node in nodes:
        if isinstance(node, exp.Column) and (len(node.parts) > 1 or node.name not in types):
            return None  # a field of a struct, or a name in other capitals
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
    """Whether it is a literal such as DATE '2024-01-31'."""
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


def _condition(text: str) -> exp.Expression | None:
    statements = sqlglot.parse(f"SELECT 1 WHERE ({text}\n)", dialect=_SPARK)
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        return None
    select = statements[0]
    where = select.args.get("where")
    others = [key for key, value in select.args.items() if value and key not in ("expressions", "where", "kind")]
    if where is None or others or not isinstance(where.this, exp.Paren):
        return None
    condition: exp.Expression = where.this.this
    return condition


def _first_error(error: Exception) -> str:
    listed = getattr(error, "errors", None)
    if listed:
        first = listed[0]
        return f"{first['description'].rstrip('.').lower()} near {first['highlight'] or first['start_context'][-20:]!r}"
    return str(error).split("\n", maxsplit=1)[0]


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return repr(plain if len(plain) <= 80 else plain[:79] + "…")
