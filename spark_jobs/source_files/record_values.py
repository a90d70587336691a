"""Values in the text of a record of CSV or JSON."""

import csv
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_SIGNED = re.compile(r'"(?:[^"\\]|\\.)*"|(?:\+(?:INF|Infinity|NaN)|-?INF|-NaN)\b')
"""A text of JSON, or a number that neither JSON nor Python has, but that an option of Spark allows."""


def is_json(record: str) -> bool:
    """Return True if a record is a JSON value, maybe with numbers that only Spark knows."""
    with suppress(ValueError):
        _parse_json(record)
        return True
    return False


def values_of(record: str, format: str, options: Mapping[str, str], names: list[str]) -> dict[str, Any]:
    """Return the values in the text of a record, by column, or no values if the text cannot be parsed."""
    if format == "json":
        try:
            document = _parse_json(record)
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}
    values = csv_values(record, options)
    return dict(zip(names, values, strict=True)) if values is not None and len(values) == len(names) else {}


def _parse_json(record: str) -> Any:
    try:
        return json.loads(record, parse_float=Digits)
    except ValueError:
        return json.loads(_SIGNED.sub(_in_quotes, record), parse_float=Digits)


def _in_quotes(token: re.Match[str]) -> str:
    """Return a number that Python's JSON does not know, such as `+INF`, as a text; texts as they are."""
    return token[0] if token[0].startswith('"') else f'"{token[0]}"'


class Digits(str):
    """A number of JSON with all its digits."""

    __slots__ = ()


def as_json(value: object) -> str:
    """Return a value as JSON. Its numbers keep all their digits."""
    match value:
        case Digits():
            return str(value)
        case dict():
            return f"{{{', '.join(f'{as_json(key)}: {as_json(each)}' for key, each in value.items())}}}"
        case list():
            return f"[{', '.join(map(as_json, value))}]"
    return json.dumps(value, ensure_ascii=False)


def csv_values(record: str, options: Mapping[str, str]) -> list[str] | None:
    """Return the values of a CSV record, or None if it cannot be parsed."""
    separator = options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t")
    quote = options.get("quote", '"').strip("\0")
    escape = options.get("escape", quote)
    form: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    if escape != quote:
        form |= {"escapechar": escape, "doublequote": False}
    try:
        (values,) = csv.reader([record], delimiter=separator, **form)
    except (ValueError, TypeError, csv.Error):
        return None
    return values
