"""Schemas of CSV and JSON files that nothing states, guessed from the values of the files."""

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sluice.contracts.spark_jobs import IngestSpec
from sluice.identifiers import quoted, quoted_table
from spark_jobs.guessed_types import guess_types
from spark_jobs.load_files import columns_of_folders, load_plainly
from spark_jobs.untyped_columns import untyped_columns

_TIMES = (DateType, TimestampType, TimestampNTZType)
_TIME_FORMATS = ("dateformat", "timestampformat", "timestampntzformat")
_FIRST_ROWS = 1_000


def guessed_csv(spark: SparkSession, options: Mapping[str, str], spec: IngestSpec) -> StructType:
    """Guess the types of CSV files. Where the pipeline says how times are written, Spark looks for these."""
    stated = {name.lower(): value.lower() for name, value in options.items()}
    plain = {name: value for name, value in options.items() if name.lower() != "inferschema"}
    read = load_plainly(spark, "csv", plain, spec.files, None).schema
    if stated.get("inferschema") == "false":
        return read
    folders = columns_of_folders(spec)
    names = [field.name for field in read if field.name not in folders]
    known: dict[str, DataType] = {field.name: field.dataType for field in read if field.name in folders}
    if not stated.keys().isdisjoint(_TIME_FORMATS):
        inferred = load_plainly(spark, "csv", {**plain, "inferSchema": "true"}, spec.files, None).schema
        known |= {each.name: each.dataType for each in inferred if isinstance(each.dataType, _TIMES)}
    known |= guess_csv_columns(spark, plain, spec, [name for name in names if name not in known])
    return StructType([StructField(field.name, known[field.name]) for field in read])


def guess_csv_columns(
    spark: SparkSession, options: Mapping[str, str], spec: IngestSpec, names: Sequence[str]
) -> dict[str, DataType]:
    """Return the types of some columns of CSV files."""
    plain = {name: value for name, value in options.items() if name.lower() not in ("inferschema", "basepath")}
    header = load_plainly(spark, "csv", plain, spec.files[:1], None).columns
    as_text = StructType([StructField(name, StringType()) for name in header])
    return guess_types(load_plainly(spark, "csv", plain, spec.files, as_text), names)


def waiting_columns(spark: SparkSession, spec: IngestSpec, names: Sequence[str], target: StructType) -> list[str]:
    """Return the columns of files that the table was made without, since no file gave them a type yet."""
    have = {name.lower() for name in target.names}
    new = [name for name in names if name.lower() not in have]
    if not new:
        return []
    table = quoted_table(next(iter(spec.tables)), spec.spark_catalog)
    untyped = {name.lower() for name in untyped_columns(spark, table)}
    return [name for name in new if name.lower() in untyped]


def with_fields(schema: StructType, types: Mapping[str, DataType]) -> StructType:
    """Return a schema with more fields at its end."""
    return StructType([*schema.fields, *(StructField(name, type) for name, type in types.items())])


def without_empty(
    spark: SparkSession,
    options: Mapping[str, str],
    group: tuple[list[str], dict[str, str]],
    schema: StructType,
) -> StructType:
    """Return the schema of JSON files without a type for columns that have no value, which Spark takes for text."""
    files, own = group
    rows = load_plainly(spark, "json", {**options, **own}, files, schema)
    empty = [field.name for field in schema if isinstance(field.dataType, StringType)]
    for some in (rows.limit(_FIRST_ROWS), rows):  # hardly any column is empty in the first rows
        if empty:
            counted = some.agg(*[F.count(quoted(name)) for name in empty]).collect()[0]
            empty = [name for name, values in zip(empty, counted, strict=True) if not values]
    return StructType([StructField(each.name, NullType()) if each.name in empty else each for each in schema])
