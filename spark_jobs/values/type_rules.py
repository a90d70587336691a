"""Rules about types of columns: which values of one type are values of another."""

from collections.abc import Callable, Iterator, Mapping

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
)

from sluice.pipeline.source import Format
from spark_jobs.values.times import MOMENTS, TIMES

_DIGITS_NEEDED: Mapping[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
"""Number of digits that a decimal needs so that Spark can read a type of whole numbers as one."""
_DIGITS_STORED: Mapping[type[DataType], int] = {ByteType: 2, ShortType: 4, IntegerType: 9, LongType: 18}
"""Number of digits up to which a type stores every whole number."""
_TEXT = (StringType, BinaryType)
_READ_EXACTLY = ((_TEXT, _TEXT), (DateType, TimestampNTZType))
"""Pairs of types. Spark's reader of Parquet reads each value of the first as the same value of the second."""
_KINDS = ((NumericType,), TIMES)
"""Kinds of types. Spark casts and stores values in a column of another type of the same kind."""
_EXACT_IN_DOUBLE = (ByteType, ShortType, IntegerType, FloatType)


def fits(have: DataType, wanted: DataType) -> bool:
    """Return True if every value of type `have` is also a value of type `wanted`."""
    return all(_value_fits(own, other) for own, other in value_types(have, wanted))


def value_types(have: DataType, wanted: DataType) -> Iterator[tuple[DataType, DataType]]:
    """Yield the types of the values inside two types, side by side. Fields match by name, as in Spark's writer."""
    match have, wanted:
        case StructType(), StructType():
            by_name = {field.name.lower(): field.dataType for field in wanted}
            for field in have:
                if field.name.lower() in by_name:
                    yield from value_types(field.dataType, by_name[field.name.lower()])
        case ArrayType(), ArrayType():
            yield from value_types(have.elementType, wanted.elementType)
        case MapType(), MapType():
            yield from value_types(have.keyType, wanted.keyType)
            yield from value_types(have.valueType, wanted.valueType)
        case _:
            yield have, wanted


def _value_fits(have: DataType, wanted: DataType) -> bool:
    if isinstance(have, NumericType) and isinstance(wanted, NumericType):
        return have == wanted or _is_exact_in(have, wanted)
    are_timestamps = isinstance(have, MOMENTS) and isinstance(wanted, MOMENTS)
    return isinstance(have, NullType) or have == wanted or are_timestamps


def _is_exact_in(have: NumericType, wanted: NumericType) -> bool:
    """Return True if every number of type `have` is also a number of type `wanted`."""
    if isinstance(wanted, DoubleType):
        return isinstance(have, _EXACT_IN_DOUBLE)
    needed, stored = _digits(have, _DIGITS_NEEDED), _digits(wanted, _DIGITS_STORED)
    if needed is None or stored is None:
        return False
    return needed[0] <= stored[0] and needed[1] <= stored[1]


def _digits(number: NumericType, of_whole: Mapping[type[DataType], int]) -> tuple[int, int] | None:
    """Return the number of digits of a type before and after the point, or None for floating point."""
    if isinstance(number, DecimalType):
        return number.precision - number.scale, number.scale
    digits = of_whole.get(type(number))
    return None if digits is None else (digits, 0)


def are_of_one_kind(have: DataType, wanted: DataType) -> bool:
    """Return True if both types are numbers, or both are days or times. A cast can change a value, but not its kind."""
    return any(isinstance(have, kind) and isinstance(wanted, kind) for kind in _KINDS)


def readable_as(format: Format) -> Callable[[DataType, DataType], bool]:
    """Return the function that decides if a column of files of a format can be loaded as another type."""
    return fits if format == "orc" else is_readable


def is_readable(have: DataType, wanted: DataType) -> bool:
    """Return True if a Parquet column can be loaded as another type. Values of one kind can if they stay the same.

    Spark's reader accepts more pairs of types, but reads the bits of one as the other: a day as the number of days.
    """
    return are_of_one_kind(have, wanted) or all(
        _value_fits(own, other)
        or any(isinstance(own, left) and isinstance(other, right) for left, right in _READ_EXACTLY)
        for own, other in value_types(have, wanted)
    )


def is_assignable(have: DataType, wanted: DataType) -> bool:
    """Return True if Spark can write values of one type to a column of another, and fails on a too large value."""
    is_nested = isinstance(have, StructType | ArrayType | MapType)
    return are_of_one_kind(have, wanted) or fits(have, wanted) or (isinstance(wanted, StringType) and not is_nested)
