"""Convert values in checks to the Iceberg type of the column that they are compared with.

A pipeline file has numbers, strings and booleans; a column has an Iceberg type. Each value is converted to the column's
type once, in this module, so that metadata bounds and the rows of every engine are compared with the same value.
"""

import math
import struct
from datetime import date, datetime, timezone
from decimal import Decimal, InvalidOperation
from typing import Any

Scalar = bool | int | float | str

NUMBERS = ("int", "long", "float", "double", "decimal")
FLOATS = ("float", "double")
TIMES = ("date", "timestamp", "timestamptz")
ORDERED = (*NUMBERS, *TIMES, "string")
"""Kinds whose values and bounds have the same order in Iceberg, in Python and in all engines."""
_WORDS = {
    "int": "a whole number",
    "long": "a whole number",
    "float": "a number",
    "double": "a number",
    "decimal": "a decimal number",
    "boolean": "true or false",
    "string": "a text: write it in quotes",
    "uuid": "a UUID",
    "date": "a date such as 2024-01-31",
    "timestamp": "a time such as 2024-01-31 12:00:00",
    "timestamptz": "a time such as 2024-01-31 12:00:00+00:00",
}


def kind_of(iceberg_type: str) -> str:
    """Return a type without its parameters: `decimal(9, 2)` is a `decimal`, `list<int>` a `list`."""
    return iceberg_type.split("(", maxsplit=1)[0].split("[", maxsplit=1)[0].split("<", maxsplit=1)[0].strip()


def typed(value: Scalar, iceberg_type: str) -> Any:
    """Return a value as the Python value of a column's type.

    Raises:
        ValueError: it is not a value of that type.
    """
    kind = kind_of(iceberg_type)
    if kind not in _WORDS:
        raise ValueError(f"{iceberg_type} values cannot be compared")
    try:
        return _READERS[kind](value)
    except (ValueError, TypeError, OverflowError, InvalidOperation) as error:
        raise ValueError(f"{value!r} is not {_WORDS[kind]}") from error


def _whole(value: Scalar) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError
    return int(value)


def _double(value: Scalar) -> float:
    parsed = float(value)
    if isinstance(value, bool) or not math.isfinite(parsed):
        raise ValueError
    return parsed


def _single(value: Scalar) -> float:
    """Round to 32 bits, like the values of a FLOAT column: the 0.1 of 32 bits is not the 0.1 of 64 bits."""
    rounded: float = struct.unpack("<f", struct.pack("<f", _double(value)))[0]
    return rounded


def _decimal(value: Scalar) -> Decimal:
    parsed = Decimal(str(value))
    if isinstance(value, bool) or not parsed.is_finite():
        raise ValueError
    return parsed


def _truth(value: Scalar) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _text(value: Scalar) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _plain_time(value: Scalar) -> datetime:
    parsed = datetime.fromisoformat(_text(value).strip())
    if parsed.tzinfo is not None:
        raise ValueError
    return parsed


def _zoned_time(value: Scalar) -> datetime:
    """Parse a time. Without a zone, it is in UTC, the zone of every session."""
    text = _text(value).strip()
    parsed = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)


_READERS: dict[str, Any] = {
    "int": _whole,
    "long": _whole,
    "float": _single,
    "double": _double,
    "decimal": _decimal,
    "boolean": _truth,
    "string": _text,
    "uuid": _text,
    "date": lambda value: date.fromisoformat(_text(value).strip()),
    "timestamp": _plain_time,
    "timestamptz": _zoned_time,
}


def plain(value: Any) -> Any:
    """Return an engine's value as a JSON value, the same for every engine."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return (value.astimezone(timezone.utc) if value.tzinfo else value).isoformat(sep=" ")
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    return str(value)


def json_value(value: Any) -> Any:
    """Return a value of any type, nested or not, as a JSON value."""
    if isinstance(value, dict):
        return {str(key): json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    return plain(value)
