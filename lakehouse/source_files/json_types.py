"""Guess the types of JSON columns from the first records, as the built-in job guesses them from all records.

Source of the rules: Spark's `JsonInferSchema` and `spark_jobs/source_files/json_shapes.py`.
`tests/component/test_guessed_json.py` compares them for generated records.
"""

from collections.abc import Mapping
from functools import reduce
from typing import TypeAlias

from sluice.contracts.guessed_types import GuessedColumn
from sluice.identifiers import quoted
from sluice.input.plain_notation import LEAST_LONG, MAX_DIGITS, MOST_LONG

Type: TypeAlias = "dict[str, Type] | list[Type] | str | None"
"""Type of a part of the records: of each field of an object; of the elements of a list, as a list of one; the name of
another type; None without a value."""
_EMPTY = ""
"""Type of an empty text: it may be a value of each other type."""
_DIGITS_OF_BIGINT = 20
"""Digits of the DECIMAL that Spark uses for whole numbers if some do not fit into a BIGINT."""


class JsonTypes:
    """Types of the columns of records."""

    def __init__(self) -> None:
        self._columns: dict[str, Type] = {}

    def add(self, record: Mapping[str, object]) -> None:
        """Add the values of a record.

        Raises:
            RecursionError: a value is nested too deeply.
        """
        for name, value in record.items():
            self._columns[name] = _merged(self._columns.get(name), _type_of(value))

    @property
    def columns(self) -> list[GuessedColumn]:
        """The columns in the order of their names, which is that of a new table."""
        return [_column(name, self._columns[name]) for name in sorted(self._columns)]


def _type_of(value: object) -> Type:
    match value:
        case bool() | float():
            return "boolean" if isinstance(value, bool) else "double"
        case int():
            return "bigint" if LEAST_LONG <= value <= MOST_LONG else _decimal(len(str(abs(value))))
        case str():
            return "string" if value else _EMPTY
        case list():
            return [reduce(_merged, map(_type_of, value), None)]
        case dict():
            return {name: _type_of(each) for name, each in value.items()}
    return None


def _merged(one: Type, other: Type) -> Type:
    """Return the type of values of two types."""
    if one is None or (one == _EMPTY and other is not None):
        return other
    if other in (None, _EMPTY, one):
        return one
    match one, other:
        case dict(), dict():
            return {**one, **{name: _merged(one.get(name), each) for name, each in other.items()}}
        case [element], [other_element]:
            return [_merged(element, other_element)]
        case str(), str() if _is_number(one) and _is_number(other):
            return "double" if "double" in (one, other) else _decimal(max(_digits(one), _digits(other)))
    return "string"


def _decimal(digits: int) -> str:
    return f"decimal({digits},0)" if digits <= MAX_DIGITS else "double"


def _is_number(type: str) -> bool:
    return type in ("bigint", "double") or type.startswith("decimal")


def _digits(whole: str) -> int:
    """Return the digits of a type of whole numbers."""
    return _DIGITS_OF_BIGINT if whole == "bigint" else int(whole.removeprefix("decimal(").removesuffix(",0)"))


def _column(name: str, type: Type) -> GuessedColumn:
    as_text: list[str] = []
    if not _has_value(type):
        return GuessedColumn(name=name, type="")
    shown = _sql(type, name, as_text)
    return GuessedColumn(name=name, type=shown.upper() if isinstance(type, str) else shown, as_text=as_text)


def _has_value(type: Type) -> bool:
    match type:
        case dict():
            return any(map(_has_value, type.values()))
        case [element]:
            return _has_value(element)
    return type is not None


def _sql(type: Type, path: str, as_text: list[str]) -> str:
    """Return a type in SQL notation. Add the fields that are text because they have no value to `as_text`."""
    match type:
        case dict() if type:
            fields = [f"{quoted(name)}: {_sql(type[name], f'{path}.{name}', as_text)}" for name in sorted(type)]
            return f"STRUCT<{', '.join(fields)}>"
        case [element]:
            return f"ARRAY<{_sql(element, f'{path}[]', as_text)}>"
        case str():
            return type or "string"
    as_text.append(path)
    return "string"
