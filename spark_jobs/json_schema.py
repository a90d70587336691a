"""Determine the schema of JSON files, with the field names of the files."""

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StringType, StructField, StructType

from sluice.contracts.guessed_types import GuessedColumn
from sluice.contracts.spark_jobs import IngestSpec
from sluice.identifiers import quoted
from spark_jobs.file_columns import check_fields, check_merged_fields, in_order_of, named_as_in_files
from spark_jobs.load_files import Group, load_plainly
from spark_jobs.missing_fields import check_nested_fields
from spark_jobs.schemas import merged_schema, sql_type
from spark_jobs.untyped_columns import waiting_columns, with_fields

_FIRST_ROWS = 1_000
_LETTERS_COUNT = "spark.sql.caseSensitive"


def json_schema(
    spark: SparkSession,
    spec: IngestSpec,
    options: Mapping[str, str],
    groups: Sequence[Group],
    wanted: StructType | None,
    *,
    is_stated: bool,
) -> tuple[StructType, StructType, list[GuessedColumn]]:
    """Return the schema with the names of the files, the same with the wanted names, and the guessed columns.

    Args:
        wanted: the stated schema, or the schema of the table; None if there is neither.

    Raises:
        InvalidInput: a part of the files would be dropped, or a merge would set nested fields to NULL.
    """
    read = _infer(spark, options, groups)
    named_as_in_files(read[0], read)  # raises before Spark sees two columns with one name
    if wanted is None:
        merged = _merged_types(spark, options, groups, read)
        return named_as_in_files(merged, [merged]), merged, _guessed(merged.fields)
    guessed: list[GuessedColumn] = []
    if not is_stated:
        names = list({name.lower(): name for schema in read for name in schema.names}.values())
        waiting = waiting_columns(spark, spec, names, wanted)
        merged = _merged_types(spark, options, groups, read) if waiting else StructType()
        guessed = _guessed([merged[name] for name in waiting])
        wanted = in_order_of(names, with_fields(wanted, {name: merged[name].dataType for name in waiting}), spec)
        if spec.write.needs_all_fields:
            check_merged_fields(read, wanted, next(iter(spec.tables)))
    check_fields(read, wanted, spec)
    named = named_as_in_files(wanted, read)
    if spec.write.needs_all_fields:
        check_nested_fields(spark, options, groups, named, next(iter(spec.tables)))
    return named, wanted, guessed


def _shown_type(type: DataType) -> str:
    """Return a type as SQL. The names of nested fields keep their case."""
    if isinstance(type, NullType):
        return ""
    return sql_type(type) if isinstance(type, StructType | ArrayType | MapType) else sql_type(type).upper()


def _guessed(fields: Sequence[StructField]) -> list[GuessedColumn]:
    """Return the columns with the types that Spark infers from JSON values."""
    return [GuessedColumn(name=field.name, type=_shown_type(field.dataType)) for field in fields]


def _infer(spark: SparkSession, options: Mapping[str, str], groups: Sequence[Group]) -> list[StructType]:
    """Return the schema of each group of files.

    By default, Spark treats two fields whose names differ only in case as one, and reads one of them as NULL. It shows
    both only if it is case-sensitive.
    """
    before = spark.conf.get(_LETTERS_COUNT)
    spark.conf.set(_LETTERS_COUNT, "true")
    try:
        return [load_plainly(spark, "json", {**options, **own}, files, None).schema for files, own in groups]
    finally:
        spark.conf.set(_LETTERS_COUNT, before or "false")


def _merged_types(
    spark: SparkSession, options: Mapping[str, str], groups: Sequence[Group], read: Sequence[StructType]
) -> StructType:
    return merged_schema(
        [_without_empty(spark, options, group, schema) for group, schema in zip(groups, read, strict=True)]
    )


def _without_empty(spark: SparkSession, options: Mapping[str, str], group: Group, schema: StructType) -> StructType:
    """Return the schema with no type for columns that have no value, which Spark infers as text."""
    files, own = group
    rows = load_plainly(spark, "json", {**options, **own}, files, schema)
    empty = [field.name for field in schema if isinstance(field.dataType, StringType)]
    for some in (rows.limit(_FIRST_ROWS), rows):  # few columns are empty in the first rows, so few need all rows
        if empty:
            cells = some.select(F.posexplode(F.array(*[F.col(quoted(name)) for name in empty])).alias("column", "text"))
            given = {row["column"] for row in cells.filter("text IS NOT NULL").select("column").distinct().collect()}
            empty = [name for number, name in enumerate(empty) if number not in given]
    return StructType([StructField(each.name, NullType()) if each.name in empty else each for each in schema])
