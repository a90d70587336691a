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
"""How many files are looked at to name the first that do not fit."""
_MAX_PROBLEMS = 5
_WHOLE = ((ByteType, 3), (ShortType, 5), (IntegerType, 10), (LongType, 20))
"""The types of whole numbers, and how many digits a decimal needs for Spark to read one as it."""
_TIMESTAMPS = (TimestampType, TimestampNTZType)
_MERGED = ((IntegralType, FloatType, DoubleType), DecimalType)
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
    owner = "source.schema" if source.schema_ else next(iter(spec.tables))
    expected = {field.name.lower(): field.dataType for field in wanted or ()}
    first: dict[str, tuple[DataType, str]] = {}
    """The type of each column in the first file that has it: without a stated schema, Spark merges those of files."""
    folders = columns_of_folders(spec)
    untyped = {file: {name.lower() for name in group.untyped} for group in spec.column_groups for file in group.files}
    for file in spec.files[:_MAX_FILES]:
        schema = load_plainly(spark, source.reader_format(), _options(source.options), [file], None).schema
        for field in schema:
            name, type = field.name.lower(), field.dataType
            other = expected.get(name)
            is_good = (
                _is_assignable if not source.schema_ else fits if source.reader_format() == "orc" else _is_readable
            )
            if field.name in folders or name in untyped.get(file, ()):
                continue
            if other is not None and not is_good(type, other):
                yield _problem(file, field, owner, other)
            elif not source.schema_ and not _are_merged(
                type, (earlier := first.setdefault(name, (type, file)))[0], by_groups=bool(spec.column_groups)
            ):
                yield _problem(file, field, earlier[1], earlier[0])


def _are_merged(type: DataType, other: DataType, *, by_groups: bool) -> bool:
    """Return whether columns of these types in different files are loaded as one.

    Args:
        by_groups: whether each group of files is read by itself (`column_groups`); Spark's own merge takes no numbers
            of two kinds.
    """
    return type == other or (by_groups and any(isinstance(type, kind) and isinstance(other, kind) for kind in _MERGED))


def _problem(file: str, field: StructField, owner: str, type: DataType) -> str:
    return f"{file}: {field.name} is {field.dataType.simpleString()}, and {owner} has {type.simpleString()}"


def _options(stated: Mapping[str, str]) -> dict[str, str]:
    """Return the options to read one file by."""
    return {name: value for name, value in stated.items() if name.lower() not in ("mergeschema", "basepath")}


def fits(have: DataType, wanted: DataType) -> bool:
    """Return whether every value of a type is one of another type."""
    match have, wanted:
        case StructType(), StructType():
            by_name = {field.name.lower(): field.dataType for field in wanted}
            common = [field for field in have if field.name.lower() in by_name]
            return all(fits(field.dataType, by_name[field.name.lower()]) for field in common)
        case ArrayType(), ArrayType():
            return fits(have.elementType, wanted.elementType)
        case MapType(), MapType():
            return fits(have.keyType, wanted.keyType) and fits(have.valueType, wanted.valueType)
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


def _is_readable(have: DataType, wanted: DataType) -> bool:
    """Return whether a column of Parquet is read as another type: of numbers, each value that stays the same is."""
    return fits(have, wanted) or (isinstance(have, NumericType) and isinstance(wanted, NumericType))


def _is_assignable(have: DataType, wanted: DataType) -> bool:
    """Return whether Spark writes values of a type into a column of another, and fails where one is too large."""
    kinds = (NumericType, (DateType, *_TIMESTAMPS))
    if any(isinstance(have, kind) and isinstance(wanted, kind) for kind in kinds):
        return True
    is_nested = isinstance(have, StructType | ArrayType | MapType)
    return fits(have, wanted) or (isinstance(wanted, StringType) and not is_nested)
