"""Find what Spark refused to read: the file, the record, the column and the value.

A failed read names a file at best, behind several classes of Java. Read again without failing, Spark keeps the text of
each record that it cannot read, and leaves empty the columns whose values do not fit.
"""

import csv
import json
from collections.abc import Mapping, Sequence
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
from spark_jobs.reading import Reading, load, plan_reading, plan_reading_as_text, replace_type

_RECORD, _FILE = "sluice_record", "sluice_file"
_MAX_ROWS = 1000
"""How many rows are counted at most."""
_MAX_RECORD = 10_000
_TEXT_FORMATS = ("csv", "json")


def find_unreadable_rows(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> UnreadableRows | None:
    """Return the first of the rows that Spark refuses to read, and how many there are; None if it reads all.

    Args:
        target: the schema of the table, as `read_source` gets it.
    """
    reading = _plan(spark, spec, target)
    if reading.format not in _TEXT_FORMATS:
        return None
    decimals = reading.decimals
    as_doubles = [replace_type(each, DoubleType()) if each in decimals else each for each in reading.schema or ()]
    lenient = [reading, *([replace(reading, schema=StructType(as_doubles))] if decimals else [])]
    for each in lenient:
        for files, options in each.groups:
            if rows := _refused(spark, each, files, options).take(_MAX_ROWS):
                return _describe([row.asDict() for row in rows], reading)
    return None


def _plan(spark: SparkSession, spec: IngestSpec, target: StructType | None) -> Reading:
    """Return how the files are read: as text where already the look at their types fails."""
    try:
        return plan_reading(spark, spec, target)
    except (PySparkException, Py4JJavaError):
        return plan_reading_as_text(spec)


def _describe(rows: Sequence[Mapping[str, Any]], reading: Reading) -> UnreadableRows:
    first = rows[0]
    column, value, type_name = _misfit(first, reading)
    return UnreadableRows(
        path=_path(first[_FILE]),
        record=first[_RECORD][:_MAX_RECORD],
        column=column,
        value=value,
        type_name=type_name,
        rows=len(rows),
        there_may_be_more=len(rows) == _MAX_ROWS,
    )


def _refused(spark: SparkSession, reading: Reading, files: list[str], options: Mapping[str, str]) -> DataFrame:
    """Return the rows that cannot be read, each with its text and its file."""
    schema = reading.schema or load(spark, reading, files, options).schema
    with_record = StructType([*schema.fields, StructField(_RECORD, StringType())])
    lenient = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _RECORD, "enforceSchema": "true"}
    reader = spark.read.format(reading.format).options(**{**reading.options, **options, **lenient})
    rows = reader.schema(with_record).load(files)
    # Spark reads no record of which only the text is asked for.
    return rows.select("*", F.col("_metadata.file_path").alias(_FILE)).filter(F.col(quoted(_RECORD)).isNotNull())


def _misfit(row: Mapping[str, Any], reading: Reading) -> tuple[str, str, str]:
    """Return the first column of a record whose value does not fit, the value and the type; empty if none is known."""
    fields = [field for field in (reading.schema or StructType()).fields if field.name in row]
    values = _values(row[_RECORD], reading, [field.name for field in fields])
    for field in fields:
        value = values.get(field.name)
        if value not in (None, "") and row[field.name] is None:
            return field.name, str(value), field.dataType.simpleString()
    return "", "", ""


def _values(record: str, reading: Reading, names: list[str]) -> dict[str, Any]:
    """Return the values of a record as its text has them, by column; empty if it cannot be told."""
    try:
        if reading.format == "json":
            document = json.loads(record)
            return document if isinstance(document, dict) else {}
        options = {name.lower(): value for name, value in reading.options.items()}
        separator = options.get("sep", options.get("delimiter", ","))
        (values,) = csv.reader([record], delimiter=separator, quotechar=options.get("quote", '"'))
    except (ValueError, TypeError, csv.Error):
        return {}
    return dict(zip(names, values, strict=False)) if len(values) == len(names) else {}


def _path(address: str) -> str:
    """Return the path that Spark's address of a file stands for."""
    parts = urlsplit(address)
    return unquote(parts.path) if parts.scheme == "file" else unquote(address)
