"""Values of rows as text."""

from collections.abc import Mapping
from typing import Any


def shown_value(value: Any) -> str:
    """Return a value of a row as text: `null`, `true`, the elements of a list with commas between them."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_nested, value)) or "[]"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_nested(each)}" for key, each in value.items()) or "{}"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _nested(value: Any) -> str:
    """Return a value inside of another one. Brackets show where a list or a struct begins and ends."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_nested, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_nested(each)}' for key, each in value.items())}}}"
    return shown_value(value)
