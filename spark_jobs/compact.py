"""Compaction: rewrite small data files into fewer, larger ones with the same rows.

Iceberg's procedure `rewrite_data_files` cannot put properties on its snapshots; the action behind it can.
Source: Iceberg's documentation, "Spark procedures", rewrite_data_files.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from sluice.errors import InvalidPipeline
from sluice.publishing.commit_properties import SNAPSHOT_PROPERTY
from spark_jobs.job import report_progress


def compact(spark: SparkSession, table: str, options: Mapping[str, str]) -> int:
    """Rewrite the small files of a table; return the number of rewritten files.

    Args:
        table: the quoted name of the table, with its catalog.
        options: options of Iceberg's action, such as `min-input-files`.

    Raises:
        InvalidPipeline: there is no such table.
    """
    if not spark.catalog.tableExists(table):
        raise InvalidPipeline(f"there is no table {table} to compact")
    jvm: Any = spark._jvm
    session = spark._jsparkSession
    iceberg = jvm.org.apache.iceberg.spark
    action = iceberg.actions.SparkActions.get(session).rewriteDataFiles(
        iceberg.Spark3Util.loadIcebergTable(session, table)
    )
    for key, value in spark.sparkContext.getConf().getAll():
        if key.startswith(SNAPSHOT_PROPERTY):
            action.snapshotProperty(key.removeprefix(SNAPSHOT_PROPERTY), value)
    for key, value in options.items():
        action.option(key, value)
    result = action.execute()
    rewritten = int(result.rewrittenDataFilesCount())
    report_progress(f"{table}: {rewritten} files became {result.addedDataFilesCount()}")
    return rewritten
