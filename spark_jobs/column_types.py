"""Find the columns of Parquet and ORC files whose type does not fit the type to read or write.

Spark's own errors name neither the file nor both types. Its ORC reader raises no error: it reads values that do not fit
as NULL.
"""

from collections.abc import Iterator, Mapping
from itertools import islice

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
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
    TimestampType,
)

from sluice.contracts.spark_jobs import IngestSpec
from spark_jobs.folder_columns import columns_of_folders
from spark_jobs.load_files import load_plainly, parse_schema

_MAX_FILES = 1000
"""Maximum number of files whose types are compared."""
_MAX_PROBLEMS = 5
_WHOLE = ((ByteType, 3), (ShortType, 5), (IntegerType, 10), (LongType, 20))
"""The types of whole numbers, each with the number of digits that a decimal needs so that Spark can read it as one."""
_TIMESTAMPS = (TimestampType, TimestampNTZType)
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
    expected = {field.name.lower(): field.dataType for field in wanted or ()}
    first: dict[str, tuple[DataType, str]] = {}
    """The type of each column in the first file that has it. Without a stated schema, Spark merges the files' types."""
    left_out = {*columns_of_folders(spec), *(each.name for each in spec.nanoseconds)}  # Spark reads these as numbers
    untyped = {file: {name.lower() for name in group.untyped} for group in spec.column_groups for file in group.files}
    for file in spec.files[:_MAX_FILES]:
        schema = load_plainly(spark, source.reader_format(), _options(source.options), [file], None).schema
        for field in schema:
            name, type = field.name.lower(), field.dataType
            other = expected.get(name)
            is_good = is_assignable if not source.schema_ else fits if source.reader_format() == "orc" else _is_readable
            if field.name in left_out or name in untyped.get(file, ()):
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
    are_timestamps = isinstance(have, _TIMESTAMPS) and isinstance(wanted, _TIMESTAMPS)
    return isinstance(have, NullType) or have == wanted or are_timestamps


def _is_exact_in(have: NumericType, wanted: NumericType) -> bool:
    """Return True if every number of type `have` is also a number of type `wanted`."""
    if isinstance(wanted, DoubleType):
        return isinstance(have, _EXACT_IN_DOUBLE)
    own, most = _digits(have), _digits(wanted)
    if own is None or most is None:
        return False
    return own[0] <= most[0] and own[1] <= most[1]


def _digits(type: NumericType) -> tuple[int, int] | None:
    """Return the maximum number of digits of a type before and after the point, or None for floating point."""
    if isinstance(type, DecimalType):
        return type.precision - type.scale, type.scale
    return next(((digits, 0) for whole, digits in _WHOLE if isinstance(type, whole)), None)


def _is_readable(have: DataType, wanted: DataType) -> bool:
    """Return True if a Parquet column can be read as another type. Numbers can, as far as values stay the same."""
    return fits(have, wanted) or (isinstance(have, NumericType) and isinstance(wanted, NumericType))


def is_assignable(have: DataType, wanted: DataType) -> bool:
    """Return True if Spark can write values of one type to a column of another, and fails on a too large value."""
    kinds = (NumericType, (DateType, *_TIMESTAMPS))
    if any(isinstance(have, kind) and isinstance(wanted, kind) for kind in kinds):
        return True
    is_nested = isinstance(have, StructType | ArrayType | MapType)
    return fits(have, wanted) or (isinstance(wanted, StringType) and not is_nested)
