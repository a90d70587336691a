"""Columns of Parquet and ORC files whose type is not the one that they are to be read or written as.

Spark's own errors name neither the file nor both types, and its ORC reader raises none: it reads what does not fit as
NULL.
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
    LongType,
    MapType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sluice.contracts.spark_jobs import IngestSpec
from spark_jobs.load_files import columns_of_folders, load_plainly, parse_schema

_MAX_FILES = 1000
"""How many files are looked at to name the first that do not fit."""
_MAX_PROBLEMS = 5
_WHOLE = ((ByteType, 3), (ShortType, 5), (IntegerType, 10), (LongType, 20))
"""The types of whole numbers, and how many digits a decimal needs for Spark to read one as it."""
_TIMESTAMPS = (TimestampType, TimestampNTZType)
_EXACT_IN_DOUBLE = (ByteType, ShortType, IntegerType, FloatType)


def type_problems(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> list[str]:
    """Return the columns of Parquet and ORC files that do not fit, each with its file and both types.

    Args:
        target: the schema of the table, as `read_source` gets it. Without it, and where the pipeline states no schema,
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
    owner = "source.schema has" if source.schema_ else f"{next(iter(spec.tables))} has"
    expected = {field.name.lower(): (field.dataType, owner) for field in wanted or ()}
    fits = _fits if source.schema_ or wanted is None else _is_assignable
    folders = columns_of_folders(spec)
    for file in spec.files[:_MAX_FILES]:
        schema = load_plainly(spark, source.reader_format(), _options(source.options), [file], None).schema
        for field in schema:
            if field.name in folders:
                continue
            type, owner = expected.setdefault(field.name.lower(), (field.dataType, f"{file} has"))
            if not fits(field.dataType, type):
                yield f"{file}: {field.name} is {field.dataType.simpleString()}, and {owner} {type.simpleString()}"


def _options(stated: Mapping[str, str]) -> dict[str, str]:
    """Return the options to read one file by."""
    return {name: value for name, value in stated.items() if name.lower() not in ("mergeschema", "basepath")}


def _fits(have: DataType, wanted: DataType) -> bool:
    """Return whether every value of a type is one of another type."""
    match have, wanted:
        case StructType(), StructType():
            by_name = {field.name.lower(): field.dataType for field in wanted}
            common = [field for field in have if field.name.lower() in by_name]
            return all(_fits(field.dataType, by_name[field.name.lower()]) for field in common)
        case ArrayType(), ArrayType():
            return _fits(have.elementType, wanted.elementType)
        case MapType(), MapType():
            return _fits(have.keyType, wanted.keyType) and _fits(have.valueType, wanted.valueType)
        case NumericType(), NumericType():
            return have == wanted or _is_exact_in(have, wanted)
    are_timestamps = isinstance(have, _TIMESTAMPS) and isinstance(wanted, _TIMESTAMPS)
    return isinstance(have, NullType) or have == wanted or are_timestamps


def _is_exact_in(have: NumericType, wanted: NumericType) -> bool:
    """Return whether every number of a type is one of another type."""
    if isinstance(wanted, DoubleType):
        return isinstance(have, _EXACT_IN_DOUBLE)
    own, most = _digits(have), _digits(wanted)
    if own is None or most is None:
        return False
    return own[0] <= most[0] and own[1] <= most[1]


def _digits(type: NumericType) -> tuple[int, int] | None:
    """Return how many digits a number of a type has before and after the point; None for floating point."""
    if isinstance(type, DecimalType):
        return type.precision - type.scale, type.scale
    return next(((digits, 0) for whole, digits in _WHOLE if isinstance(type, whole)), None)


def _is_assignable(have: DataType, wanted: DataType) -> bool:
    """Return whether Spark writes values of a type into a column of another, and fails where one is too large."""
    kinds = (NumericType, (DateType, *_TIMESTAMPS))
    if any(isinstance(have, kind) and isinstance(wanted, kind) for kind in kinds):
        return True
    is_nested = isinstance(have, StructType | ArrayType | MapType)
    return _fits(have, wanted) or (isinstance(wanted, StringType) and not is_nested)
