"""Refuse texts of files that a guessed type would change on their way through a transform into a column of text.

Without a transform, the type of the table decides, and the text `10.50` stays in a column of text. A transform gets
guessed types, since it may have any result. If it returns the DOUBLE 10.5 for a column of text, Spark writes `10.5`.
"""

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    StringType,
    StructField,
    StructType,
)

from sluice.contracts.spark_jobs import IngestSpec
from sluice.errors import InvalidInput
from sluice.identifiers import quoted
from spark_jobs.source_files.folder_columns import columns_of_folders
from spark_jobs.source_files.guessed_types import type_of
from spark_jobs.source_files.load_files import Reading, load_plainly
from spark_jobs.source_files.reading import SourceRows
from spark_jobs.values.exact_text import contains_type
from spark_jobs.values.file_addresses import path_of_address
from spark_jobs.values.times import TIMES
from spark_jobs.values.type_rules import value_types

_CHANGED = (BooleanType, DecimalType, DoubleType, *TIMES)
"""The guessed types that store another text than that of a file. A whole number keeps its text."""
_TEXT, _VALUE, _FILE = ("sluice_text", "sluice_value", "sluice_file")


def check_guessed_texts(
    spark: SparkSession, spec: IngestSpec, source: SourceRows, rows: StructType, target: StructType
) -> None:
    """Check that the table stores the texts of files, if a transform returns guessed types for columns of text.

    A result may have its value from any column of its type, since a transform may rename columns.

    Args:
        source: the rows of the files, and how they were read.
        rows: the schema of the transform's result.
        target: the schema of the table.

    Raises:
        InvalidInput: the table would store another text.
    """
    if spec.write.transform is None:
        return
    wanted = {field.name.lower(): field.dataType for field in target}
    fields = [field for field in rows if field.name.lower() in wanted]
    as_text = {field.name: _types_that_become_text(field.dataType, wanted[field.name.lower()]) for field in fields}
    types = [type for each in as_text.values() for type in each]
    for column, read, value, file in _changed_texts(spark, spec, source, types) if types else ():
        having = [field for field in fields if any(_contains(column.dataType, type) for type in as_text[field.name])]
        field = next((field for field in having if field.name.lower() == column.name.lower()), having[0])
        raise InvalidInput(_problem(spec, field, wanted[field.name.lower()], (column.name, read, value, file)))


def _types_that_become_text(have: DataType, wanted: DataType) -> list[DataType]:
    pairs = value_types(have, wanted)
    return [own for own, other in pairs if isinstance(own, _CHANGED) and isinstance(other, StringType)]


def _contains(type: DataType, other: DataType) -> bool:
    return contains_type(type, (other.__class__,))


def _problem(spec: IngestSpec, field: StructField, type: DataType, changed: tuple[str, str, str, str]) -> str:
    source, read, value, file = changed
    stated = "STRING" if isinstance(type, StringType) else type.simpleString()
    where = f" ({file})" if file else ""
    shown = (
        f"'{read}' of the column {source} would become '{value}'"
        if spec.show_values
        else f"a value of the column {source} would become another text (`show_values: true` shows it)"
    )
    return (
        f"{field.name} is {stated} in {next(iter(spec.tables))}, and the transform gives it values of the guessed type "
        f"{field.dataType.simpleString()}: {shown}{where}. To keep the text, name the columns and their types in "
        f"source.schema, with {source} as STRING. To store the changed text, or if {field.name} does not come from "
        f"{source}, write a CAST to STRING in the transform"
    )


def _changed_texts(
    spark: SparkSession, spec: IngestSpec, source: SourceRows, types: Sequence[DataType]
) -> Iterator[tuple[StructField, str, str, str]]:
    """Yield a column of files, a text of it that changes, the text of its value, and the file."""
    folders = columns_of_folders(spec)
    for each in source.guessed:
        if each.name in folders and type_of(each) in types:
            values = F.explode(F.array(*[F.lit(value) for value in sorted(folders[each.name])]))
            texts = spark.range(1).select(values.alias(_TEXT), F.lit("").alias(_FILE))
            value = F.col(_TEXT).try_cast(type_of(each)).cast("string")
            if change := texts.agg(_first_changed(F.col(_TEXT), value)).collect()[0][0]:
                yield StructField(each.name, type_of(each)), change[_TEXT], change[_VALUE], ""
    stated, reading = spec.write.source, source.reading
    if stated is None or stated.schema_ or stated.reader_format() not in ("csv", "json"):
        return
    fields = [
        field
        for field in reading.schema or ()
        if field.name not in folders and any(_contains(field.dataType, each) for each in types)
    ]
    for files, own in reading.groups if fields else ():
        texts = _texts(spark, reading, files, own)
        changes = [_change(reading, field, texts) for field in fields]
        for field, change in zip(fields, texts.agg(*changes).collect()[0], strict=True):
            if change:
                yield field, change[_TEXT], change[_VALUE], path_of_address(change[_FILE])


def _texts(spark: SparkSession, reading: Reading, files: list[str], own: Mapping[str, str]) -> DataFrame:
    """Return the rows of files with text in place of values, and the file of each."""
    schema = reading.as_text
    if reading.format == "csv":
        schema = StructType([StructField(each.name, StringType()) for each in reading.schema or ()])
    rows = load_plainly(spark, reading.format, {**reading.options, **own}, files, schema)
    return rows.select("*", F.col("_metadata.file_path").alias(_FILE))


def _change(reading: Reading, field: StructField, texts: DataFrame) -> Column:
    """Return an aggregate: a text of a column that changes, the text of its value, and the file; NULL if none does."""
    text, kind = F.col(quoted(field.name)), texts.schema[field.name].dataType
    if field in reading.converted:
        value = reading.convert(text, field, kind)
    elif isinstance(kind, StringType):
        value = F.nullif(text, F.lit("")).try_cast(field.dataType)
    else:
        value = text  # a value of JSON that is read as it is, such as `true`
    return _first_changed(text, value.cast(kind))


def _first_changed(text: Column, as_text: Column) -> Column:
    shown = F.struct(text.cast("string").alias(_TEXT), as_text.cast("string").alias(_VALUE), F.col(_FILE))
    return F.first(F.when(as_text.isNotNull() & ~text.eqNullSafe(as_text), shown), ignorenulls=True)
