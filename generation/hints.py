"""Hints from conditions: the values that they compare a column with, if these are literals."""

from typing import Any

Ends = tuple[Any, Any, bool]
"""The lowest and the highest value of a column, and True if these two are allowed."""


def expression_bounds(expression: str) -> dict[str, Ends]:
    """Return the ends of columns, from those comparisons with a literal that must all be true for a condition."""
    bounds: dict[str, Ends] = {}
    for name, operator, value in comparisons(expression, only_joined=True):
        low, high, inclusive = bounds.get(name, (None, None, True))
        if operator in (">", ">=", "="):
            low = value
        if operator in ("<", "<=", "="):
            high = value
        bounds[name] = (low, high, inclusive and operator not in ("<", ">"))
    return bounds


def comparisons(expression: str, *, only_joined: bool = False) -> list[tuple[str, str, Any]]:
    """Return the comparisons of a column with a literal, each as column name, operator and value.

    Args:
        only_joined: True to return only the comparisons that must all be true.
    """
    import sqlglot  # noqa: PLC0415  # slow to import
    from sqlglot import exp  # noqa: PLC0415

    operators: dict[type[object], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.EQ: "="}
    opposite = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "=": "="}
    parsed = sqlglot.parse_one(expression, dialect="spark")
    if only_joined:
        nodes = [each.unnest() for each in (parsed.flatten() if isinstance(parsed, exp.And) else [parsed])]
    else:
        nodes = list(parsed.walk())
    compared: list[tuple[str, str, Any]] = []
    for node in nodes:
        if isinstance(node, exp.Between) and isinstance(node.this, exp.Column):
            ends = [_literal(node.args[end]) for end in ("low", "high")]
            compared += [(node.this.name, sign, end) for sign, end in zip((">=", "<="), ends, strict=True)]
        operator = operators.get(type(node))
        if operator is None:
            continue
        left, right = node.this.unnest(), node.expression.unnest()
        if isinstance(left, exp.Column):
            compared.append((left.name, operator, _literal(right)))
        elif isinstance(right, exp.Column):
            compared.append((right.name, opposite[operator], _literal(left)))
    return [each for each in compared if each[2] is not None]


def _literal(node: Any) -> Any:
    """Return the value of a literal, or None for any other expression."""
    from sqlglot import exp  # noqa: PLC0415

    if isinstance(node, exp.Neg):
        value = _literal(node.this)
        return -value if isinstance(value, int | float) else None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Cast):
        return _literal(node.this)
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return node.this
    return int(node.this) if node.this.isdigit() else float(node.this)
