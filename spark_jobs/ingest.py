"""The built-in write job: load files into a table, or run statements, on the branch that the session is on.

    spark-submit ingest.py SPEC

SPEC is a file with an `IngestSpec`; the answer goes into the file that it names.
"""

import sys
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from sluice.contracts.spark_jobs import IngestSpec, JobAnswer
from sluice.errors import InvalidInput, NothingToDo
from sluice.identifiers import literal, quoted, quoted_table, suggestion
from sluice.pipeline.model import SOURCE_VIEW, Table, fit_problems, order_parts, partition_parts
from spark_jobs.compact import compact
from spark_jobs.job import run_job, run_statement, say
from spark_jobs.reading import check_names, read_source

_INCOMING = "incoming"
_ICEBERG = {
    "bigint": "long",
    "smallint": "int",
    "tinyint": "int",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
"""Spark's names of types that Iceberg calls otherwise."""
_NOT_THERE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


def ingest(spark: SparkSession, spec: IngestSpec) -> JobAnswer:
    """Do what the spec says; return how many rows were read and written."""
    act = {"sql": _changed, "compact": _compacted}.get(spec.write.mode, _loaded)
    return act(spark, spec)


def _loaded(spark: SparkSession, spec: IngestSpec) -> JobAnswer:
    ((name, table),) = spec.tables.items()
    existing = _schema_of(spark, quoted_table(name, spec.spark_catalog))
    say(f"reading {len(spec.files)} files")
    by_table = existing if spec.write.transform is None else None
    source = read_source(spark, spec, by_table)
    came, went = Observation(), Observation()
    number = F.count(F.lit(1)).alias("rows")
    rows = _transformed(spark, source.observe(came, number), spec.write.transform)
    _check_columns(rows, name, table, existing)
    say(f"writing {name}")
    new = existing is None
    if spec.write.transform is None:
        went = came  # what is read is what is written, and each count costs a tenth of the write
    else:
        rows = rows.observe(went, number)
    _write(spark, rows, spec, name, new)
    if spec.write.mode == "merge":
        return JobAnswer()  # it reads its source more than once, so its counts mean nothing
    if table.sort_by if new else spec.is_sorted:
        return _checked(_counted_again(spark, source, spec, name))
    read, written = came.get.get("rows"), went.get.get("rows")
    if written is None:  # what is counted while a table is made does not come back from a server's far side
        written = _added(spark, quoted_table(name, spec.spark_catalog))
    return _checked(JobAnswer(rows_read=read, rows_written=written))


def _changed(spark: SparkSession, spec: IngestSpec) -> JobAnswer:
    for number, statement in enumerate(spec.write.statements, 1):
        say(f"running statement {number} of {len(spec.write.statements)}")
        run_statement(spark, statement)
    return JobAnswer()


def _compacted(spark: SparkSession, spec: IngestSpec) -> JobAnswer:
    rewritten = 0
    for name in spec.tables:
        say(f"compacting {name}")
        rewritten += compact(spark, quoted_table(name, spec.spark_catalog), spec.write.options)
    if not rewritten:
        raise NothingToDo(f"{', '.join(spec.tables)}: Iceberg finds no files that are worth compacting")
    return JobAnswer()


def _counted_again(spark: SparkSession, source: DataFrame, spec: IngestSpec, name: str) -> JobAnswer:
    """Count what the sampling of rows has counted twice. A transform may give other rows each time it is run."""
    came = source.count()
    went = came if spec.write.transform is None else _added(spark, quoted_table(name, spec.spark_catalog))
    return JobAnswer(rows_read=came, rows_written=went)


def _added(spark: SparkSession, table: str) -> int:
    """Return how many rows the last snapshot of a table brought."""
    last = spark.sql(f"SELECT summary['added-records'] FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1")
    return int(last.collect()[0][0] or 0)


def _checked(answer: JobAnswer) -> JobAnswer:
    if not answer.rows_written:
        raise InvalidInput(
            "the input holds no rows"
            if not answer.rows_read
            else f"the transform leaves none of {answer.rows_read} rows"
        )
    return answer


def _schema_of(spark: SparkSession, table: str) -> StructType | None:
    try:
        return spark.table(table).schema
    except AnalysisException as error:
        if error.getCondition() in _NOT_THERE:
            return None
        raise


def _transformed(spark: SparkSession, source: DataFrame, transform: str | None) -> DataFrame:
    if transform is None:
        return source
    source.createOrReplaceTempView(SOURCE_VIEW)
    return spark.sql(transform)


def _check_columns(rows: DataFrame, name: str, table: Table, existing: StructType | None) -> None:
    if existing is not None:
        check_names(rows.columns, name, existing.names)
        return
    types = {
        field.name: _ICEBERG.get(field.dataType.simpleString(), field.dataType.simpleString()) for field in rows.schema
    }
    problems = fit_problems(name, table, types)
    if problems:
        raise InvalidInput("\n".join(problems))


def _write(spark: SparkSession, rows: DataFrame, spec: IngestSpec, name: str, new: bool) -> None:
    table = quoted_table(name, spec.spark_catalog)
    mode = spec.write.mode
    if mode == "merge":
        _check_keys(rows, spec.write.keys)
    if new:
        _create(spark, rows, table, spec.tables[name])
    elif mode == "append":
        rows.writeTo(table).append()
    elif mode == "overwrite":
        rows.writeTo(table).overwrite(F.lit(True))
    elif mode == "overwrite_partitions":
        rows.writeTo(table).overwritePartitions()
    else:
        rows.createOrReplaceTempView(_INCOMING)
        matched = " AND ".join(f"old.{quoted(key)} = new.{quoted(key)}" for key in spec.write.keys)
        spark.sql(
            f"MERGE INTO {table} AS old USING {_INCOMING} AS new ON {matched} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )


def _check_keys(rows: DataFrame, keys: list[str]) -> None:
    """Make sure that each row has a key of its own; a merge would else add some twice or fail half explained."""
    for key in keys:
        if key not in rows.columns:
            raise InvalidInput(f"the merge key {key!r} is no column of the input{suggestion(key, rows.columns)}")
    columns = [F.col(quoted(key)) for key in keys]
    without = rows.filter(" OR ".join(f"{quoted(key)} IS NULL" for key in keys)).count()
    if without:
        raise InvalidInput(f"{without} rows have no value in a merge key ({', '.join(keys)})")
    repeated = rows.groupBy(*columns).count().filter("count > 1").take(3)
    if repeated:
        examples = "; ".join(", ".join(str(row[key]) for key in keys) for row in repeated)
        raise InvalidInput(f"merge keys ({', '.join(keys)}) occur more than once in the input, such as {examples}")


def _create(spark: SparkSession, rows: DataFrame, table: str, spec: Table) -> None:
    """Make the table from the rows. By SQL, since the DataFrame's writer knows no `truncate` and no order."""
    for column, comment in spec.comments.items():
        rows = rows.withMetadata(column, {"comment": comment})
    rows.createOrReplaceTempView(_INCOMING)
    partitions = ", ".join(_partition(term) for term in spec.partition_by)
    properties = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in spec.properties.items())
    clauses = [
        f"CREATE TABLE {table}",
        f"({rows.schema.toDDL()})" if spec.sort_by else "",
        "USING iceberg",
        f"PARTITIONED BY ({partitions})" if partitions else "",
        f"COMMENT {literal(spec.comment)}" if spec.comment else "",
        f"TBLPROPERTIES ({properties})" if properties else "",
        "" if spec.sort_by else f"AS SELECT * FROM {_INCOMING}",
    ]
    spark.sql(" ".join(filter(None, clauses)))
    if spec.sort_by:  # rows are written in an order only to a table that has it
        spark.sql(f"ALTER TABLE {table} WRITE ORDERED BY {', '.join(map(_order, spec.sort_by))}")
        rows.writeTo(table).append()


def _order(term: str) -> str:
    by, direction, nulls = order_parts(term)
    return f"{_partition(by)} {direction}" + (f" NULLS {nulls}" if nulls else "")


def _partition(term: str) -> str:
    transform, argument, name = partition_parts(term)
    if transform == "identity":
        return quoted(name)
    return f"{transform}({quoted(name)})" if argument is None else f"{transform}({argument}, {quoted(name)})"


if __name__ == "__main__":
    job = IngestSpec.model_validate_json(Path(sys.argv[1]).read_text())
    sys.exit(run_job(job.answer, lambda spark: ingest(spark, job)))
