"""Determine the schema of CSV files: the stated one, the table's, or a guessed one."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sluice.contracts.guessed_types import GuessedColumn
from sluice.contracts.spark_jobs import IngestSpec
from sluice.identifiers import quoted
from sluice.pipeline.time_patterns import PATTERN_OPTIONS
from spark_jobs.source_files.file_columns import in_order_of
from spark_jobs.source_files.folder_columns import columns_of_folders
from spark_jobs.source_files.guessed_types import guess_types, type_of
from spark_jobs.source_files.load_files import Group, load_plainly
from spark_jobs.source_files.untyped_columns import waiting_columns, with_fields
from spark_jobs.values.times import TIMES

_PATTERN_OPTIONS = {name.lower() for name in PATTERN_OPTIONS}
_DAYS = ("yyyy-MM-dd", "yyyy-M-d", "yyyy-M-dd", "yyyy-MM-d", "yyyy-MM", "yyyy-M", "yyyy")
"""Formats of days that Spark also reads as times; the first is the default."""


def csv_schema(
    spark: SparkSession,
    spec: IngestSpec,
    options: Mapping[str, str],
    groups: Sequence[Group],
    wanted: StructType | None,
    *,
    is_stated: bool,
) -> tuple[StructType, list[GuessedColumn]]:
    """Return the schema to read with, and the columns whose types were guessed.

    Args:
        wanted: the stated schema, or the schema of the table; None if there is neither.

    Raises:
        InvalidInput: the files have other columns than the table.
    """
    if wanted is None:
        return _guessed_schema(spark, options, groups, spec)
    if is_stated:
        return wanted, []  # a header with other names fails the read
    header = _header(spark, options, groups).names
    waiting = waiting_columns(spark, spec, header, wanted)
    folders = columns_of_folders(spec)
    own = [name for name in header if name not in folders]
    in_files = [name for name in waiting if name not in folders]
    guessed = _guess_columns(spark, options, groups, own, in_files) if in_files else []
    types: dict[str, DataType] = {name: StringType() for name in waiting}  # folders are read as text
    types |= {each.name: type_of(each) for each in guessed}
    return in_order_of(header, with_fields(wanted, types), spec), guessed


def _header(spark: SparkSession, options: Mapping[str, str], groups: Sequence[Group]) -> StructType:
    """Return the columns of the first file, and of folders. All of them are text."""
    files, own = groups[0]
    return load_plainly(spark, "csv", {**options, **own}, files[:1], None).schema


def _guessed_schema(
    spark: SparkSession, options: Mapping[str, str], groups: Sequence[Group], spec: IngestSpec
) -> tuple[StructType, list[GuessedColumn]]:
    """Guess the types of CSV files. If the pipeline states the format of times, Spark infers the columns of times."""
    stated = {name.lower(): value.lower() for name, value in options.items()}
    plain = {name: value for name, value in options.items() if name.lower() != "inferschema"}
    read = _header(spark, plain, groups)
    if stated.get("inferschema") == "false":
        return read, []
    folders = columns_of_folders(spec)
    names = [field.name for field in read if field.name not in folders]
    known: dict[str, DataType] = {field.name: field.dataType for field in read if field.name in folders}
    if not stated.keys().isdisjoint(_PATTERN_OPTIONS):
        known |= _times(spark, plain, groups)
    guessed = _guess_columns(spark, plain, groups, names, [name for name in names if name not in known])
    known |= {each.name: type_of(each) for each in guessed}
    return StructType([StructField(field.name, known[field.name]) for field in read]), guessed


def _times(spark: SparkSession, options: Mapping[str, str], groups: Sequence[Group]) -> dict[str, DataType]:
    """Return the columns in which Spark finds times, of one type in all groups of files that have values in them."""
    infers = {**options, "inferSchema": "true"}
    schemas = [load_plainly(spark, "csv", {**infers, **own}, files, None).schema for files, own in groups]
    in_groups = [{field.name: field.dataType for field in schema} for schema in schemas]
    names = [name for name in in_groups[0] if any(isinstance(each.get(name), TIMES) for each in in_groups)]
    types: dict[str, list[DataType]] = {name: [] for name in names}
    for (files, own), inferred in zip(groups, in_groups, strict=True):
        texts = [name for name in names if isinstance(inferred.get(name), StringType)]
        empty = _columns_without_values(load_plainly(spark, "csv", {**options, **own}, files, None), texts)
        for name in names:
            if name not in empty:
                types[name].append(inferred.get(name, StringType()))
    common = {name: _common_time(each, options) for name, each in types.items()}
    return {name: type for name, type in common.items() if type is not None}


def _columns_without_values(text: DataFrame, names: Sequence[str]) -> set[str]:
    """Return the columns without a value in any row: Spark infers text for them, whatever other files hold."""
    if not names:
        return set()
    counts = [F.count(F.nullif(F.col(quoted(name)), F.lit(""))) for name in names]
    row = text.select(*counts).collect()[0]
    return {name for name, count in zip(names, row, strict=True) if count == 0}


def _common_time(types: Sequence[DataType], options: Mapping[str, str]) -> DataType | None:
    """Return the type of times that Spark would infer for all files together; None if they are no times of one type.

    Spark reads a day as a time only if no option states the format of times, and if days have a format of Spark's own.
    """
    first = next((type for type in types if not isinstance(type, DateType)), DateType())
    if not isinstance(first, TIMES) or any(type not in (first, DateType()) for type in types):
        return None
    if isinstance(first, DateType) or DateType() not in types:
        return first
    stated = {name.lower(): value for name, value in options.items()}
    format = "timestampformat" if isinstance(first, TimestampType) else "timestampntzformat"
    return first if format not in stated and stated.get("dateformat", _DAYS[0]) in _DAYS else None


def _guess_columns(
    spark: SparkSession,
    options: Mapping[str, str],
    groups: Sequence[Group],
    in_files: Sequence[str],
    names: Sequence[str],
) -> list[GuessedColumn]:
    """Guess the types of some columns of CSV files.

    Args:
        in_files: the columns of the files, in their order, without those of folders.
        names: the columns whose types are guessed.
    """
    plain = {name: value for name, value in options.items() if name.lower() not in ("inferschema", "basepath")}
    as_text = StructType([StructField(name, StringType()) for name in in_files])
    frames = [load_plainly(spark, "csv", {**plain, **own}, files, as_text) for files, own in groups]
    return guess_types(frames, names)
