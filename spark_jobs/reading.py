"""Read a source so that no row and no value is dropped silently: what cannot be read fails the job.

What the files hold was looked at before (`lakehouse/source_files/inspect.py`): the specification says which JSON files
are read whole, and how many rows there are.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    DataType,
    NumericType,
    StructType,
)

from sluice.contracts.spark_jobs import ColumnGroup, IngestSpec
from sluice.errors import InvalidInput
from sluice.identifiers import suggestion
from sluice.pipeline.source import Format
from spark_jobs.column_groups import GroupedFiles
from spark_jobs.column_types import fits, type_problems
from spark_jobs.load_files import Reading, columns_of_folders, load, load_plainly, parse_schema
from spark_jobs.schemas import lost_fields, merged_schema
from spark_jobs.text_schema import guess_csv_columns, guessed_csv, waiting_columns, with_fields, without_empty

_MIN_TASK_BYTES = 8 * 2**20
"""How much of the input a task reads at least. Each task writes a file of its own: less would make tiny files."""
_NOT_A_NUMBER = r"^\s*([+-]?0[0-9]|\+)"
"""Values that look like numbers and lose something as numbers: leading zeros, and the plus of telephone numbers."""
_WIDE_ENCODINGS = ("utf-16", "utf-32", "utf16", "utf32")


def read_source(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> DataFrame:
    """Read the files of a source.

    Args:
        target: the schema of the table, if it exists and there is no transform: text is then read as
            the table's types, and a value of another type fails the read.

    Raises:
        InvalidInput: the columns of the files are not those of the table, or would not be read whole.
    """
    reading = plan_reading(spark, spec, target)
    if reading.format == "parquet" and (spec.column_groups or reading.schema is not None):
        rows = _grouped_files(spark, spec, reading, target).read()
    else:
        frames = [load(spark, reading, files, more) for files, more in reading.groups]
        rows = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
    _check_folders(rows.schema, target, spec)
    return rows.coalesce(tasks(spec.bytes))


def find_inexact_values(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> list[str]:
    """Return the columns whose values the type common to all files cannot hold exactly, each with a file.

    Args:
        target: as `read_source` gets it.
    """
    if not spec.column_groups:
        return []
    return _grouped_files(spark, spec, plan_reading(spark, spec, target), target).inexact_values()


def _grouped_files(spark: SparkSession, spec: IngestSpec, reading: Reading, target: StructType | None) -> GroupedFiles:
    """Return Parquet files to be read by the types that they have, and their numbers cast to the wanted ones.

    Spark's reader refuses most numbers of another type than the one that it is to read.
    """
    wanted = reading.schema or target
    groups = spec.column_groups or [ColumnGroup(files=spec.files, untyped=[])]
    folders: dict[str, DataType] = {}
    if names := columns_of_folders(spec):  # the files of one group may be in the folder 1 alone, others in abc
        options = {**reading.options, "mergeSchema": "false"}
        inferred = load_plainly(spark, reading.format, options, spec.files, None).schema
        folders = {field.name: field.dataType for field in [*inferred, *(reading.schema or ())] if field.name in names}

    def check_fields(schemas: Sequence[StructType]) -> None:
        assert wanted is not None
        _check_fields(schemas, wanted, spec)

    return GroupedFiles(
        lambda files, schema: load(spark, replace(reading, schema=schema), files, {}),
        groups,
        wanted,
        folders,
        check_fields if reading.schema is not None else None,
    )


def plan_reading(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> Reading:
    """Return how the files of a source are read; `read_source` says more."""
    source = spec.write.source
    assert source is not None
    format = source.reader_format()
    options = _options(format, source.options, spec)
    if format == "csv" and options["header"].lower() != "true" and not source.schema_:
        raise InvalidInput("the CSV files have no header: name their columns in source.schema")
    groups = _groups(spec, format)
    stated = parse_schema(source.schema_) if source.schema_ else None
    schema = _schema(spark, spec, format, options, groups, stated or target)
    return Reading(format, options, groups, schema)


def plan_reading_as_text(spec: IngestSpec) -> Reading:
    """Return how the files of a source are read without a look at their types: all values of text are text."""
    source = spec.write.source
    assert source is not None
    format = source.reader_format()
    return Reading(format, _options(format, source.options, spec), _groups(spec, format), None)


def tasks(size: int) -> int:
    """Return how many tasks should read an input of so many bytes at most; Spark uses fewer for large splits."""
    return max(1, math.ceil(size / _MIN_TASK_BYTES))


def check_names(given: Sequence[str], table: str, wanted: Sequence[str]) -> None:
    """Make sure that two lists hold the same column names, in whatever order.

    Raises:
        InvalidInput: they do not.
    """
    have, want = {name.lower(): name for name in given}, {name.lower(): name for name in wanted}
    extra = [name for key, name in have.items() if key not in want]
    missing = [name for key, name in want.items() if key not in have]
    if not extra and not missing and len(have) == len(given):
        return
    problems = [f"{table} has no column {name!r}{suggestion(name, missing)}" for name in extra]
    problems += [f"the input has no column {name!r}" for name in missing]
    if len(have) < len(given):
        problems.append("a column occurs twice")
    raise InvalidInput(f"the columns of the input are not those of {table}: {'; '.join(problems)}")


def check_rows_read(spec: IngestSpec, rows_read: int | None) -> None:
    """Make sure that Spark read as many rows as the files were counted to hold.

    Raises:
        InvalidInput: it did not.
    """
    if None not in (spec.rows, rows_read) and spec.rows != rows_read:
        raise InvalidInput(
            f"Spark read {rows_read:,} rows of {len(spec.files):,} files that hold {spec.rows:,}: look for line breaks "
            "and quotes in values, and state source.options (sep, quote, escape, header) as the files need them"
        )


def _options(format: Format, stated: Mapping[str, str], spec: IngestSpec) -> dict[str, str]:
    """Return the options of the reader, which Spark does not distinguish by capital letters."""
    options = {"mode": "FAILFAST"}
    if format == "csv":
        # By `enforceSchema`, Spark checks the header of every file. RFC 4180 doubles the quotes within a value.
        options |= {"header": "true", "enforceSchema": "false", "escape": '"'}
        if spec.spans_lines:
            options["multiLine"] = "true"
    elif format in ("parquet", "orc"):
        options["mergeSchema"] = "true"  # else Spark drops a column that only some files have
    by_lower = {name.lower(): name for name in options}
    for name, value in stated.items():
        options[by_lower.get(name.lower(), name)] = value
    lower = {name.lower(): value for name, value in options.items()}
    if format == "csv" and lower.get("encoding", lower.get("charset", "")).lower().startswith(_WIDE_ENCODINGS):
        options["multiLine"] = "true"  # by lines, Spark would look for line breaks of one byte
    if format == "json":  # each file is read as what it holds
        options = {name: value for name, value in options.items() if name.lower() != "multiline"}
    if spec.base_path:
        options["basePath"] = spec.base_path
    return options


def _groups(spec: IngestSpec, format: Format) -> list[tuple[list[str], dict[str, str]]]:
    """Return the files in groups that are read by the same options, and what these are beside the common ones."""
    if format != "json" or not spec.one_value:
        return [(spec.files, {})]
    whole = set(spec.one_value)
    lines = [file for file in spec.files if file not in whole]
    return [*([(lines, {})] if lines else []), (spec.one_value, {"multiLine": "true"})]


def _schema(
    spark: SparkSession,
    spec: IngestSpec,
    format: Format,
    options: Mapping[str, str],
    groups: Sequence[tuple[list[str], dict[str, str]]],
    wanted: StructType | None,
) -> StructType | None:
    """Return the schema to read with, where Spark is not to take that of the files.

    Raises:
        InvalidInput: a part of the files would be dropped.
    """
    source = spec.write.source
    assert source is not None
    is_stated = source.schema_ is not None
    if format == "csv":
        if wanted is None:
            return guessed_csv(spark, options, spec)
        if is_stated:
            return wanted  # a header of other names fails the read
        header = load_plainly(spark, format, options, spec.files[:1], None).columns
        waiting = waiting_columns(spark, spec, header, wanted)
        guessed = guess_csv_columns(spark, options, spec, waiting) if waiting else {}
        return _in_order_of(header, with_fields(wanted, guessed), spec)
    if format == "parquet" or (format == "orc" and not is_stated):
        return wanted if is_stated else None
    inferred = [load_plainly(spark, format, {**options, **more}, files, None).schema for files, more in groups]
    if format == "json":
        inferred = [
            without_empty(spark, options, group, schema) for group, schema in zip(groups, inferred, strict=True)
        ]
    if wanted is None:
        return merged_schema(inferred)
    if not is_stated:
        names = {name.lower(): name for schema in inferred for name in schema.names}
        untyped = waiting_columns(spark, spec, list(names.values()), wanted)
        types = {field.name: field.dataType for field in merged_schema(inferred)} if untyped else {}
        wanted = with_fields(wanted, {name: types[name] for name in untyped})
        wanted = _in_order_of(list(names.values()), wanted, spec)
    _check_fields(inferred, wanted, spec)
    folders = columns_of_folders(spec)
    own = StructType([field for schema in inferred for field in schema if field.name not in folders])
    if format == "orc" and not fits(own, wanted):  # Spark would read the values as NULL
        problems = type_problems(spark, spec, None)
        raise InvalidInput("; ".join(problems) or "the files have other types than source.schema")
    return wanted


def _check_fields(schemas: Sequence[StructType], wanted: StructType, spec: IngestSpec) -> None:
    """Make sure that files hold no field that would be dropped.

    Raises:
        InvalidInput: they do.
    """
    source, folders = spec.write.source, columns_of_folders(spec)
    lost = {name for schema in schemas for name in lost_fields(schema, wanted) if name not in folders}
    if lost:
        owner = "source.schema" if source and source.schema_ else next(iter(spec.tables))
        raise InvalidInput(
            f"the files hold fields that {owner} does not have: {', '.join(sorted(lost))}. Add them to it, or leave "
            "them out by a transform"
        )


def _in_order_of(names: Sequence[str], wanted: StructType, spec: IngestSpec) -> StructType:
    """Return the wanted fields in the order of the files."""
    check_names(names, next(iter(spec.tables)), wanted.names)
    by_name = {field.name.lower(): field for field in wanted.fields}
    return StructType([by_name[name.lower()] for name in names])


def _check_folders(read: StructType, target: StructType | None, spec: IngestSpec) -> None:
    """Make sure that no column that Spark makes of folders loses leading zeros.

    Raises:
        InvalidInput: one does.
    """
    numbers = {field.name for field in read if isinstance(field.dataType, NumericType)}
    numbers -= {field.name for field in target or () if isinstance(field.dataType, NumericType)}
    for name, values in columns_of_folders(spec).items():
        lost = [value for value in values if re.match(_NOT_A_NUMBER, value)]
        if name in numbers and lost:
            raise InvalidInput(
                f"the folder {name}={lost[0]} would become a number, and lose a part of it: name all columns and their "
                f"types in source.schema, with {name} as STRING"
            )
