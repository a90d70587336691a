"""The built-in job of row-level quarantine: move bad rows from a table into its quarantine table.

    spark-submit divide.py SPEC

It runs on the branch of the attempt. A row is known by its data file and its place in it, so that of two rows
that look the same each is dealt with by itself.
"""

import sys
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.audit.bad_rows import AT, CHECKS, RUN
from sluice.checks.base import BAD_ROWS, ROWS
from sluice.contracts.spark_jobs import JobAnswer, QuarantineRowsSpec
from sluice.errors import InvalidInput
from sluice.identifiers import quoted, quoted_table
from spark_jobs.job import run_job, say
from spark_jobs.scan import rows_of

_FILE, _PLACE, _BAD = "sluice_file", "sluice_place", "sluice_bad"


def divide(spark: SparkSession, spec: QuarantineRowsSpec) -> JobAnswer:
    """Count the bad rows of every table first; move them only if no table is above its cap."""
    found: list[tuple[QuarantineRowsSpec.Part, DataFrame, int]] = []
    for part in spec.tables:
        say(f"looking for bad rows of {part.table}")
        bad = _bad_rows(spark, spec, part).persist()
        found.append((part, bad, bad.count()))
    answer = JobAnswer(
        bad_rows={part.table: count for part, _, count in found},
        above_cap=[part.table for part, _, count in found if count > part.limit],
    )
    if not answer.above_cap:
        for part, bad, count in found:
            say(f"setting {count} bad rows of {part.table} apart")
            _move(spark, spec, part, bad)
    return answer


def _bad_rows(spark: SparkSession, spec: QuarantineRowsSpec, part: QuarantineRowsSpec.Part) -> DataFrame:
    """Return the bad rows with all their columns, their file and place, and the names of the checks they break."""
    for view in part.target.views:
        rows_of(spark, spec.spark_catalog, spec.main, view).createOrReplaceTempView(view.name)
    (ours,) = [view for view in part.target.views if view.name == ROWS]
    rows = rows_of(spark, spec.spark_catalog, spec.main, ours)
    rows = rows.select("*", F.col("_file").alias(_FILE), F.col("_pos").alias(_PLACE))
    marks: list[Column] = []
    for number, (key, question) in enumerate(part.target.questions.items()):
        broken = F.expr(question.bad) if question.bad else F.col(f"sluice_key_{number}").isNotNull()
        if question.groups:
            groups = question.groups_with_rest if part.target.with_rest else question.groups
            rows = _with_groups(rows, spark.sql(groups or question.groups), number)
            broken = broken & F.expr(question.where) if question.where else broken
        marks.append(F.when(broken, F.lit(part.labels[key])))
    marked = rows.withColumn(CHECKS, F.array_compact(F.array(*marks))).filter(F.size(CHECKS) > 0)
    return marked.drop(*(f"sluice_key_{number}" for number in range(len(marks))))


def _with_groups(rows: DataFrame, groups: DataFrame, number: int) -> DataFrame:
    """Mark each row whose key is that of a bad group; nulls are keys too."""
    keys = [name for name in groups.columns if name != BAD_ROWS]
    mark = f"sluice_key_{number}"
    renamed = groups.select(*(F.col(quoted(name)).alias(f"{mark}_{place}") for place, name in enumerate(keys)))
    renamed = renamed.distinct().withColumn(mark, F.lit(True))
    same = [rows[quoted(name)].eqNullSafe(renamed[f"{mark}_{place}"]) for place, name in enumerate(keys)]
    joined = rows.join(renamed, reduce(lambda a, b: a & b, same), "left")
    return joined.drop(*(f"{mark}_{place}" for place in range(len(keys))))


def _move(spark: SparkSession, spec: QuarantineRowsSpec, part: QuarantineRowsSpec.Part, bad: DataFrame) -> None:
    source, quarantine = (quoted_table(name, spec.spark_catalog) for name in (part.table, part.quarantine))
    columns = spark.table(source).columns
    taken = [name for name in columns if name.lower() in (CHECKS, RUN, AT)]
    if taken:
        raise InvalidInput(f"{part.table} has a column {taken[0]!r}, which its quarantine table needs for itself")
    kept = bad.select(
        *(F.col(quoted(name)) for name in columns),
        F.col(CHECKS),
        F.lit(spec.run_id).alias(RUN),
        F.lit(spec.at).cast("timestamp").alias(AT),
    )
    _make(spark, quarantine, kept)
    kept.writeTo(quarantine).append()
    bad.select(_FILE, _PLACE).createOrReplaceTempView(_BAD)
    same = f"{_BAD}.{_FILE} = _file AND {_BAD}.{_PLACE} = _pos"
    spark.sql(f"DELETE FROM {source} WHERE EXISTS (SELECT 1 FROM {_BAD} WHERE {same})")


def _make(spark: SparkSession, quarantine: str, rows: DataFrame) -> None:
    """Make the quarantine table, or give it the columns that its table got since."""
    if not spark.catalog.tableExists(quarantine):
        nullable = ", ".join(f"{quoted(each.name)} {each.dataType.simpleString()}" for each in rows.schema)
        spark.sql(f"CREATE TABLE {quarantine} ({nullable}) USING iceberg COMMENT 'Rows that broke a check'")
        return
    there = {name.lower() for name in spark.table(quarantine).columns}
    missing = [each for each in rows.schema if each.name.lower() not in there]
    if missing:
        listed = ", ".join(f"{quoted(each.name)} {each.dataType.simpleString()}" for each in missing)
        spark.sql(f"ALTER TABLE {quarantine} ADD COLUMNS ({listed})")


if __name__ == "__main__":
    job = QuarantineRowsSpec.model_validate_json(Path(sys.argv[1]).read_text())
    sys.exit(run_job(job.answer, lambda spark: divide(spark, job)))
