"""The built-in job of row quarantine: move bad rows from each table into its quarantine table.

    spark-submit quarantine_rows.py SPEC

It runs on the branch of the attempt. The job identifies a row by its data file and the position in it, so that it can
move one of two equal rows.
"""

import sys
from fractions import Fraction
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.checks.base import BAD_ROWS, ROWS
from sluice.contracts.spark_jobs import JobAnswer, QuarantineRowsSpec
from sluice.errors import InvalidInput
from sluice.identifiers import quoted, quoted_table
from sluice.publishing.quarantine_tables import AT, CHECKS, COMMENT, RUN
from spark_jobs.job import report_progress, run_job
from spark_jobs.scan import FILE, POSITION, rows_of, rows_on_main
from spark_jobs.values.exact_values import inexact_values, keep_values_exact
from spark_jobs.values.schemas import promotions, sql_type

_ADVICE = "requeue or delete the rows of the quarantine table, and drop it"
_BAD, _KEY = "sluice_bad", "sluice_key_of_bad"


def quarantine_rows(spark: SparkSession, spec: QuarantineRowsSpec) -> JobAnswer:
    """Count the bad rows of all tables first; move them only if no table is above its limit."""
    counted: list[tuple[QuarantineRowsSpec.BadRows, DataFrame, int]] = []
    for table in spec.tables:
        report_progress(f"looking for bad rows of {table.table}")
        rows = _bad_rows(spark, spec, table).persist()
        counted.append((table, rows, rows.count()))
    limits = {table.table: _limit(spark, spec, table) for table, _, _ in counted}
    answer = JobAnswer(
        bad_rows={table.table: count for table, _, count in counted},
        broken_checks={table.table: _broken_checks(rows) for table, rows, _ in counted},
        above_cap={table.table: limits[table.table] for table, _, count in counted if count > limits[table.table]},
    )
    if not answer.above_cap:
        for table, rows, count in counted:
            report_progress(f"moving {count} bad rows of {table.table} to {table.quarantine}")
            _move(spark, spec, table, rows)
    return answer


def _broken_checks(rows: DataFrame) -> dict[str, int]:
    """Return the number of rows that break each check. A row may break several."""
    counts = rows.select(F.explode(CHECKS).alias("title")).groupBy("title").count().orderBy(F.desc("count"), "title")
    return {row["title"]: row["count"] for row in counts.collect()}


def _limit(spark: SparkSession, spec: QuarantineRowsSpec, table: QuarantineRowsSpec.BadRows) -> int:
    """Return the maximum number of bad rows. Only the job can compute a proportion of the rows that a merge brought."""
    if table.max_proportion is None:
        return table.limit
    (in_scope,) = [view for view in table.target.views if view.name == ROWS]
    brought = rows_of(spark, spec.audited_catalog, spec.main, in_scope).count()
    proportional = int(Fraction(str(table.max_proportion)) * (brought + table.moved_before))
    return min(table.limit, proportional - table.moved_before)


def _bad_rows(spark: SparkSession, spec: QuarantineRowsSpec, table: QuarantineRowsSpec.BadRows) -> DataFrame:
    """Return the bad rows with all columns, their file and position, and the names of the checks that they break."""
    target = table.target
    for view in target.views:
        rows_of(spark, spec.audited_catalog, spec.main, view).createOrReplaceTempView(view.name)
    (in_scope,) = [view for view in target.views if view.name == ROWS]
    rows = rows_of(spark, spec.audited_catalog, spec.main, in_scope, positions=True)
    broken_checks: list[Column] = []
    for number, (key, query) in enumerate(target.queries.items()):
        is_bad = F.expr(query.bad) if query.bad else F.col(f"sluice_key_{number}").isNotNull()
        if query.groups:
            groups = query.groups_with_other_rows if target.with_other_rows else query.groups
            rows = _with_group_column(rows, spark.sql(groups or query.groups), number)
            is_bad = is_bad & F.expr(query.where) if query.where else is_bad
        broken_checks.append(F.when(is_bad, F.lit(table.check_titles[key])))
    bad = rows.withColumn(CHECKS, F.array_compact(F.array(*broken_checks))).filter(F.size(CHECKS) > 0)
    return bad.drop(*(f"sluice_key_{number}" for number in range(len(broken_checks))))


def _with_group_column(rows: DataFrame, groups: DataFrame, number: int) -> DataFrame:
    """Add a column that is true in each row whose key is that of a bad group. Two nulls are equal."""
    keys = [name for name in groups.columns if name != BAD_ROWS]
    column = f"sluice_key_{number}"
    renamed = groups.select(*(F.col(quoted(name)).alias(f"{column}_{index}") for index, name in enumerate(keys)))
    renamed = renamed.distinct().withColumn(column, F.lit(True))
    same = [rows[quoted(name)].eqNullSafe(renamed[f"{column}_{index}"]) for index, name in enumerate(keys)]
    joined = rows.join(renamed, reduce(lambda a, b: a & b, same), "left")
    return joined.drop(*(f"{column}_{index}" for index in range(len(keys))))


def _move(spark: SparkSession, spec: QuarantineRowsSpec, table: QuarantineRowsSpec.BadRows, bad: DataFrame) -> None:
    source = quoted_table(table.table, spec.spark_catalog)
    columns = spark.table(source).columns
    reserved = [name for name in columns if name.lower() in (CHECKS, RUN, AT)]
    if reserved:
        raise InvalidInput(
            f"{table.table} has a column {reserved[0]!r}, a reserved name in quarantine tables: rename it"
        )
    rows = bad.select(
        *(F.col(quoted(name)) for name in columns),
        F.col(CHECKS),
        F.lit(spec.run_id).alias(RUN),
        F.lit(spec.at).cast("timestamp").alias(AT),
    )
    append_to_quarantine(spark, rows, table.quarantine, spec.spark_catalog)
    if table.keys:
        _keep_old_versions(spark, spec, table, bad)
    bad.select(FILE, POSITION).createOrReplaceTempView(_BAD)
    same = f"{_BAD}.{FILE} = _file AND {_BAD}.{POSITION} = _pos"
    spark.sql(f"DELETE FROM {source} WHERE EXISTS (SELECT 1 FROM {_BAD} WHERE {same})")


def _keep_old_versions(
    spark: SparkSession, spec: QuarantineRowsSpec, table: QuarantineRowsSpec.BadRows, bad: DataFrame
) -> None:
    """Add main's rows under the keys of bad rows again, except rows that the table keeps anyway.

    This happens before the bad rows are deleted, since a commit to the table makes Spark recompute its cached rows.
    """
    source = quoted_table(table.table, spec.spark_catalog)
    (in_scope,) = [view for view in table.target.views if view.name == ROWS]
    assert in_scope.compared
    before = rows_on_main(spark, spec.audited_catalog, spec.main, table.table, in_scope.compared.main_hash)
    now = spark.read.table(source)
    columns = [quoted(name) for name in now.columns]
    now = now.select("*", F.col("_file").alias(FILE), F.col("_pos").alias(POSITION))
    keys = bad.select(*(F.col(quoted(key)).alias(f"{_KEY}_{index}") for index, key in enumerate(table.keys))).distinct()
    moved = bad.select(F.col(FILE).alias(f"{_KEY}_file"), F.col(POSITION).alias(f"{_KEY}_position"))

    def with_bad_keys(rows: DataFrame) -> DataFrame:
        same = [rows[quoted(key)] == keys[f"{_KEY}_{index}"] for index, key in enumerate(table.keys)]
        return rows.join(keys, reduce(lambda a, b: a & b, same), "left_semi")

    is_moved = (now[FILE] == moved[f"{_KEY}_file"]) & (now[POSITION] == moved[f"{_KEY}_position"])
    staying = with_bad_keys(now).join(moved, is_moved, "left_anti")
    missing = with_bad_keys(before).select(*columns).exceptAll(staying.select(*columns))
    if not missing.isEmpty():
        missing.writeTo(source).append()


def append_to_quarantine(spark: SparkSession, rows: DataFrame, name: str, spark_catalog: str) -> None:
    """Append rows to a quarantine table as they are. Its columns may have the types of an earlier table.

    Raises:
        InvalidInput: the quarantine table cannot store a value.
    """
    quarantine = quoted_table(name, spark_catalog)
    _create_or_extend(spark, quarantine, rows)
    stored = spark.table(quarantine).schema
    if problems := inexact_values(rows, stored, _ADVICE):
        raise InvalidInput("; ".join(f"{name}.{problem}" for problem in problems))
    keep_values_exact(rows, stored).writeTo(quarantine).append()


def _create_or_extend(spark: SparkSession, quarantine: str, rows: DataFrame) -> None:
    """Create the quarantine table, or add the columns that it lacks, and widen its types as those of the table were."""
    if not spark.catalog.tableExists(quarantine):
        nullable = ", ".join(f"{quoted(each.name)} {sql_type(each.dataType)}" for each in rows.schema)
        spark.sql(f"CREATE TABLE {quarantine} ({nullable}) USING iceberg COMMENT '{COMMENT}'")
        return
    present = {each.name.lower(): each.dataType for each in spark.table(quarantine).schema}
    missing = [each for each in rows.schema if each.name.lower() not in present]
    if missing:
        listed = ", ".join(f"{quoted(each.name)} {sql_type(each.dataType)}" for each in missing)
        spark.sql(f"ALTER TABLE {quarantine} ADD COLUMNS ({listed})")
    for each in rows.schema:
        for path, type in promotions(present.get(each.name.lower(), each.dataType), each.dataType, quoted(each.name)):
            spark.sql(f"ALTER TABLE {quarantine} ALTER COLUMN {path} TYPE {sql_type(type)}")


if __name__ == "__main__":
    job = QuarantineRowsSpec.model_validate_json(Path(sys.argv[1]).read_text())
    sys.exit(run_job(job, lambda spark: quarantine_rows(spark, job)))
