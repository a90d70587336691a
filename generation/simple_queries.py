"""Convert simple checks `sql`, which select rows of one table by a condition, to checks of single rows."""

from collections.abc import Mapping
from typing import Any

from sluice.checks.base import Check
from sluice.checks.query import ExpressionIsTrue, Sql
from sluice.checks.references import CompareColumns
from sluice.sql.dialect import Dialect

_PLAIN = {"kind", "expressions", "from_", "from", "where", "order"}
"""The parts that a query may have if it is one condition on the rows of one table."""


class NoRowsWhere(ExpressionIsTrue):
    """A condition that must be true for no row. Only generated rows are checked with it."""

    def bad(self, sql: Dialect, types: Mapping[str, str]) -> str:
        return sql.translated(self.expression, types)


def as_condition(check: Check, table: str) -> Check:
    """Convert a check with a simple query to an equivalent check on rows. Return any other check unchanged."""
    if not isinstance(check, Sql):
        return check
    import sqlglot  # noqa: PLC0415  # slow to import
    from sqlglot import exp  # noqa: PLC0415

    query: Any = sqlglot.parse_one(check.query, dialect="spark")
    parts = {name for name, value in query.args.items() if value}
    tables = [each.sql(dialect="spark").replace("`", "") for each in query.find_all(exp.Table)]
    if not isinstance(query, exp.Select) or not parts <= _PLAIN or "where" not in parts or tables != [table]:
        return check
    if query.find(exp.AggFunc, exp.Window, exp.Subquery):
        return check
    return _compared(check, query.args["where"].this) or _none_where(check, query.args["where"].this)


def _compared(check: Check, condition: Any) -> Check | None:
    """Return the check that requires the opposite comparison of two columns, or None for another condition."""
    from sqlglot import exp  # noqa: PLC0415

    opposites = {exp.LT: ">=", exp.LTE: ">", exp.GT: "<=", exp.GTE: "<", exp.EQ: "!=", exp.NEQ: "="}
    operator = opposites.get(type(condition))
    if operator is None or not all(isinstance(each, exp.Column) for each in (condition.this, condition.expression)):
        return None
    names = {"left": condition.this.name, "operator": operator, "right": condition.expression.name}
    return CompareColumns.model_validate({**names, "severity": check.severity, "at": check.at})


def _none_where(check: Check, where: Any) -> Check:
    condition = where.sql(dialect="spark")
    return NoRowsWhere(expression=condition, severity=check.severity, at=check.at)
