"""Determine the schema of CSV files: the stated one, the table's, or a guessed one."""

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    DataType,
    StringType,
    StructField,
    StructType,
)

from sluice.contracts.guessed_types import GuessedColumn
from sluice.contracts.spark_jobs import IngestSpec
from sluice.pipeline.time_patterns import PATTERN_OPTIONS
from spark_jobs.file_columns import in_order_of
from spark_jobs.folder_columns import columns_of_folders
from spark_jobs.guessed_types import guess_types, type_of
from spark_jobs.load_files import Group, load_plainly
from spark_jobs.times import TIMES
from spark_jobs.untyped_columns import waiting_columns, with_fields

_PATTERN_OPTIONS = {name.lower() for name in PATTERN_OPTIONS}


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
    guessed = _guess_columns(spark, options, groups, waiting) if waiting else []
    types = {each.name: type_of(each) for each in guessed}
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
    guessed = _guess_columns(spark, plain, groups, [name for name in names if name not in known])
    known |= {each.name: type_of(each) for each in guessed}
    return StructType([StructField(field.name, known[field.name]) for field in read]), guessed


def _times(spark: SparkSession, options: Mapping[str, str], groups: Sequence[Group]) -> dict[str, DataType]:
    """Return the columns in which Spark finds times, of one type in all files."""
    infers = {**options, "inferSchema": "true"}
    schemas = [load_plainly(spark, "csv", {**infers, **own}, files, None).schema for files, own in groups]
    first, *others = [{field.name: field.dataType for field in schema} for schema in schemas]
    are_same = {name: all(each.get(name) == type for each in others) for name, type in first.items()}
    return {name: type for name, type in first.items() if isinstance(type, TIMES) and are_same[name]}


def _guess_columns(
    spark: SparkSession, options: Mapping[str, str], groups: Sequence[Group], names: Sequence[str]
) -> list[GuessedColumn]:
    """Guess the types of some columns of CSV files."""
    plain = {name: value for name, value in options.items() if name.lower() not in ("inferschema", "basepath")}
    header = _header(spark, plain, groups)
    as_text = StructType([StructField(name, StringType()) for name in header.names])
    frames = [load_plainly(spark, "csv", {**plain, **own}, files, as_text) for files, own in groups]
    return guess_types(frames, names)
