"""Find the columns of Parquet and ORC files whose type does not fit the type to read or write.

Spark's own errors name neither the file nor both types. Its ORC reader raises no error: it reads values that do not fit
as NULL.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from pyspark.sql import SparkSession
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
    IntegralType,
    LongType,
    MapType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from sluice.contracts.spark_jobs import IngestSpec
from sluice.pipeline.source import Format
from spark_jobs import nanoseconds
from spark_jobs.folder_columns import columns_of_folders
from spark_jobs.load_files import load_plainly, parse_schema
from spark_jobs.times import MOMENTS, TIMES

_MAX_FILES = 1000
"""Maximum number of files whose types are compared."""
_MAX_PROBLEMS = 5
_DIGITS_NEEDED: Mapping[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
"""Number of digits that a decimal needs so that Spark can read a type of whole numbers as one."""
_DIGITS_STORED: Mapping[type[DataType], int] = {ByteType: 2, ShortType: 4, IntegerType: 9, LongType: 18}
"""Number of digits up to which a type stores every whole number."""
_TEXT = (StringType, BinaryType)
_READ_EXACTLY = ((_TEXT, _TEXT), (DateType, TimestampNTZType))
"""Pairs of types. Spark's reader of Parquet reads each value of the first as the same value of the second."""
_KINDS = ((NumericType,), TIMES)
"""Kinds of types. Spark casts and stores values in a column of another type of the same kind."""
_MERGED = ((IntegralType, FloatType, DoubleType), DecimalType)
_EXACT_IN_DOUBLE = (ByteType, ShortType, IntegerType, FloatType)


def type_problems(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> list[str]:
    """Return the columns of Parquet and ORC files whose type does not fit, each with its file and both types.

    Args:
        target: the schema of the table, as for `read_source`. If there is neither a table nor a stated schema, the
            files are compared with each other.
    """
    source = spec.write.source
    if source is None or source.reader_format() not in ("parquet", "orc"):
        return []
    return list(islice(_problems(spark, spec, target), _MAX_PROBLEMS))


def _problems(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> Iterator[str]:
    source = spec.write.source
    assert source is not None
    wanted = parse_schema(source.schema_) if source.schema_ else target
    owner = "source.schema" if source.schema_ else next(iter(spec.tables))
    is_good = readable_as(source.reader_format()) if source.schema_ else is_assignable
    expected = {field.name.lower(): field.dataType for field in wanted or ()}
    first: dict[str, tuple[DataType, str]] = {}
    """The type of each column in the first file that has it. Without a stated schema, Spark merges the files' types."""
    options = _options(source.options) | nanoseconds.options_of(spec.nanoseconds)
    folders = columns_of_folders(spec)
    untyped = {file: {name.lower() for name in group.untyped} for group in spec.column_groups for file in group.files}
    for file in spec.files[:_MAX_FILES]:
        schema = load_plainly(spark, source.reader_format(), options, [file], None).schema
        for field in schema:
            name, type = field.name.lower(), field.dataType
            other = expected.get(name)
            if field.name in folders or name in untyped.get(file, ()):
                continue
            if other is not None and not is_good(type, other):
                yield _problem(file, field, owner, other)
            elif not source.schema_ and not _are_merged(
                type, (earlier := first.setdefault(name, (type, file)))[0], by_groups=bool(spec.column_groups)
            ):
                yield _problem(file, field, earlier[1], earlier[0])


def _are_merged(type: DataType, other: DataType, *, by_groups: bool) -> bool:
    """Return True if columns of these types in different files can be loaded as one column.

    Args:
        by_groups: True if each group of files is read separately (`column_groups`). Spark's own merge refuses numbers
            of two kinds.
    """
    return type == other or (by_groups and any(isinstance(type, kind) and isinstance(other, kind) for kind in _MERGED))


def _problem(file: str, field: StructField, owner: str, type: DataType) -> str:
    return f"{file}: {field.name} is {field.dataType.simpleString()}, and {owner} has {type.simpleString()}"


def _options(stated: Mapping[str, str]) -> dict[str, str]:
    """Return the stated options without those that concern several files."""
    return {name: value for name, value in stated.items() if name.lower() not in ("mergeschema", "basepath")}


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
