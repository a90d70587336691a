"""Find what Spark refused to read: the file, the record, the column and the value.

A failed read names a file at best, behind several classes of Java. Read again without failing, Spark keeps the text of
each record that it cannot read, and leaves empty the columns whose values do not fit.
"""

import csv
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from sluice.contracts.spark_jobs import IngestSpec, UnreadableRows
from sluice.identifiers import quoted
from spark_jobs.job import log_error
from spark_jobs.reading import (
    Reading,
    columns_of_folders,
    load,
    plan_reading,
    plan_reading_as_text,
    replace_type,
)

_RECORD, _FILE = "sluice_record", "sluice_file"
_MAX_ROWS = 1000
"""How many rows are counted at most."""
_MAX_RECORD = 10_000
_TEXT_FORMATS = ("csv", "json")


def find_unreadable_rows(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> UnreadableRows | None:
    """Return the first of the rows that Spark refuses to read, and how many there are; None if none is found.

    Args:
        target: the schema of the table, as `read_source` gets it.
    """
    try:
        return _find(spark, spec, target)
    except (PySparkException, Py4JJavaError) as error:  # then the error of the read itself has to do
        log_error(error)
        return None


def _find(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> UnreadableRows | None:
    reading = _plan(spark, spec, target)
    if reading.format not in _TEXT_FORMATS:
        return None
    decimals = reading.decimals
    as_doubles = [replace_type(each, DoubleType()) if each in decimals else each for each in reading.schema or ()]
    lenient = [reading, *([replace(reading, schema=StructType(as_doubles))] if decimals else [])]
    for each in lenient:
        for files, options in each.groups:
            # Of one JSON value, Spark gives each row the whole file as its record.
            limit = 1 if options else _MAX_ROWS
            if rows := _refused(spark, each, files, options).take(limit):
                is_all = len(rows) < limit
                return _describe([row.asDict() for row in rows], reading, columns_of_folders(spec), is_all=is_all)
    return None


def _plan(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> Reading:
    """Return how the files are read: as text where already the look at their types fails."""
    try:
        return plan_reading(spark, spec, target)
    except (PySparkException, Py4JJavaError):
        return plan_reading_as_text(spec)


def _describe(
    rows: Sequence[Mapping[str, Any]], reading: Reading, folders: Collection[str], *, is_all: bool
) -> UnreadableRows:
    first = rows[0]
    column, value, type_name = _misfit(first, reading, folders)
    return UnreadableRows(
        path=_path(first[_FILE]),
        record=first[_RECORD],
        column=column,
        value=value,
        type_name=type_name,
        rows=len(rows),
        there_may_be_more=not is_all,
    )


def _refused(spark: SparkSession, reading: Reading, files: list[str], options: Mapping[str, str]) -> DataFrame:
    """Return the rows that cannot be read, each with its text and its file."""
    schema = reading.schema or load(spark, reading, files, options).schema
    with_record = StructType([*schema.fields, StructField(_RECORD, StringType())])
    lenient = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _RECORD, "enforceSchema": "true"}
    reader = spark.read.format(reading.format).options(**{**reading.options, **options, **lenient})
    rows = reader.schema(with_record).load(files)
    # Spark reads no record of which only the text is asked for.
    rows = rows.select("*", F.col("_metadata.file_path").alias(_FILE)).filter(F.col(quoted(_RECORD)).isNotNull())
    return rows.withColumn(_RECORD, F.substring(_RECORD, 1, _MAX_RECORD))


def _misfit(row: Mapping[str, Any], reading: Reading, folders: Collection[str]) -> tuple[str, str, str]:
    """Return the first column of a record whose value does not fit, the value and the type; empty if none is known."""
    known = (reading.schema or StructType()).fields
    fields = [field for field in known if field.name in row and field.name not in folders]
    options = {name.lower(): value for name, value in reading.options.items()}
    nulls = ("", options.get("nullvalue", ""))
    values = _values(row[_RECORD], reading.format, options, [field.name for field in fields])
    for field in fields:
        value = values.get(field.name)
        is_null = value is None or (isinstance(value, str) and value.strip() in nulls)
        if not is_null and row[field.name] is None:
            return field.name, str(value), field.dataType.simpleString()
    return "", "", ""


def _values(record: str, format: str, options: Mapping[str, str], names: list[str]) -> dict[str, Any]:
    """Return the values of a record as its text has them, by column; empty if it cannot be told."""
    try:
        if format == "json":
            document = json.loads(record)
            return document if isinstance(document, dict) else {}
        separator = options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t")
        quote = options.get("quote", '"').strip("\0")
        escape = options.get("escape", quote)
        form: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
        if escape != quote:
            form |= {"escapechar": escape, "doublequote": False}
        (values,) = csv.reader([record], delimiter=separator, **form)
    except (ValueError, TypeError, csv.Error):
        return {}
    return dict(zip(names, values, strict=False)) if len(values) == len(names) else {}


def _path(address: str) -> str:
    """Return the path that Spark's address of a file stands for."""
    parts = urlsplit(address)
    return unquote(parts.path) if parts.scheme == "file" else unquote(address)
