"""Determine the schema of JSON files, with the field names of the files."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StringType, StructField, StructType

from sluice.contracts.guessed_types import GuessedColumn
from sluice.contracts.spark_jobs import IngestSpec
from sluice.errors import InvalidInput
from sluice.identifiers import quoted
from spark_jobs.source_files.file_columns import (
    NamesDifferInCase,
    check_fields,
    check_merged_fields,
    in_order_of,
    named_as_in_files,
    shown_path,
)
from spark_jobs.source_files.folder_columns import columns_of_folders
from spark_jobs.source_files.json_shapes import (
    column_types,
    file_with_field,
    may_lack_values,
    shape_of_records,
    too_large_record,
    with_empty_objects,
    without_guesses,
)
from spark_jobs.source_files.load_files import Group, load_plainly
from spark_jobs.source_files.missing_fields import check_nested_fields
from spark_jobs.source_files.untyped_columns import waiting_columns, with_fields
from spark_jobs.values.schemas import merged_schema, sql_type

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
    with _naming_files(spark, options, groups):
        read = _infer(spark, options, groups)
        if spec.empty_objects:
            read = [
                _with_empty_objects(spark, spec, options, group, schema)
                for group, schema in zip(groups, read, strict=True)
            ]
        named_as_in_files(read[0], read)  # raises before Spark sees two columns with one name
        if wanted is None:
            merged, as_text = _merged_types(spark, spec, options, groups, read)
            return named_as_in_files(merged, [merged]), merged, _guessed(merged.fields, as_text)
        guessed: list[GuessedColumn] = []
        if not is_stated:
            names = list({name.lower(): name for schema in read for name in schema.names}.values())
            waiting = waiting_columns(spark, spec, names, wanted)
            of_waiting = [StructType([each for each in schema if each.name in waiting]) for schema in read]
            merged, as_text = _merged_types(spark, spec, options, groups, of_waiting) if waiting else (StructType(), {})
            guessed = _guessed([merged[name] for name in waiting], as_text)
            wanted = in_order_of(names, with_fields(wanted, {name: merged[name].dataType for name in waiting}), spec)
            if spec.write.needs_all_fields:
                check_merged_fields(read, wanted, next(iter(spec.tables)))
        check_fields(read, wanted, spec)
        named = named_as_in_files(wanted, read)
        if spec.write.needs_all_fields:
            check_nested_fields(spark, options, groups, named, next(iter(spec.tables)))
        return named, wanted, guessed


@contextmanager
def _naming_files(spark: SparkSession, options: Mapping[str, str], groups: Sequence[Group]) -> Iterator[None]:
    """Add the files to the message about two names that differ in capital letters alone."""
    try:
        yield
    except NamesDifferInCase as error:
        places = [(path, file_with_field(spark, options, groups, path)) for path in error.paths]
        where = [f"{shown_path(path)} is in {file}" for path, file in places if file]
        raise InvalidInput("; ".join([str(error), *where])) from None


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


def _with_empty_objects(
    spark: SparkSession, spec: IngestSpec, options: Mapping[str, str], group: Group, schema: StructType
) -> StructType:
    """Return the inferred columns with those that Spark omits because they are always `{}`.

    Raises:
        InvalidInput: a record is too large to find them.
    """
    files, own = group
    with_objects = ([file for file in files if file in spec.empty_objects], own)
    if not with_objects[0]:
        return schema
    shape = shape_of_records(spark, options, with_objects)
    if shape is None:
        raise InvalidInput(
            f"{too_large_record(spark, options, with_objects)} contains `{{}}`, and a record or an array of more than "
            "128 MiB, in which Spark does not show fields that are always `{}`: write one record in each line"
        )
    whole = with_empty_objects(schema, shape)
    assert isinstance(whole, StructType)
    return whole


def _merged_types(
    spark: SparkSession,
    spec: IngestSpec,
    options: Mapping[str, str],
    groups: Sequence[Group],
    read: Sequence[StructType],
) -> tuple[StructType, dict[str, list[str]]]:
    """Return the columns of all files, and the nested fields that are text because no record has a value in them."""
    types = []
    for group, schema in zip(groups, read, strict=True):
        in_records = [field for field in schema if field.name not in columns_of_folders(spec)]
        unsure = StructType([field for field in in_records if may_lack_values(field.dataType)])
        shape = shape_of_records(spark, options, group, unsure) if len(unsure) else None
        if isinstance(shape, dict):
            typed = without_guesses(schema, {name: part for name, part in shape.items() if name in unsure.names})
            assert isinstance(typed, StructType)
            types.append(typed)
        else:
            types.append(_without_empty(spark, options, group, schema, unsure.names))
    return column_types(merged_schema(types))


def _without_empty(
    spark: SparkSession, options: Mapping[str, str], group: Group, schema: StructType, names: Sequence[str]
) -> StructType:
    """Return the schema with no type for those of some columns that have no value, which Spark infers as text."""
    texts = [name for name in names if isinstance(schema[name].dataType, StringType)]
    if not texts:
        return schema
    files, own = group
    rows = load_plainly(spark, "json", {**options, **own}, files, schema)
    given = rows.select([F.max(F.col(quoted(name)).isNotNull()).alias(name) for name in texts]).collect()[0]
    empty = {name for name in texts if not given[name]}
    return StructType([StructField(each.name, NullType()) if each.name in empty else each for each in schema])
