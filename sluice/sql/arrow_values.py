"""Python values of Arrow columns, including times that Python cannot represent."""

from typing import Any

import pyarrow as pa


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values of a column. A date or time outside the years 1 to 9999 becomes its text."""
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):  # ValueError: a time zone moves the time out of the range
        return [_value(each) for each in column]
    return values


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table. A date or time outside the years 1 to 9999 becomes its text."""
    columns = [python_values(each) for each in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        return _text(scalar)


def _text(scalar: pa.Scalar) -> Any:
    """Return the text of a time that Python cannot represent, or the value that contains such a time."""
    kind = scalar.type
    if pa.types.is_struct(kind):
        return {name: _value(each) for name, each in scalar.items()}
    if pa.types.is_map(kind):
        return [(_value(pair["key"]), _value(pair["value"])) for pair in scalar.values]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [_value(each) for each in scalar.values]
    if pa.types.is_timestamp(kind) and kind.tz:
        return f"{scalar.cast(pa.timestamp(kind.unit)).cast(pa.string()).as_py()}+00:00"
    return scalar.cast(pa.string()).as_py()
