"""Determine the schema of JSON files, with the field names of the files."""

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StringType, StructField, StructType

from sluice.contracts.guessed_types import GuessedColumn
from sluice.contracts.spark_jobs import IngestSpec
from sluice.errors import InvalidInput
from spark_jobs.exact_text import contains_type
from spark_jobs.file_columns import (
    NamesDifferInCase,
    check_fields,
    check_merged_fields,
    in_order_of,
    named_as_in_files,
)
from spark_jobs.json_shapes import (
    Shape,
    column_types,
    file_with_field,
    shape_of_records,
    with_empty_objects,
    without_guesses,
)
from spark_jobs.load_files import Group, load_plainly
from spark_jobs.missing_fields import check_nested_fields
from spark_jobs.schemas import merged_schema, sql_type
from spark_jobs.untyped_columns import waiting_columns, with_fields

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
    try:
        return _schemas(spark, spec, options, groups, wanted, is_stated=is_stated)
    except NamesDifferInCase as error:
        places = [(path, file_with_field(spark, options, groups, path.split("."))) for path in error.paths]
        where = [f"{path} is in {file}" for path, file in places if file]
        raise InvalidInput("; ".join([str(error), *where])) from None


def _schemas(
    spark: SparkSession,
    spec: IngestSpec,
    options: Mapping[str, str],
    groups: Sequence[Group],
    wanted: StructType | None,
    *,
    is_stated: bool,
) -> tuple[StructType, StructType, list[GuessedColumn]]:
    read = _infer(spark, options, groups)
    if spec.has_empty_objects:
        shapes = [shape_of_records(spark, options, group, in_all=True) for group in groups]
        read = [_with_columns(schema, shape) for schema, shape in zip(read, shapes, strict=True)]
    else:
        shapes = None
    named_as_in_files(read[0], read)  # raises before Spark sees two columns with one name
    if wanted is None:
        merged, as_text = _merged_types(spark, options, groups, read, shapes)
        return named_as_in_files(merged, [merged]), merged, _guessed(merged.fields, as_text)
    guessed: list[GuessedColumn] = []
    if not is_stated:
        names = list({name.lower(): name for schema in read for name in schema.names}.values())
        waiting = waiting_columns(spark, spec, names, wanted)
        merged, as_text = _merged_types(spark, options, groups, read, shapes) if waiting else (StructType(), {})
        guessed = _guessed([merged[name] for name in waiting], as_text)
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


def _guessed(fields: Sequence[StructField], as_text: Mapping[str, list[str]]) -> list[GuessedColumn]:
    """Return the columns with the types that Spark infers from JSON values.

    Args:
        as_text: the nested fields that are text because no record has a value in them, by column.
    """
    return [
        GuessedColumn(name=field.name, type=_shown_type(field.dataType), as_text=as_text.get(field.name, []))
        for field in fields
    ]


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


def _with_columns(schema: StructType, shape: Shape) -> StructType:
    """Return the inferred columns with those that Spark omits because they are always `{}`."""
    whole = with_empty_objects(schema, shape)
    assert isinstance(whole, StructType)
    return whole


def _merged_types(
    spark: SparkSession,
    options: Mapping[str, str],
    groups: Sequence[Group],
    read: Sequence[StructType],
    shapes: Sequence[Shape] | None,
) -> tuple[StructType, dict[str, list[str]]]:
    """Return the columns of all files, and the nested fields that are text because no record has a value in them.

    Args:
        shapes: the shape of the records of each group, if it is known already.
    """
    types = []
    for number, (group, schema) in enumerate(zip(groups, read, strict=True)):
        if shapes is not None:
            shape = shapes[number]
        else:  # few columns lack values in the first records, so that few groups are read whole
            shape = shape_of_records(spark, options, group) if contains_type(schema, (StringType,)) else True
        typed = without_guesses(schema, shape)
        types.append(typed if isinstance(typed, StructType) else StructType())
    return column_types(merged_schema(types))
