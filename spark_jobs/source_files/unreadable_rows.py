"""Find the file, record, column and value that Spark refused to read.

The error of a failed read names at most a file, behind several classes of Java. A second read that does not fail keeps
the text of each record that Spark cannot read, and leaves the columns empty whose values do not fit.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    FractionalType,
    IntegralType,
    StringType,
    StructField,
    StructType,
)

from sluice.contracts.spark_jobs import IngestSpec, UnreadableRows
from sluice.identifiers import quoted
from spark_jobs.job import log_error
from spark_jobs.source_files.folder_columns import columns_of_folders
from spark_jobs.source_files.load_files import Reading, are_utf_8_lines, literal_paths, load_plainly
from spark_jobs.source_files.reading import plan_reading, plan_reading_as_text
from spark_jobs.source_files.record_values import Digits, as_json, csv_values, is_json, values_of
from spark_jobs.values.exact_text import is_exact
from spark_jobs.values.file_addresses import path_of_address
from spark_jobs.values.many_columns import any_of, with_each
from spark_jobs.values.stated_not_null import breaks_not_null, describe_null, not_null_fields

_RECORD, _FILE, _MISSING = "sluice_record", "sluice_file", "sluice_missing"
_MAX_ROWS = 1000
"""Maximum number of rows that are counted."""
_MAX_RECORD = 10_000
_LARGEST = {"byte": 2**7, "short": 2**15, "integer": 2**31, "long": 2**63}
"""Numbers that are too large for an integral type, by its name."""
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)
_TEXT_FORMATS = ("csv", "json")


def find_unreadable_rows(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> UnreadableRows | None:
    """Return the first row that Spark refuses to read, and the number of such rows, or None if there are none.

    Args:
        target: the schema of the table, as for `read_source`.
    """
    try:
        return _find(spark, spec, target)
    except (PySparkException, Py4JJavaError) as error:  # the caller then reports the error of the read itself
        log_error(error)
        return None


def _find(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> UnreadableRows | None:
    reading = _plan(spark, spec, target)
    if reading.format not in _TEXT_FORMATS:
        return None
    for files, options in reading.groups:
        # For a file that is one JSON value, each row's record is the whole file.
        limit = 1 if options and reading.format == "json" else _MAX_ROWS
        for refused in _refused(spark, reading, files, options):
            if rows := refused.take(limit):
                is_all = len(rows) < limit
                return _describe([row.asDict() for row in rows], reading, columns_of_folders(spec), is_all=is_all)
        if unreadable := _nulls(spark, spec, reading, files, options):
            return unreadable
    return None


def _nulls(
    spark: SparkSession, spec: IngestSpec, reading: Reading, files: list[str], options: Mapping[str, str]
) -> UnreadableRows | None:
    """Return the first row with a NULL against the schema, and the number of rows with one in the same column."""
    folders = columns_of_folders(spec)
    for field in not_null_fields(spec):
        if field.name in folders:
            continue
        read = _csv_with_record if reading.format == "csv" else _json_with_record
        rows = read(spark, reading, files, options)
        name = next(each for each in rows.columns if each.lower() == field.name.lower())
        column = F.col(quoted(name))
        if isinstance(rows.schema[name].dataType, StringType) and not isinstance(field.dataType, StringType):
            column = F.nullif(column, F.lit(""))
        broken = rows.filter(breaks_not_null(column, field)).select(_RECORD, _FILE).take(_MAX_ROWS)
        if broken:
            return UnreadableRows(
                path=path_of_address(broken[0][_FILE]),
                record=broken[0][_RECORD],
                column=field.name,
                problem=describe_null(field),
                rows=len(broken),
                there_may_be_more=len(broken) == _MAX_ROWS,
            )
    return None


def _plan(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> Reading:
    """Return the plan for reading the files. It reads every value as text if Spark cannot infer their types."""
    try:
        return plan_reading(spark, spec, target)
    except (PySparkException, Py4JJavaError):
        return plan_reading_as_text(spec)


def _describe(
    rows: Sequence[Mapping[str, Any]], reading: Reading, folders: Collection[str], *, is_all: bool
) -> UnreadableRows:
    first = rows[0]
    known = [field for field in (reading.schema or StructType()).fields if field.name not in folders]
    options = {name.lower(): value for name, value in reading.options.items()}
    values = csv_values(first[_RECORD], options) if reading.format == "csv" else None
    columns = [name for name in first if name not in (_RECORD, _FILE, _MISSING, *folders)]
    is_whole = len(first[_RECORD]) < _MAX_RECORD
    is_ragged = is_whole and values is not None and len(values) != len(columns)
    column, value, type_name = ("", "", "") if is_ragged else _misfit(first, reading, known)
    is_broken = is_whole and reading.format == "json" and not is_json(first[_RECORD])
    return UnreadableRows(
        path=path_of_address(first[_FILE]),
        record=first[_RECORD],
        column=column,
        value=value,
        type_name=type_name,
        is_of_table=column.lower() in reading.of_table,
        values=len(values) if values and is_ragged else None,
        columns=len(columns),
        problem="it is not a whole JSON value" if is_broken else "",
        rows=len(rows),
        there_may_be_more=not is_all,
    )


def _refused(
    spark: SparkSession, reading: Reading, files: list[str], options: Mapping[str, str]
) -> Iterator[DataFrame]:
    """Yield the rows that cannot be read, with text and file, for one method of detection after the other."""
    schema = reading.as_text or _lenient_schema(spark, reading, files, options)
    yield _corrupt(spark, reading, files, options, schema)
    if reading.converted:
        with_record = _csv_with_record if reading.format == "csv" else _json_with_record
        yield _inexact(with_record(spark, reading, files, options), reading)
    if reading.converted and reading.format == "json" and are_utf_8_lines({**reading.options, **options}):
        yield from _with_long_numbers(spark, reading, files, options)


def _lenient_schema(spark: SparkSession, reading: Reading, files: list[str], options: Mapping[str, str]) -> StructType:
    """Return the schema that Spark infers from the records that it can read."""
    lenient = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _RECORD}
    schema = load_plainly(spark, reading.format, {**reading.options, **options, **lenient}, files, None).schema
    fields = [field for field in schema if field.name != _RECORD]
    return StructType(fields or [StructField(_MISSING, StringType())])  # Spark does not return the records alone


def _corrupt(
    spark: SparkSession, reading: Reading, files: list[str], options: Mapping[str, str], schema: StructType
) -> DataFrame:
    """Return the rows that Spark's reader cannot read with a schema."""
    with_record = StructType([*schema.fields, StructField(_RECORD, StringType())])
    lenient = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _RECORD, "enforceSchema": "true"}
    rows = load_plainly(spark, reading.format, {**reading.options, **options, **lenient}, files, with_record)
    # All columns are selected, since Spark does not parse a record if only its text is selected.
    rows = rows.select("*", F.col("_metadata.file_path").alias(_FILE)).filter(F.col(quoted(_RECORD)).isNotNull())
    return rows.withColumn(_RECORD, F.substring(_RECORD, 1, _MAX_RECORD))


def _inexact(rows: DataFrame, reading: Reading) -> DataFrame:
    """Return the rows with a text that is not exactly a value of its type, with NULL in place of the text."""
    read = {field.name: field.dataType for field in rows.schema}

    def fits(column: Column, field: StructField) -> Column:
        return reading.is_exact(column, field, read[field.name])

    own = reading.is_of_table
    bad = rows.filter(any_of(reading.converted, lambda column, field: ~fits(column, field), own))
    return with_each(bad, reading.converted, lambda column, field: F.when(fits(column, field), column), own)


def _with_long_numbers(
    spark: SparkSession, reading: Reading, files: list[str], options: Mapping[str, str]
) -> Iterator[DataFrame]:
    """Yield the lines of JSON with the first number that has more digits than its type can represent.

    `from_json` rounds such a number, and Spark's reader keeps no text of the record. So the number's digits are
    searched for in the lines.
    """
    rows = load_plainly(spark, "json", {**reading.options, **options}, files, reading.as_text)
    fields = [each for each in reading.converted if isinstance(rows.schema[each.name].dataType, StringType)]
    if not fields:
        return

    def is_long(column: Column, field: StructField) -> Column:
        return ~is_exact(column, field.dataType, StringType())

    bad = rows.filter(any_of(fields, is_long))
    first = with_each(bad, fields, lambda column, field: F.when(is_long(column, field), column))
    first = first.select(*[F.col(quoted(field.name)) for field in fields])
    for row in first.take(1):
        name, digits = next((name, text) for name, text in row.asDict().items() if text is not None)
        paths, literal = literal_paths(files)
        lines = spark.read.options(**literal).text(paths).filter(F.col("value").contains(digits))
        record, address = F.col("value").alias(_RECORD), F.col("_metadata.file_path").alias(_FILE)
        yield lines.select(F.lit(None).cast("string").alias(name), record, address)


def _csv_with_record(spark: SparkSession, reading: Reading, files: list[str], options: Mapping[str, str]) -> DataFrame:
    """Return the rows of CSV as text, each with its record, which Spark keeps for a row that lacks a value."""
    assert reading.as_text is not None
    missing = StructField(_MISSING, StringType())
    schema = StructType([*reading.as_text.fields, missing])
    return _corrupt(spark, reading, files, options, schema)


def _json_with_record(spark: SparkSession, reading: Reading, files: list[str], options: Mapping[str, str]) -> DataFrame:
    """Return the rows of JSON as text, each with its record."""
    schema = reading.as_text
    assert schema is not None
    address = F.col("_metadata.file_path").alias(_FILE)
    if are_utf_8_lines({**reading.options, **options}):
        paths, literal = literal_paths(files)
        lines = spark.read.options(**literal).text(paths).select("value", address)
        rows = lines.select(F.from_json("value", schema).alias("row"), F.col("value").alias(_RECORD), _FILE)
        return rows.select("row.*", _RECORD, _FILE)
    rows = load_plainly(spark, "json", {**reading.options, **options}, files, schema)
    return rows.select("*", F.to_json(F.struct("*")).alias(_RECORD), address)


def _misfit(row: Mapping[str, Any], reading: Reading, known: Sequence[StructField]) -> tuple[str, str, str]:
    """Return the first column whose value does not fit, the value, and the type, or empty texts if there is none."""
    fields = [field for field in known if field.name in row]
    options = {name.lower(): value for name, value in reading.options.items()}
    nulls = ("", options.get("nullvalue", "")) if reading.format == "csv" else ()
    values = values_of(row[_RECORD], reading.format, options, [field.name for field in fields])
    missing = []
    for field in fields:
        value = values.get(field.name)
        is_null = value is None or (isinstance(value, str) and value in nulls)
        if not is_null and row[field.name] is None:
            missing.append((field, value))
    if reading.format == "json":  # for some values, Spark leaves the whole row empty
        missing = [each for each in missing if not _fits(each[1], each[0].dataType)] or missing
    for field, value in missing[:1]:
        is_plain = reading.format == "csv" or not _needs_quotes(value, field.dataType)
        shown = value if isinstance(value, str) and is_plain else as_json(value)
        return field.name, shown, reading.type_name(field)
    return "", "", ""


def _fits(value: object, type: DataType) -> bool:
    """Return True if a value of JSON is certainly one of a type."""
    is_number = isinstance(value, int | float | Digits) and not isinstance(value, bool)
    match type:
        case BooleanType():
            return isinstance(value, bool)
        case IntegralType():
            return is_number and isinstance(value, int) and abs(value) < _LARGEST[type.typeName()]
        case FractionalType():
            return is_number
        case BinaryType():
            return isinstance(value, str) and _BASE64.fullmatch(value) is not None
        case StringType():
            return True
    return False


def _needs_quotes(value: object, type: DataType) -> bool:
    """Return True if the type of a text of JSON would accept the same characters without the quotes."""
    return not isinstance(value, Digits) and isinstance(type, IntegralType | BooleanType)
