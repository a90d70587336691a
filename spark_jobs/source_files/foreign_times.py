"""Refuse files of other programs than Spark if Spark would read their times or days as others.

Spark cuts the nanoseconds of ORC's times and of Parquet's INT96. If an ORC file does not state its calendar, Spark
reads its days before 1582-10-15 by the Julian calendar, while PyArrow writes them by the Gregorian one, which Iceberg
uses. PyArrow writes times before 1970 with a fraction of a second with negative nanoseconds, on which Spark fails.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from decimal import Decimal
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from sluice.contracts.spark_jobs import ForeignTimes, IngestSpec
from sluice.errors import InvalidInput
from sluice.identifiers import quoted
from sluice.pipeline.source import Format
from sluice.sizes import format_count
from spark_jobs.source_files.load_files import load_plainly
from spark_jobs.values.exact_text import contains_type
from spark_jobs.values.file_addresses import path_of_address
from spark_jobs.values.nested_values import any_value
from spark_jobs.values.schemas import replace_types
from spark_jobs.values.storable_values import BAD_YEAR
from spark_jobs.values.times import FIRST_SECOND, LAST_SECOND, MOMENTS, TIMES

NEGATIVE_NANOSECONDS = "nanos > 999999999 or < 0"
"""Text of Java's error when Spark reads a time of an ORC file with negative nanoseconds."""
_NAMES_OF_UTC = ("UTC", "GMT", "UCT", "Universal", "Zulu", "Z")
_VECTORIZED = "spark.sql.parquet.enableVectorizedReader"
_SECONDS = DecimalType(38, 9)
"""The type as which ORC's reader returns times with all their digits: seconds since 1970."""
_GREGORIAN_DAY, _GREGORIAN_SECOND = "1582-10-15", -12_219_292_800
"""The first day of the Gregorian calendar."""
_DAY_OF_1970, _SECONDS_OF_DAY = 2_440_588, 86_400
"""INT96 counts days from noon of the first day of the Julian calendar, so that 1970-01-01 has this number."""


class _Rule(NamedTuple):
    is_broken: Callable[[Column, DataType], Column | None]
    problem: str
    """Problem of a value, and the remedy."""


def check_foreign_times(spark: SparkSession, spec: IngestSpec) -> None:
    """Check that Spark reads the times of other programs as they are.

    Raises:
        InvalidInput: it would change some. The message names column and file.
    """
    with _row_by_row(spark) if spec.foreign_times else nullcontext():
        problems = [each for group in spec.foreign_times for each in _problems(spark, group, _RULES[group.kind], spec)]
    if problems:
        raise InvalidInput("; ".join(problems))


def check_zone(spark: SparkSession, spec: IngestSpec, schema: StructType) -> None:
    """Check that Spark's JVM runs in UTC if ORC files have times.

    Such times have no zone, and Spark reads them in the zone of its JVM. Sluice starts its jobs in UTC, but options of
    Java can overrule this, and an external server has its own zone.

    Args:
        schema: the schema of the files.

    Raises:
        InvalidInput: the JVM runs in another zone.
    """
    source = spec.write.source
    if source is None or source.reader_format() != "orc" or not contains_type(schema, MOMENTS):
        return
    zone = spark.range(1).select(F.java_method(F.lit("java.time.ZoneId"), F.lit("systemDefault"))).collect()[0][0]
    if zone.rpartition("/")[2] not in _NAMES_OF_UTC:
        raise InvalidInput(
            f"Spark runs in the time zone {zone}, in which it would read the times of the ORC files as other times: "
            "start its server with TZ=UTC, and leave out -Duser.timezone of Java"
        )


def negative_times(spark: SparkSession, spec: IngestSpec) -> list[str]:
    """Return the columns with times that Spark fails to read, each with a count and the first file."""
    groups = [group for group in spec.foreign_times if group.kind != "int96"]
    return [each for group in groups for each in _problems(spark, group, [_NEGATIVE], spec)]


def _problems(spark: SparkSession, group: ForeignTimes, rules: Sequence[_Rule], spec: IngestSpec) -> Iterator[str]:
    rows = _rows(spark, group)
    address = F.col("_metadata.file_path").alias("file")
    for field in rows.schema:
        column = F.col(quoted(field.name))
        conditions = [any_value(column, field.dataType, rule.is_broken) for rule in rules]
        stated = [(rule, each) for rule, each in zip(rules, conditions, strict=True) if each is not None]
        if not stated:
            continue
        numbers = [F.when(each, F.lit(number)) for number, (_, each) in enumerate(stated)]
        broken = rows.select(F.coalesce(*numbers).alias("rule"), _text(column, field.dataType).alias("text"), address)
        counted = broken.filter(F.col("rule").isNotNull()).groupBy("rule")
        for row in counted.agg(F.count(F.lit(1)).alias("rows"), F.min(F.struct("file", "text"))).sort("rule").collect():
            file, text = row[2]
            shown = f", such as {text}" if text and spec.show_values else ""
            count = format_count(row["rows"], "value")
            yield f"{field.name}: {count} ({path_of_address(file)}{shown}) {stated[row['rule']][0].problem}"


def _rows(spark: SparkSession, group: ForeignTimes) -> DataFrame:
    """Return the times of a group of files at any depth: as bytes for INT96, else as seconds since 1970."""
    format: Format = "parquet" if group.kind == "int96" else "orc"
    read = load_plainly(spark, format, {}, group.files[:1], None).schema
    kept = StructType([field for name in group.columns for field in _only_times(StructType([read[name]]))])
    as_read = BinaryType() if group.kind == "int96" else _SECONDS
    replaced = {field.name: replace_types(field, MOMENTS, as_read) for field in kept}
    schema = StructType([replaced.get(field.name, field) for field in read])  # ORC may be read by position
    return load_plainly(spark, format, {}, group.files, schema).select(*map(quoted, replaced))


def _only_times(type: StructType) -> StructType:
    """Return a struct without the fields that contain no times or days, at any depth."""
    fields = [field for field in type if contains_type(field.dataType, TIMES)]
    return StructType([StructField(each.name, _pruned(each.dataType)) for each in fields])


def _pruned(type: DataType) -> DataType:
    match type:
        case StructType():
            return _only_times(type)
        case ArrayType():
            return ArrayType(_pruned(type.elementType))
        case MapType():
            return MapType(type.keyType, _pruned(type.valueType))
    return type


@contextmanager
def _row_by_row(spark: SparkSession) -> Iterator[None]:
    """Let Spark read Parquet row by row: only so does it return an INT96 as bytes."""
    before = spark.conf.get(_VECTORIZED)
    spark.conf.set(_VECTORIZED, "false")
    try:
        yield
    finally:
        spark.conf.set(_VECTORIZED, str(before))


def _seconds(value: Column, type: DataType) -> Column | None:
    """Return the seconds since 1970 of a time, or None for another value."""
    if isinstance(type, DecimalType):
        return value if type == _SECONDS else None
    if not isinstance(type, BinaryType):
        return None
    digits = F.hex(value)
    nanoseconds = F.conv(_reversed(digits, 0, 8), 16, -10).cast(DecimalType(20, 0))
    day = F.conv(_reversed(digits, 8, 12), 16, 10).cast(DecimalType(11, 0))
    whole = (day - F.lit(_DAY_OF_1970)) * F.lit(_SECONDS_OF_DAY)
    return whole + nanoseconds * F.lit(Decimal("0.000000001"))


def _reversed(digits: Column, begin: int, end: int) -> Column:
    """Return the hexadecimal digits of some bytes, the last byte first."""
    return F.concat(*[F.substring(digits, 2 * number + 1, 2) for number in reversed(range(begin, end))])


def _text(column: Column, type: DataType) -> Column:
    """Return the text of a time. It is NULL for nested times, and for those before 1970 with a fraction."""
    seconds = _seconds(column, type)
    if seconds is None:
        return column.cast(StringType()) if isinstance(type, DateType) else F.lit(None).cast(StringType())
    second, fraction = F.floor(seconds), F.substring(seconds.cast(StringType()), -9, 9)
    moment = F.concat_ws(".", F.timestamp_seconds(second).cast(StringType()), fraction)
    is_shown = ((seconds >= 0) | (seconds == second)) & seconds.between(FIRST_SECOND, LAST_SECOND)
    return F.when(is_shown, moment)


def _is_out_of_range(value: Column, type: DataType) -> Column | None:
    seconds = _seconds(value, type)
    return None if seconds is None else ~F.floor(seconds).between(FIRST_SECOND, LAST_SECOND)


def _has_nanoseconds(value: Column, type: DataType) -> Column | None:
    seconds = _seconds(value, type)
    return None if seconds is None else seconds % F.lit(Decimal("0.000001")) != 0


def _is_before_calendar(value: Column, type: DataType) -> Column | None:
    if isinstance(type, DateType):
        return value < F.lit(_GREGORIAN_DAY).cast(DateType())
    seconds = _seconds(value, type)
    return None if seconds is None else seconds < _GREGORIAN_SECOND


def _is_negative_fraction(value: Column, type: DataType) -> Column | None:
    seconds = _seconds(value, type)
    return None if seconds is None else (seconds < 0) & (seconds % 1 != 0)


_RANGE = _Rule(_is_out_of_range, BAD_YEAR)
_NANOSECONDS = _Rule(
    _has_nanoseconds, "with nanoseconds, and a table stores microseconds: round the times where the file is written"
)
_CALENDAR = _Rule(
    _is_before_calendar,
    f"before {_GREGORIAN_DAY}, for which the ORC file does not state the calendar, so that Spark reads other days than "
    "PyArrow: write the file as Parquet",
)
_NEGATIVE = _Rule(
    _is_negative_fraction,
    "before 1970 with a fraction of a second, which Spark does not read as PyArrow writes it into ORC files: write the "
    "file as Parquet",
)
_RULES = {
    "int96": [_RANGE, _NANOSECONDS],
    "orc": [_RANGE, _NANOSECONDS],
    "orc_without_calendar": [_RANGE, _CALENDAR, _NANOSECONDS],
}
"""The rules for each kind of times. The first that a value breaks is reported."""
