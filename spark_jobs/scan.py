"""The built-in scan job: answer the checks that other engines left to Spark, in one pass over each scan group.

    spark-submit scan.py SPEC

The session's catalog is pinned to the audited hash, so the job can only read.
"""

import sys
import uuid
from datetime import timezone
from functools import reduce
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DateType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from pyspark.sql.utils import is_remote

from sluice.audit.query_builder import AuditQuery
from sluice.checks.base import ROWS
from sluice.contracts.spark_jobs import JobAnswer, ScanAnswer, ScanSpec, ScanTarget, View
from sluice.identifiers import quoted, quoted_table
from sluice.sql.dialect import SPARK
from spark_jobs.job import error_answer, reason, report_progress, run_job

FILE, POSITION = "sluice_file", "sluice_position"
"""Names of the columns with a row's data file, and its position in the file."""
_NUMBER, _EQUAL = "sluice_number", "sluice_equal"


def scan_all(spark: SparkSession, spec: ScanSpec) -> JobAnswer:
    """Answer all checks of the spec."""
    answers: dict[str, ScanAnswer] = {}
    for target in spec.targets:
        report_progress(f"auditing {target.table}")
        answers.update(_answers(spark, spec, target))
    return JobAnswer(scans=answers)


def _answers(spark: SparkSession, spec: ScanSpec, target: ScanTarget) -> dict[str, ScanAnswer]:
    def run(sql: str) -> list[dict[str, Any]]:
        rows = spark.sql(sql)
        try:
            return _collected(rows)
        except (OverflowError, ValueError):  # a time that Python cannot represent
            return _collected(rows.select(*map(_as_text, rows.schema.fields)))

    def error_message(error: Exception) -> str | None:
        """Return why a check has no answer, or None for an error that must fail the job so that it is retried."""
        if not isinstance(error, PySparkException | Py4JJavaError):
            return None
        retryable = error_answer(error, show_values=spec.show_values).error_kind == "JobFailed"
        return None if retryable and not spec.last_attempt else reason(error, show_values=spec.show_values)

    try:
        for view in target.views:
            rows_of(spark, spec.spark_catalog, spec.main, view).createOrReplaceTempView(view.name)
    except (PySparkException, Py4JJavaError) as error:
        message = error_message(error)
        if message is None:
            raise
        return {key: ScanAnswer(error=message) for key in target.queries}
    return AuditQuery(
        run,
        SPARK,
        target.types,
        target.queries,
        target.with_other_rows,
        spec.sample_rows,
        error_message=error_message,
    ).answers()


def _collected(rows: DataFrame) -> list[dict[str, Any]]:
    zoned = [field.name for field in rows.schema.fields if isinstance(field.dataType, TimestampType)]
    return [_in_utc(row.asDict(), zoned) for row in rows.collect()]


def _as_text(field: StructField) -> Column:
    """Return a column, as text if it may contain a date or a time."""
    column = F.col(quoted(field.name))
    if isinstance(field.dataType, StructType | ArrayType | MapType | DateType | TimestampNTZType):
        return column.cast("string").alias(field.name)
    if isinstance(field.dataType, TimestampType):  # the session's zone is UTC
        return F.concat(column.cast("string"), F.lit("+00:00")).alias(field.name)
    return column


def _in_utc(row: dict[str, Any], zoned: list[str]) -> dict[str, Any]:
    """Return a row with its times in UTC. PySpark returns times without a zone, in the zone of this process."""
    return {name: value.astimezone(timezone.utc) if value and name in zoned else value for name, value in row.items()}


def rows_of(spark: SparkSession, spark_catalog: str, main: str, view: View, *, positions: bool = False) -> DataFrame:
    """Return the rows of a view, from the session's branch or from main at a hash.

    Args:
        positions: True to add the file and the position of each row, as the columns `FILE` and `POSITION`.
    """
    if view.compared is None:
        rows = _stored_rows(spark, spark_catalog, main, view)
        return rows.select("*", *_positions()) if positions else rows
    brought, carried = compared_rows(spark, spark_catalog, main, view)
    if view.name == ROWS:
        return brought if positions else brought.drop(FILE, POSITION)
    others = _stored_rows(spark, spark_catalog, main, view.model_copy(update={"compared": None}))
    return others.unionByName(carried.drop(FILE, POSITION))


def rows_on_main(spark: SparkSession, spark_catalog: str, main: str, table: str, main_hash: str) -> DataFrame:
    """Return the rows of a table on main at a hash."""
    *namespace, name = table.split(".")
    return spark.read.table(".".join(map(quoted, [spark_catalog, *namespace, f"{name}@{main}#{main_hash}"])))


def compared_rows(spark: SparkSession, spark_catalog: str, main: str, view: View) -> tuple[DataFrame, DataFrame]:
    """Return the rows of added files that a merge brought or changed, and the rows that it copied unchanged.

    Whole rows are compared, and equal rows are counted: if main had two equal rows and the added files have three, the
    merge brought one.
    """
    compared = view.compared
    assert compared
    added = _rows_of_files(spark, quoted_table(view.table, spark_catalog), compared.added)
    columns = added.columns
    added = added.select("*", *_positions())
    equal = Window.partitionBy(*(F.col(quoted(name)) for name in columns)).orderBy(FILE, POSITION)
    added = added.withColumn(_NUMBER, F.row_number().over(equal))
    before = rows_on_main(spark, spark_catalog, main, view.table, compared.main_hash)
    before = before.filter(F.col("_file").isin(compared.removed)).select(
        *(F.col(quoted(name)).alias(f"{_NUMBER}_{index}") for index, name in enumerate(columns))
    )
    counted = before.groupBy(*before.columns).agg(F.count(F.lit(1)).alias(_EQUAL))
    same = [added[quoted(name)].eqNullSafe(counted[f"{_NUMBER}_{index}"]) for index, name in enumerate(columns)]
    joined = added.join(counted, reduce(lambda a, b: a & b, same), "left")
    is_carried = F.col(_NUMBER) <= F.coalesce(F.col(_EQUAL), F.lit(0))
    kept = [*(F.col(quoted(name)) for name in columns), F.col(FILE), F.col(POSITION)]
    return joined.filter(~is_carried).select(*kept), joined.filter(is_carried).select(*kept)


def _positions() -> list[Column]:
    return [F.col("_file").alias(FILE), F.col("_pos").alias(POSITION)]


def _stored_rows(spark: SparkSession, spark_catalog: str, main: str, view: View) -> DataFrame:
    if view.main_hash:
        return rows_on_main(spark, spark_catalog, main, view.table, view.main_hash)
    name = quoted_table(view.table, spark_catalog)
    if view.paths == []:
        return spark.read.table(name).limit(0)
    return spark.read.table(name) if view.paths is None else _rows_of_files(spark, name, view.paths)


def _rows_of_files(spark: SparkSession, name: str, paths: list[str]) -> DataFrame:
    """Read only some data files of a table, with the row-level deletes that apply to them.

    Iceberg's own rewrites read files in the same way: they stage the tasks of a scan, and then read the staged set.
    A session on a Spark Connect server cannot stage tasks, so it opens all files and filters their rows.
    """
    if is_remote():
        return spark.read.table(name).filter(F.col("_file").isin(paths))
    jvm: Any = spark._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    wanted, tasks = set(paths), jvm.java.util.ArrayList()
    planned = table.newScan().planFiles()
    try:
        iterator = planned.iterator()
        while iterator.hasNext():
            task = iterator.next()
            if task.file().location() in wanted:
                tasks.add(task)
    finally:
        planned.close()
    staged = str(uuid.uuid4())
    _table_cache(spark).add(staged, table)
    jvm.org.apache.iceberg.spark.ScanTaskSetManager.get().stageTasks(table, staged, tasks)
    return spark.read.format("iceberg").load(staged)


def _table_cache(spark: SparkSession) -> Any:
    """Return Iceberg's cache of staged tables. Reflection is needed, because py4j does not find the static `get`."""
    gateway: Any = spark.sparkContext._gateway
    jvm: Any = spark._jvm
    nothing = gateway.new_array(jvm.java.lang.Class, 0)
    get = jvm.org.apache.iceberg.spark.SparkTableCache().getClass().getMethod("get", nothing)
    return get.invoke(None, gateway.new_array(jvm.java.lang.Object, 0))


if __name__ == "__main__":
    job = ScanSpec.model_validate_json(Path(sys.argv[1]).read_text())
    sys.exit(run_job(job, lambda spark: scan_all(spark, job)))
