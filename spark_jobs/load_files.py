"""Load files as planned: by Spark's readers, and text as exactly what it says."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import CharType, StringType, StructField, StructType, VarcharType

from sluice.contracts.guessed_types import GuessedColumn
from sluice.identifiers import quoted
from sluice.pipeline.source import Format
from spark_jobs import nanoseconds
from spark_jobs.exact_text import convert, converted_types, holds
from spark_jobs.many_columns import with_each
from spark_jobs.schemas import replace_types

_GLOB_PATHS = "__globPaths__"
"""Spark's own option: whether paths are patterns."""
_PATTERN_CHARACTER = re.compile(r"[\[\]{}*?\\]")


@dataclass(frozen=True)
class Reading:
    """How the files of a source are read."""

    format: Format
    options: Mapping[str, str]
    """The options of Spark's reader that all files are read by."""
    groups: Sequence[tuple[list[str], dict[str, str]]]
    """The files, by what else they are read by."""
    schema: StructType | None
    """None where it is that of the files."""
    named: StructType | None = None
    """The same fields in the same order with the names that they get; None where they keep theirs."""
    guessed: Sequence[GuessedColumn] = ()
    """The columns whose types neither a schema nor a table states."""

    def value(self, column: Column) -> Column:
        """Return a column that was read as text with NULL for an empty text of CSV, where it is no value."""
        return F.nullif(column, F.lit("")) if self.format == "csv" else column

    @property
    def converted(self) -> list[StructField]:
        """The fields whose text is converted after Spark has read it, since Spark's readers change values."""
        if self.format not in ("csv", "json"):
            return []
        types = converted_types(self.options)
        return [each for each in self.schema or () if holds(each.dataType, types)]

    @property
    def as_text(self) -> StructType | None:
        """The schema with text in the place of what is converted."""
        if self.schema is None:
            return None
        names, types = {each.name for each in self.converted}, converted_types(self.options)
        return StructType(
            [replace_types(each, types, StringType()) if each.name in names else each for each in self.schema]
        )


def load(spark: SparkSession, reading: Reading, files: list[str], options: Mapping[str, str]) -> DataFrame:
    """Read files as planned, with more options. A text that is not exactly a value of its type fails the read."""
    rows = _load(spark, reading, files, options)
    if reading.schema is None or reading.named is None or reading.schema == reading.named:
        return rows
    named = {read.name: field for read, field in zip(reading.schema, reading.named, strict=True)}
    return rows.select(
        *[
            F.col(quoted(name)).cast(named[name].dataType).alias(named[name].name) if name in named else quoted(name)
            for name in rows.columns
        ]
    )


def _load(spark: SparkSession, reading: Reading, files: list[str], options: Mapping[str, str]) -> DataFrame:
    all_options = {**reading.options, **options}
    if not reading.converted:
        return load_plainly(spark, reading.format, all_options, files, reading.schema)
    if reading.format == "json" and not keeps_digits(all_options):
        return _load_rounded_numbers(spark, reading, all_options, files)
    return converted(load_plainly(spark, reading.format, all_options, files, reading.as_text), reading)


def converted(rows: DataFrame, reading: Reading) -> DataFrame:
    """Return rows that were read as text with all columns in their types."""
    read = {field.name: field.dataType for field in rows.schema}
    return with_each(
        rows, reading.converted, lambda column, field: convert(reading.value(column), field, read[field.name])
    )


def keeps_digits(options: Mapping[str, str]) -> bool:
    """Return whether Spark reads a JSON number as text without rounding it: only by lines, and as UTF-8."""
    stated = {name.lower(): value.lower() for name, value in options.items()}
    encoding = stated.get("encoding", stated.get("charset", "utf-8"))
    return stated.get("multiline") != "true" and encoding in ("utf-8", "utf8")


def _load_rounded_numbers(
    spark: SparkSession, reading: Reading, options: Mapping[str, str], files: list[str]
) -> DataFrame:
    """Read JSON whose numbers Spark rounds as text: check the text first, then read the types."""
    as_text = load_plainly(spark, "json", options, files, reading.as_text)
    converted(as_text, reading).write.format("noop").mode("overwrite").save()
    return load_plainly(spark, "json", options, files, reading.schema)


def load_plainly(
    spark: SparkSession, format: Format, options: Mapping[str, str], files: list[str], schema: StructType | None
) -> DataFrame:
    """Read files by options and a schema; without one, by that of the files. Their paths are no patterns."""
    paths, literal = literal_paths(files)
    reader = spark.read.format(format).options(**options, **literal)
    times = nanoseconds.columns_in(options)
    if schema is not None:
        reader = reader.schema(nanoseconds.as_numbers(schema, times))
    rows = reader.load(paths)
    return nanoseconds.as_times(rows, times) if times else rows


def literal_paths(files: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the paths, and the option, by which Spark reads files whose names may look like patterns.

    Its option against patterns alone would read all files of the list once for each such name.
    """
    paths = [_PATTERN_CHARACTER.sub(r"\\\g<0>", file) for file in files]
    return paths, {_GLOB_PATHS: "false" if paths == files else "true"}


def parse_schema(schema: str) -> StructType:
    """Return the schema that a text in SQL stands for. Texts of limited length are texts: Iceberg has no such types."""
    parsed = StructType.fromDDL(schema)
    assert isinstance(parsed, StructType)
    return StructType([replace_types(field, (CharType, VarcharType), StringType()) for field in parsed.fields])


def path_of_address(address: str) -> str:
    """Return the path that Spark's address of a file stands for."""
    parts = urlsplit(address)
    return unquote(parts.path) if parts.scheme == "file" else unquote(address)
