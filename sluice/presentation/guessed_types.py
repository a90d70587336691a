"""Describe guessed types of columns."""

from sluice.contracts.guessed_types import GuessedColumn, GuessedTypes
from sluice.sizes import format_count, format_list

_SHOWN = 20


def describe_types(types: GuessedTypes) -> str:
    """Describe the types in a sentence: `id INT, seat STRING ('12D' in a.csv); no value yet: note`."""
    typed = [each for each in types.columns if each.type]
    parts = [", ".join(_describe(each) for each in typed[:_SHOWN])] if typed else []
    untyped = [each.name for each in types.columns if not each.type]
    if more := types.total - len(untyped) - len(typed[:_SHOWN]):
        parts.append(f"and {format_count(more, 'more column')}")
    if untyped:
        parts.append(f"no value yet, so left out: {format_list(untyped, _SHOWN)}")
    if as_text := [path for each in types.columns for path in each.as_text]:
        parts.append(f"no value yet, so text: {format_list(as_text, _SHOWN)}")
    return "; ".join(parts)


def _describe(column: GuessedColumn) -> str:
    where = f" in {column.where}" if column.where else ""
    value = f"{column.value!r}{where}" if column.value else f"a text{where}" if where else ""
    return f"{column.name} {column.type}" + (f" ({value})" if value else "")
