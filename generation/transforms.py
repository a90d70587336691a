"""Derive columns from a transform: columns that it passes on, dates made of three columns, and computed columns."""

from collections.abc import Sequence

from generation.columns import Column, TableShape
from sluice.pipeline.write import SOURCE_VIEW


def transformed(columns: Sequence[Column], origin: str, transform: str | None) -> TableShape:
    """Return the shape of the rows that a pipeline writes, given the columns of its source and its transform."""
    if transform is None:
        return TableShape(columns, origin)
    import sqlglot  # noqa: PLC0415  # slow to import
    from sqlglot import exp  # noqa: PLC0415

    query = sqlglot.parse_one(transform, dialect="spark")
    names = {each.name.lower(): each.name for each in columns}
    dates: dict[str, tuple[str, str, str]] = {}
    computed: list[str] = []
    selected = query.expressions if isinstance(query, exp.Select) else []
    for each in selected:
        inner = each.unalias()
        if isinstance(each, exp.Star) or (isinstance(inner, exp.Column) and _is_passed_on(each.alias_or_name, inner)):
            continue
        is_date = isinstance(inner, exp.Anonymous) and inner.name.lower() == "make_date"
        parts = inner.expressions if is_date else []
        named = [names.get(part.name.lower(), "") for part in parts if isinstance(part, exp.Column)]
        if len(named) == 3 and all(named):
            dates[each.alias_or_name] = (named[0], named[1], named[2])
        else:
            computed.append(each.alias_or_name)
    reads_source_alone = [table.name for table in query.find_all(exp.Table)] == [SOURCE_VIEW]
    if not selected or not reads_source_alone:
        computed += [each.name for each in columns]
    return TableShape(columns, origin, dates=dates, computed=computed)


def _is_passed_on(name: str, column: object) -> bool:
    return str(getattr(column, "name", "")).lower() in (name.lower(), "*")
