"""Read Parquet times in nanoseconds, pandas' default, as microseconds if no value loses a digit.

Spark can read such columns only as whole numbers.
"""

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType, TimestampNTZType

from sluice.contracts.spark_jobs import NanosecondColumn
from sluice.identifiers import quoted
from sluice.sizes import format_count
from spark_jobs.values.many_columns import with_columns

OPTION = "sluice.nanoseconds"
"""Name of an option that Spark's reader ignores. Its value is a JSON object of the columns of nanoseconds."""
LOST_NANOSECONDS = "has nanoseconds, and a table stores microseconds"
_AS_NUMBERS = "spark.sql.legacy.parquet.nanosAsLong"
_REMEDY = "round the times where the file is written (pandas: `.dt.floor('us')`)"


def options_of(columns: Sequence[NanosecondColumn]) -> dict[str, str]:
    """Return the reader option that names these columns, or no option if there are none."""
    return {OPTION: json.dumps({each.name: each.is_utc for each in columns})} if columns else {}


def columns_in(options: Mapping[str, str]) -> dict[str, bool]:
    """Return the columns of nanoseconds: True for times in UTC, False for times without a zone."""
    return dict(json.loads(options.get(OPTION, "{}")))


def allow(spark: SparkSession) -> None:
    """Let Spark read nanoseconds as whole numbers."""
    spark.conf.set(_AS_NUMBERS, "true")


def as_numbers(schema: StructType, columns: Mapping[str, bool]) -> StructType:
    """Return the schema with whole numbers in place of times in nanoseconds."""
    return StructType([StructField(each.name, LongType()) if each.name in columns else each for each in schema])


def as_times(rows: DataFrame, columns: Mapping[str, bool]) -> DataFrame:
    """Return the rows with times in place of nanoseconds. A time that is not a whole microsecond fails the job."""
    present = {name: is_utc for name, is_utc in columns.items() if name in rows.columns}
    return with_columns(rows, {name: _as_time(name, is_utc=is_utc) for name, is_utc in present.items()})


def inexact_times(rows: DataFrame, columns: Mapping[str, bool]) -> list[str]:
    """Return the columns with times that are not whole microseconds, each with a count and the first file.

    Args:
        rows: rows with times as whole numbers of nanoseconds.
    """
    problems = []
    for name in columns:
        lost = rows.filter(F.col(quoted(name)) % 1000 != 0).select(F.col("_metadata.file_path").alias("file"))
        count, file = lost.agg(F.count(F.lit(1)), F.min("file")).collect()[0]
        if count:
            problems.append(f"{name}: {format_count(count, 'value')} ({file}) {LOST_NANOSECONDS}: {_REMEDY}")
    return problems


def _as_time(name: str, *, is_utc: bool) -> Column:
    column = F.col(quoted(name))
    moment = F.expr(f"timestamp_micros({quoted(name)} div 1000)")
    time = moment if is_utc else moment.cast(TimestampNTZType())
    message = F.lit(f"a value of the column {name} {LOST_NANOSECONDS}")
    return F.when(column % 1000 == 0, time).when(column.isNotNull(), F.raise_error(message))
