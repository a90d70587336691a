"""The built-in audit job: answer every question of a run that is left to Spark, in one pass over each table.

    spark-submit scan.py SPEC

The session's catalog is pinned to the audited hash, so the job can only read.
"""

import sys
import uuid
from datetime import timezone
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType
from pyspark.sql.utils import is_remote

from sluice.audit.query_builder import AuditQuery
from sluice.contracts.spark_jobs import JobAnswer, ScanAnswer, ScanSpec, ScanTarget, View
from sluice.identifiers import quoted, quoted_table
from sluice.sql.dialect import SPARK
from spark_jobs.job import error_answer, reason, run_job, say


def scan_all(spark: SparkSession, spec: ScanSpec) -> JobAnswer:
    """Answer every question of the spec."""
    answers: dict[str, ScanAnswer] = {}
    for target in spec.targets:
        say(f"auditing {target.table}")
        answers.update(_answers(spark, spec, target))
    return JobAnswer(scans=answers)


def _answers(spark: SparkSession, spec: ScanSpec, target: ScanTarget) -> dict[str, ScanAnswer]:
    def run(sql: str) -> list[dict[str, Any]]:
        found = spark.sql(sql)
        zoned = [field.name for field in found.schema.fields if isinstance(field.dataType, TimestampType)]
        return [_in_utc(row.asDict(), zoned) for row in found.collect()]

    def excuse(error: Exception) -> str | None:
        """Return why there is no answer; let what may pass, such as a service that is away, fail the whole job."""
        if not isinstance(error, PySparkException | Py4JJavaError):
            return None
        passes = error_answer(error).error_kind == "JobFailed"
        return None if passes and not spec.insist else reason(error)

    try:
        for view in target.views:
            rows_of(spark, spec.spark_catalog, spec.main, view).createOrReplaceTempView(view.name)
    except (PySparkException, Py4JJavaError) as error:
        why = excuse(error)
        if why is None:
            raise
        return {key: ScanAnswer(error=why) for key in target.questions}
    asking = AuditQuery(run, SPARK, target.types, target.questions, target.with_rest, spec.sample_rows, excuse=excuse)
    return asking.answers()


def _in_utc(row: dict[str, Any], zoned: list[str]) -> dict[str, Any]:
    """Give times their zone back: PySpark returns them without one, in that of this process."""
    return {name: value.astimezone(timezone.utc) if value and name in zoned else value for name, value in row.items()}


def rows_of(spark: SparkSession, spark_catalog: str, main: str, view: View) -> DataFrame:
    """Return the rows of a view, as the session's branch or a hash of main has them."""
    if view.at_main:
        *namespace, table = view.table.split(".")
        pinned = ".".join(map(quoted, [spark_catalog, *namespace, f"{table}@{main}#{view.at_main}"]))
        return spark.read.table(pinned)
    name = quoted_table(view.table, spark_catalog)
    if view.paths == []:
        return spark.read.table(name).limit(0)
    return spark.read.table(name) if view.paths is None else _rows_of_files(spark, name, view.paths)


def _rows_of_files(spark: SparkSession, name: str, paths: list[str]) -> DataFrame:
    """Read some data files of a table, with the row-level deletes that apply to them, and no other file.

    Iceberg's own rewrites of files read this way: the tasks of a scan are staged, and a read is told to take them.
    On a server's far side nothing can be staged: there the other files are opened, and their rows left out.
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
    """Return Iceberg's cache of staged tables; by reflection, since py4j overlooks its static `get` beside another."""
    gateway: Any = spark.sparkContext._gateway
    jvm: Any = spark._jvm
    nothing = gateway.new_array(jvm.java.lang.Class, 0)
    get = jvm.org.apache.iceberg.spark.SparkTableCache().getClass().getMethod("get", nothing)
    return get.invoke(None, gateway.new_array(jvm.java.lang.Object, 0))


if __name__ == "__main__":
    job = ScanSpec.model_validate_json(Path(sys.argv[1]).read_text())
    sys.exit(run_job(job.answer, lambda spark: scan_all(spark, job)))
