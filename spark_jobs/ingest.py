"""The built-in write job: load files into a table, run SQL statements, or compact tables.

    spark-submit ingest.py SPEC

SPEC is a file with an `IngestSpec`; the job writes its answer to the file that the spec names. To add a write mode
(`sluice/pipeline/write_modes.py`), add a function to one of the two tables, `_WRITERS` or `_JOBS_ON_TABLES`.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, VariantType

from sluice.contracts.guessed_types import listed_types
from sluice.contracts.spark_jobs import IngestSpec, JobAnswer
from sluice.errors import InvalidInput, NothingToDo
from sluice.identifiers import quoted_table
from sluice.pipeline.table import Table, column_problems
from sluice.pipeline.write import SOURCE_VIEW, Write
from sluice.pipeline.write_modes import Mode
from sluice.sizes import format_count
from sluice.sql.schema_ddl import stored_type
from spark_jobs.compact import compact
from spark_jobs.create_table import create_table
from spark_jobs.job import error_answer, log_error, naming, report_progress, run_job, run_statement
from spark_jobs.merge_keys import check_keys, keys_as_in_table, merge
from spark_jobs.source_files.column_types import type_problems
from spark_jobs.source_files.damaged_files import damaged_files
from spark_jobs.source_files.file_columns import check_merged_files, check_names
from spark_jobs.source_files.foreign_times import NEGATIVE_NANOSECONDS, check_foreign_times, check_zone, negative_times
from spark_jobs.source_files.guessed_texts import check_guessed_texts
from spark_jobs.source_files.nanoseconds import LOST_NANOSECONDS
from spark_jobs.source_files.reading import check_rows_read, find_inexact_values, read_source
from spark_jobs.source_files.unreadable_rows import find_unreadable_rows
from spark_jobs.source_files.untyped_columns import add_typed_columns, drop_untyped
from spark_jobs.values.exact_text import contains_type
from spark_jobs.values.exact_values import LOSS, inexact_values, keep_values_exact
from spark_jobs.values.schemas import ambiguous_name
from spark_jobs.values.stated_not_null import BROKEN_NOT_NULL, keep_not_null, null_problems
from spark_jobs.values.storable_values import NOT_STORABLE, keep_values_storable, unstorable_values

_RESERVED = ("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
"""Names of Iceberg's metadata columns. Spark cannot merge into a table with such a column, or delete its rows."""
_NO_SUCH_TABLE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


def ingest(spark: SparkSession, spec: IngestSpec) -> JobAnswer:
    """Run the write in its mode; return the numbers of rows that were read and written."""
    if spec.write.mode in _JOBS_ON_TABLES:
        return _JOBS_ON_TABLES[spec.write.mode](spark, spec)
    (name,) = spec.tables
    table = quoted_table(name, spec.spark_catalog)
    existing = _existing_schema(spark, table)
    if existing is not None:
        check_merged_files(spec, existing)
    try:
        return _load(spark, spec, _WRITERS[spec.write.mode], existing)
    except (PySparkException, Py4JJavaError) as error:
        answer = error_answer(error, show_values=spec.show_values)
        if NEGATIVE_NANOSECONDS in str(error) and (negative := negative_times(spark, spec)):
            log_error(error)
            raise InvalidInput("; ".join(negative)) from None
        if answer.error_kind != "InvalidInput":
            raise
        if existing is not None:
            existing = _existing_schema(spark, table)  # the job may have added columns to it
        target = _target(spec, existing)
        problems = type_problems(spark, spec, target)
        if not problems and any(sign in str(error) for sign in (LOSS, LOST_NANOSECONDS)):
            problems = _inexact_values(spark, spec, existing)
        if not problems and NOT_STORABLE in str(error):
            problems = unstorable_values(_read(spark, spec, existing), spec, existing)
        unreadable = None if problems else find_unreadable_rows(spark, spec, target)
        if unreadable is None and not problems and BROKEN_NOT_NULL in str(error):
            problems = null_problems(read_source(spark, spec, target).rows, spec)
        if unreadable is None and not problems:
            problems = damaged_files(error_answer(error, show_values=True).error, spec)
        if problems:
            log_error(error)
            raise InvalidInput("; ".join(problems)) from None
        if unreadable is None:
            raise
        log_error(error)
        return answer.model_copy(update={"unreadable": unreadable})


def _inexact_values(spark: SparkSession, spec: IngestSpec, existing: StructType | None) -> list[str]:
    """Return the columns with values that the table, or the type common to all files, cannot store exactly."""
    target = _target(spec, existing)
    problems = find_inexact_values(spark, spec, target)
    if problems or existing is None:
        return problems
    return inexact_values(_read(spark, spec, existing), existing)


def _read(spark: SparkSession, spec: IngestSpec, existing: StructType | None) -> DataFrame:
    """Return the rows of the source as the write gets them, without guards."""
    return _transform(spark, read_source(spark, spec, _target(spec, existing)).rows, spec.write.transform)


def _target(spec: IngestSpec, existing: StructType | None) -> StructType | None:
    """Return the schema that the rows of the source must have, or None if it is not known."""
    return existing if spec.write.transform is None else None


def _load(spark: SparkSession, spec: IngestSpec, writer: "Writer", existing: StructType | None) -> JobAnswer:
    """Read the source, transform it, and write it to the pipeline's only table; create the table if it is missing."""
    ((name, table),) = spec.tables.items()
    quoted_name = quoted_table(name, spec.spark_catalog)
    report_progress(f"reading {format_count(len(spec.files), 'file')}")
    check_foreign_times(spark, spec)
    of_files = read_source(spark, spec, _target(spec, existing))
    source = of_files.rows
    check_zone(spark, spec, source.schema)
    source = keep_not_null(source, spec)
    types = listed_types(of_files.guessed, show_values=spec.show_values)
    read, written = Observation(), Observation()
    number = F.count(F.lit(1)).alias("rows")
    rows = _transform(spark, source.observe(read, number), spec.write.transform)
    _check_reserved(rows.columns, name, existing)
    rows, untyped = drop_untyped(rows, existing)
    if existing is not None:
        existing = add_typed_columns(spark, rows, quoted_name, existing)
    _check_columns(rows, name, table, existing, untyped)
    if existing is not None:
        check_guessed_texts(spark, spec, of_files, rows.schema, existing)
        rows = keep_values_exact(keys_as_in_table(rows, spec, existing), existing)
    rows = keep_values_storable(rows, spec, existing)
    report_progress(f"writing {name}")
    if spec.write.transform is None:
        written = read  # the same rows are read and written, and each count costs a tenth of the write
    else:
        rows = rows.observe(written, number)
    rows_merged = check_keys(rows, spec.write.keys, show_values=spec.show_values) if spec.write.keys else None
    if spec.write.carries_rows and table.on_bad_rows == "quarantine":
        _check_comparable(rows, name)
    if existing is None:
        create_table(spark, rows, quoted_name, table, untyped)
    else:
        writer(spark, rows, quoted_name, spec.write)
    is_counted_twice = bool(table.sort_by) if existing is None else spec.is_sorted
    if not spec.write.traits.counts_rows:
        # The observed counts are those of the first pass, which checked the keys.
        check_rows_read(spec, _recounted(source, spec, read.get.get("rows")))
        return JobAnswer(rows_merged=rows_merged, types=types)
    if is_counted_twice:
        answer = _count_again(spark, source, spec, quoted_name)
    else:
        rows_written = written.get.get("rows")
        if rows_written is None:  # Spark Connect does not return counts for the creation of a table
            rows_written = _rows_added(spark, quoted_name)
        answer = JobAnswer(rows_read=read.get.get("rows"), rows_written=rows_written)
    rows_read = answer.rows_read
    if rows_read is None and spec.write.transform is None:
        rows_read = answer.rows_written
    check_rows_read(spec, _recounted(source, spec, rows_read))
    return _checked_counts(answer.model_copy(update={"types": types}), spec.files)


def _run_statements(spark: SparkSession, spec: IngestSpec) -> JobAnswer:
    for number, statement in enumerate(spec.write.statements, 1):
        report_progress(f"running statement {number} of {len(spec.write.statements)}")
        with naming(f"statement {number}"):
            run_statement(spark, statement)
    return JobAnswer()


def _compact(spark: SparkSession, spec: IngestSpec) -> JobAnswer:
    rewritten = 0
    for name in spec.tables:
        report_progress(f"compacting {name}")
        rewritten += compact(spark, quoted_table(name, spec.spark_catalog), spec.write.options)
    if not rewritten:
        raise NothingToDo(f"{', '.join(spec.tables)}: Iceberg finds no files that are worth compacting")
    return JobAnswer()


def _append(_: SparkSession, rows: DataFrame, table: str, __: Write) -> None:
    rows.writeTo(table).append()


def _overwrite(_: SparkSession, rows: DataFrame, table: str, __: Write) -> None:
    rows.writeTo(table).overwrite(F.lit(True))


def _overwrite_partitions(_: SparkSession, rows: DataFrame, table: str, __: Write) -> None:
    rows.writeTo(table).overwritePartitions()


def _merge(spark: SparkSession, rows: DataFrame, table: str, write: Write) -> None:
    merge(spark, rows, table, write.keys)


Writer = Callable[[SparkSession, DataFrame, str, Write], None]
_WRITERS: dict[Mode, Writer] = {
    "append": _append,
    "overwrite": _overwrite,
    "overwrite_partitions": _overwrite_partitions,
    "merge": _merge,
}
"""The functions that write rows to an existing table, by mode, for the modes that load a source."""
_JOBS_ON_TABLES: dict[Mode, Callable[[SparkSession, IngestSpec], JobAnswer]] = {
    "sql": _run_statements,
    "requeue": _run_statements,
    "compact": _compact,
}
"""The functions of the modes that read tables instead of loading a source."""


def _count_again(spark: SparkSession, source: DataFrame, spec: IngestSpec, table: str) -> JobAnswer:
    """Count the rows of a sorted write again, since Spark sampled them first, and so counted them twice.

    A transform may return different rows each time it runs, so the count of its rows is that of the snapshot.
    """
    read = source.count()
    return JobAnswer(rows_read=read, rows_written=read if spec.write.transform is None else _rows_added(spark, table))


def _recounted(source: DataFrame, spec: IngestSpec, rows_read: int | None) -> int | None:
    """Count the source's rows again if a transform made the count wrong: it may read only a part, or rows twice."""
    return rows_read if spec.write.transform is None or spec.rows in (None, rows_read) else source.count()


def _rows_added(spark: SparkSession, table: str) -> int:
    """Return the number of rows that the last snapshot of a table added."""
    last = spark.sql(f"SELECT summary['added-records'] FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1")
    return int(last.collect()[0][0] or 0)


def _checked_counts(answer: JobAnswer, files: Sequence[str]) -> JobAnswer:
    """Return the answer if it says that at least one row was written.

    Raises:
        InvalidInput: no row was written.
    """
    if not answer.rows_written:
        if answer.rows_read:
            raise InvalidInput(f"the transform removes all {answer.rows_read} rows")
        more = f" and {format_count(len(files) - 1, 'other file')}" if len(files) > 1 else ""
        raise InvalidInput(f"the input contains no rows: {files[0]}{more}")
    return answer


def _existing_schema(spark: SparkSession, table: str) -> StructType | None:
    try:
        return spark.table(table).schema
    except AnalysisException as error:
        if error.getCondition() in _NO_SUCH_TABLE:
            return None
        raise


def _transform(spark: SparkSession, source: DataFrame, transform: str | None) -> DataFrame:
    if transform is None:
        return source
    source.createOrReplaceTempView(SOURCE_VIEW)
    with naming("transform"):
        return spark.sql(transform)


def _check_reserved(given: Sequence[str], table: str, existing: StructType | None) -> None:
    """Check that no column that the table does not have yet has a reserved name.

    A column without a type is checked, too, since a later file would add it to the table.
    """
    have = {name.lower() for name in existing.names} if existing is not None else set()
    if reserved := next((name for name in given if name.lower() in _RESERVED and name.lower() not in have), None):
        raise InvalidInput(
            f"{table}: Iceberg reserves the name of the column {reserved!r}: rename it in the files, or by a transform"
        )


def _check_columns(
    rows: DataFrame, name: str, table: Table, existing: StructType | None, untyped: Sequence[str]
) -> None:
    if variant := next((field.name for field in rows.schema if contains_type(field.dataType, (VariantType,))), None):
        raise InvalidInput(
            f"{name}: the column {variant!r} is VARIANT, a type that Sluice's tables cannot store: convert it by a "
            f"transform, such as to_json({variant})"
        )
    if ambiguous := ambiguous_name(rows.schema):
        raise InvalidInput(
            f"{name}: {ambiguous!r} is a column, and also a field in a column of the input, which Iceberg cannot tell "
            "apart: rename one of them in the files, or by a transform"
            if ambiguous in rows.columns
            else f"{name}: two fields of the input have the name {ambiguous!r}, one of them with a dot in its own "
            "name, and Iceberg cannot tell them apart: rename one of them in the files, or by a transform"
        )
    if existing is not None:
        check_names(rows.columns, name, existing.names)
        return
    types = {field.name: stored_type(field.dataType.simpleString()) for field in rows.schema}
    problems = column_problems(name, table, types)
    if problems and untyped:
        problems.append(
            f"columns without a type, because they contain only NULL in these files: {', '.join(untyped)}; name all "
            "columns and their types in source.schema"
        )
    if problems:
        raise InvalidInput("\n".join(problems))


def _check_comparable(rows: DataFrame, table: str) -> None:
    """Check that rows can be compared. A row quarantine compares rows to find those that a merge brought."""
    maps = [field.name for field in rows.schema if "map<" in field.dataType.simpleString()]
    if maps:
        raise InvalidInput(
            f"{table}: the column {maps[0]!r} contains maps, which Spark cannot compare. A merge with "
            "on_bad_rows: quarantine compares new rows with old ones: use on_bad_rows: fail"
        )


if __name__ == "__main__":
    job = IngestSpec.model_validate_json(Path(sys.argv[1]).read_text())
    sys.exit(run_job(job, lambda spark: ingest(spark, job)))
