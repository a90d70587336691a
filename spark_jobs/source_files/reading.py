"""Read a source without silently dropping a row or a value: content that cannot be read fails the job.

`lakehouse/source_files/inspect.py` inspects the files first. Its results are in the specification: the JSON files that
are one value each, and the number of rows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    DecimalType,
    StringType,
    StructType,
)

from sluice.contracts.guessed_types import GuessedColumn
from sluice.contracts.spark_jobs import ColumnGroup, IngestSpec
from sluice.errors import InvalidInput
from sluice.pipeline.encodings import ENCODING_OPTIONS, READ_AS_UTF_8, UTF_8, WIDE_ENCODINGS
from sluice.pipeline.source import Format
from spark_jobs.source_files import nanoseconds
from spark_jobs.source_files.column_groups import GroupedFiles
from spark_jobs.source_files.column_types import type_problems
from spark_jobs.source_files.csv_schema import csv_schema
from spark_jobs.source_files.file_columns import check_fields
from spark_jobs.source_files.folder_columns import check_places, check_twice, columns_of_folders
from spark_jobs.source_files.folder_values import read_as_text, with_text_in_folders, with_typed_folders
from spark_jobs.source_files.json_schema import json_schema
from spark_jobs.source_files.load_files import Reading, load, load_plainly, parse_schema
from spark_jobs.values.exact_text import contains_type
from spark_jobs.values.stated_notation import StatedNotation
from spark_jobs.values.type_rules import readable_as

_MIN_TASK_BYTES = 8 * 2**20
"""Minimum size, in bytes, of a task's input. Each task writes a file of its own, and less input makes tiny files."""
_UNREADABLE_RECORD = "sluice_unreadable_record"


class SourceRows(NamedTuple):
    """The rows of a source, and how they are read."""

    rows: DataFrame
    guessed: Sequence[GuessedColumn]
    """The columns whose types were guessed."""
    reading: Reading


def read_source(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> SourceRows:
    """Read the files of a source.

    Args:
        target: the schema of the table, or None if there is no table or if there is a transform. With it, text is read
            with the table's types, and a value of another type fails the read.

    Raises:
        InvalidInput: the columns of the files are not those of the table, or would not be read whole.
    """
    check_places(spec)
    if spec.nanoseconds:
        nanoseconds.allow(spark)
    reading = plan_reading(spark, spec, target)
    if _is_grouped(spec, reading):
        rows = _grouped_files(spark, spec, reading, target).read()
    else:
        frames = [load(spark, reading, files, more) for files, more in reading.groups]
        rows = reduce(lambda rows, more: rows.unionByName(more), frames)
    wanted = _stated_schema(spec) or target
    rows, of_folders = with_typed_folders(rows, spec, wanted, reading.notation.options)
    folders = columns_of_folders(spec)
    guessed = [*(each for each in reading.guessed if each.name not in folders), *of_folders]
    return SourceRows(rows.coalesce(tasks(spec.bytes)), guessed, reading)


def _stated_schema(spec: IngestSpec) -> StructType | None:
    source = spec.write.source
    return parse_schema(source.schema_) if source and source.schema_ else None


def find_inexact_values(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> list[str]:
    """Return the columns with values that the files' common type cannot represent exactly, each with a file.

    Args:
        target: the schema of the table, as for `read_source`.
    """
    if spec.write.source is None or spec.write.source.reader_format() != "parquet":
        return []
    reading = plan_reading(spark, spec, target)
    if spec.nanoseconds:
        plain = {name: value for name, value in reading.options.items() if name != nanoseconds.OPTION}
        times = nanoseconds.columns_in(reading.options)
        if lost := nanoseconds.inexact_times(load_plainly(spark, reading.format, plain, spec.files, None), times):
            return lost
    return _grouped_files(spark, spec, reading, target).inexact_values() if _is_grouped(spec, reading) else []


def _is_grouped(spec: IngestSpec, reading: Reading) -> bool:
    """Return True if the files are read with their own types: Parquet of several types, or with a stated schema."""
    return reading.format == "parquet" and bool(spec.column_groups or reading.schema is not None)


def _grouped_files(spark: SparkSession, spec: IngestSpec, reading: Reading, target: StructType | None) -> GroupedFiles:
    """Return Parquet files that are read with their own types; numbers and times are then cast to the wanted types.

    Spark's reader refuses most other types, and reads the stored bits as a value of some of them.
    """
    wanted = reading.schema or (with_text_in_folders(target, spec) if target is not None else None)
    groups = spec.column_groups or [ColumnGroup(files=spec.files, untyped=[])]
    folders = dict.fromkeys(columns_of_folders(spec), StringType())

    def check_stated(schemas: Sequence[StructType]) -> None:
        assert wanted is not None
        _check_stated(spark, spec, schemas, wanted)

    return GroupedFiles(
        lambda files, schema: load(spark, replace(reading, schema=schema), files, {}),
        groups,
        wanted,
        folders,
        check_stated if reading.schema is not None else None,
    )


def plan_reading(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> Reading:
    """Return the plan for reading the files of a source. Arguments and errors are those of `read_source`."""
    source = spec.write.source
    assert source is not None
    format = source.reader_format()
    options = _options(format, source.options, spec)
    if format == "csv" and options["header"].lower() != "true" and not source.schema_:
        raise InvalidInput("the CSV files have no header: name their columns in source.schema")
    groups = _groups(spec, format)
    stated, folders = _stated_schema(spec), columns_of_folders(spec)
    if folders:
        read_as_text(spark)
        stated = stated and with_text_in_folders(stated, spec)
        _check_folders(spark, spec, format, options, groups)
    wanted = stated or (with_text_in_folders(target, spec) if target is not None else None)
    own = {name.lower() for name in target.names} if target is not None and not stated else set[str]()
    of_table = own - {name.lower() for name in folders}
    notation = StatedNotation.of(spark, options, is_csv=format == "csv")
    if format == "json":
        schema, named, guessed = json_schema(spark, spec, options, groups, wanted, is_stated=stated is not None)
        _check_locale(options, schema)
        return Reading(format, options, groups, schema, named, guessed, of_table, notation)
    if format == "csv":
        of_csv, guessed = csv_schema(spark, spec, options, groups, wanted, is_stated=stated is not None)
        return Reading(format, options, groups, of_csv, guessed=guessed, of_table=of_table, notation=notation)
    if stated is not None and format == "orc":
        _check_orc(spark, spec, options, stated)
    return Reading(format, options, groups, stated)


def _check_locale(options: Mapping[str, str], schema: StructType) -> None:
    """Check that Spark reads decimals of JSON in plain notation.

    Raises:
        InvalidInput: a locale states another notation: it would read the text `1.005` as 1005.
    """
    if "locale" in {name.lower() for name in options} and contains_type(schema, (DecimalType,)):
        raise InvalidInput(
            "source.options.locale would change the decimals of JSON: leave it out, or read the column as STRING and "
            "convert it in a transform"
        )


def _check_folders(
    spark: SparkSession,
    spec: IngestSpec,
    format: Format,
    options: Mapping[str, str],
    groups: Sequence[tuple[list[str], dict[str, str]]],
) -> None:
    """Check that no file in text has a column that is also in the folders. All files of CSV have the same columns.

    A record that Spark cannot parse is reported when the files are read.

    Raises:
        InvalidInput: a file has such a column.
    """
    for files, more in {"csv": groups[:1], "json": groups}.get(format, ()):
        own = {name: value for name, value in {**options, **more}.items() if name.lower() not in ("basepath", "mode")}
        own["mode"] = "PERMISSIVE"
        check_twice(spec, load_plainly(spark, format, own, files[:1] if format == "csv" else files, None).columns)


def plan_reading_as_text(spec: IngestSpec) -> Reading:
    """Return a plan that reads the files of a source without inferring types, so that values in text stay text."""
    source = spec.write.source
    assert source is not None
    format = source.reader_format()
    return Reading(format, _options(format, source.options, spec), _groups(spec, format), None)


def tasks(size: int) -> int:
    """Return the maximum number of tasks for an input of `size` bytes. Spark uses fewer if splits are large."""
    return max(1, math.ceil(size / _MIN_TASK_BYTES))


def check_rows_read(spec: IngestSpec, rows_read: int | None) -> None:
    """Check that Spark read as many rows as were counted in the files.

    Raises:
        InvalidInput: Spark read another number of rows.
    """
    if None not in (spec.rows, rows_read) and spec.rows != rows_read:
        raise InvalidInput(
            f"Spark read {rows_read:,} rows of {len(spec.files):,} files that contain {spec.rows:,}: check values with "
            "line breaks or quotes, and set source.options (sep, quote, escape, header) as the files need them"
        )


def _options(format: Format, stated: Mapping[str, str], spec: IngestSpec) -> dict[str, str]:
    """Return the options of the reader. In Spark, their names are case-insensitive."""
    options = {"mode": "FAILFAST"}
    if format == "csv":
        # With `enforceSchema` false, Spark checks the header of every file. RFC 4180 doubles quotes within a value.
        quote = next((value for name, value in stated.items() if name.lower() == "quote"), '"')
        options |= {"header": "true", "enforceSchema": "false", "escape": quote or '"'}
    elif format in ("parquet", "orc"):
        options["mergeSchema"] = "true"  # else Spark drops a column that only some files have
        options["parquet.page.verify-checksum.enabled"] = "true"  # for pages with a checksum
        options |= nanoseconds.options_of(spec.nanoseconds)
    if format in ("csv", "json"):  # by default, a column `_corrupt_record` of the files could not be read
        options["columnNameOfCorruptRecord"] = _UNREADABLE_RECORD
    by_lower = {name.lower(): name for name in options}
    for name, value in stated.items():
        options[by_lower.get(name.lower(), name)] = value
    lower = {name.lower(): value for name, value in options.items()}
    encoding = lower.get("encoding", lower.get("charset", UTF_8))
    if format == "csv" and encoding.startswith(WIDE_ENCODINGS):
        options["multiLine"] = "true"  # else Spark splits lines at line breaks of one byte
    if format == "json":  # the inspection of each file decides, not the pipeline
        left_out = ["multiline"]
        if encoding.upper() in READ_AS_UTF_8:  # with any stated encoding, Spark rounds numbers in text
            left_out += ENCODING_OPTIONS
        options = {name: value for name, value in options.items() if name.lower() not in left_out}
    if spec.base_path:
        options["basePath"] = spec.base_path
    return options


def _groups(spec: IngestSpec, format: Format) -> list[tuple[list[str], dict[str, str]]]:
    """Return groups of files that are read with the same options, each with its additional options."""
    whole = {"csv": spec.read_whole, "json": {"": spec.one_value} if spec.one_value else {}}.get(format, {})
    apart = {file for files in whole.values() for file in files}
    lines = [file for file in spec.files if file not in apart]
    groups = [(files, {"multiLine": "true", **({"lineSep": end} if end else {})}) for end, files in whole.items()]
    return [*([(lines, dict[str, str]())] if lines or not groups else []), *groups]


def _check_orc(spark: SparkSession, spec: IngestSpec, options: Mapping[str, str], wanted: StructType) -> None:
    """Check that ORC files have the fields and types of the stated schema, since Spark reads others as NULL.

    Raises:
        InvalidInput: the files have other fields or types.
    """
    read = load_plainly(spark, "orc", options, spec.files, None).schema
    _check_stated(spark, spec, [read], wanted)


def _check_stated(spark: SparkSession, spec: IngestSpec, schemas: Sequence[StructType], wanted: StructType) -> None:
    """Check that typed files have the fields and types of the stated schema.

    Args:
        schemas: the columns of the files, which may be in groups.

    Raises:
        InvalidInput: the files have other fields or types.
    """
    check_fields(schemas, wanted, spec)
    assert spec.write.source is not None
    is_good = readable_as(spec.write.source.reader_format())
    folders, stated = columns_of_folders(spec), {field.name.lower(): field.dataType for field in wanted}
    for field in (field for schema in schemas for field in schema if field.name not in folders):
        have, other = field.dataType, stated[field.name.lower()]
        if not is_good(have, other):
            problem = f"{field.name} is {have.simpleString()} in some files, and source.schema has "
            raise InvalidInput("; ".join(type_problems(spark, spec, None)) or problem + other.simpleString())
