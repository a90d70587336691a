"""Load files as planned, with Spark's readers, and with exact conversion of text."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from sluice.contracts.guessed_types import GuessedColumn
from sluice.identifiers import quoted
from sluice.pipeline.encodings import ENCODING_OPTIONS
from sluice.pipeline.source import Format
from spark_jobs.source_files import nanoseconds
from spark_jobs.values.exact_text import CONVERTED, Rules, convert, is_exact
from spark_jobs.values.many_columns import with_each
from spark_jobs.values.schemas import replace_types
from spark_jobs.values.stated_notation import AS_USUAL, StatedNotation

_GLOB_PATHS = "__globPaths__"
"""Name of Spark's internal option that decides whether paths are patterns."""
_NOT_FINITE = {"nanvalue": "NaN", "positiveinf": "Infinity", "negativeinf": "-Infinity"}
"""Options of Spark's CSV reader, and the value of DOUBLE and FLOAT for which each states a text."""
_PATTERN_CHARACTER = re.compile(r"[\[\]{}*?\\]")

Group = tuple[list[str], dict[str, str]]
"""Files, and the additional options for reading them."""


@dataclass(frozen=True)
class Reading:
    """A plan for reading the files of a source."""

    format: Format
    options: Mapping[str, str]
    """The options of Spark's reader for all files."""
    groups: Sequence[Group]
    """The files in groups, each with additional options."""
    schema: StructType | None
    """The schema to read with; None for the schema of the files."""
    named: StructType | None = None
    """The fields of `schema` in the same order, with their final names; None if the names stay the same."""
    guessed: Sequence[GuessedColumn] = ()
    """The columns whose types neither a schema nor a table states."""
    of_table: Collection[str] = ()
    """Columns of the files whose type is known from the table alone, in lower case: their text may be a code."""

    notation: StatedNotation = AS_USUAL
    """The notation of values that the options state."""

    def is_exact(self, column: Column, field: StructField, as_read: DataType) -> Column:
        """Return a column that is true if all text of a converted column is exactly a value of its type."""
        return is_exact(self._value(column, field), field.dataType, as_read, self._rules(field))

    def convert(self, column: Column, field: StructField, as_read: DataType) -> Column:
        """Convert a column of text to the type of a field. A text that is not exactly such a value fails the job."""
        return convert(self._value(column, field), field, as_read, self._rules(field))

    def type_name(self, field: StructField) -> str:
        """Return a field's type, and the notation of its values if options state one, for a message."""
        return field.dataType.simpleString() + self.notation.describe(field.dataType)

    def _rules(self, field: StructField) -> Rules:
        return Rules(self.is_of_table(field), self.notation)

    def _value(self, column: Column, field: StructField) -> Column:
        """Return a column of text with plain numbers. In CSV, empty text is NULL, and an option may name NaN."""
        if self.format != "csv":
            return column
        text = self.notation.plain_number(F.nullif(column, F.lit("")), field.dataType)
        if not isinstance(field.dataType, DoubleType | FloatType):
            return text
        options = {name.lower(): value for name, value in self.options.items()}
        for option, known in _NOT_FINITE.items():
            if stated := options.get(option):
                text = F.when(column == F.lit(stated), F.lit(known)).otherwise(text)
        return text

    @property
    def converted(self) -> list[StructField]:
        """The fields that are read as text and converted afterwards, since Spark's readers change values."""
        if self.format not in ("csv", "json"):
            return []
        return [each for each in self.schema or () if self._as_text(each) != each]

    @property
    def as_text(self) -> StructType | None:
        """The schema with text in place of the types that are converted afterwards, and with SMALLINT for TINYINT."""
        if self.schema is None:
            return None
        names = {each.name for each in self.converted}
        return StructType([self._as_text(each) if each.name in names else each for each in self.schema])

    def _as_text(self, field: StructField) -> StructField:
        if self.format == "json":  # Spark would read the number 200 as the TINYINT -56
            field = replace_types(field, (ByteType,), ShortType())
        return replace_types(field, self._converted_types(field), StringType())

    def is_of_table(self, field: StructField) -> bool:
        """Return True if the type of a field is known from the table alone."""
        return field.name.lower() in self.of_table

    def _converted_types(self, field: StructField) -> tuple[type[DataType], ...]:
        """Return the types whose text is converted. Numbers of JSON have no leading zeros, so Spark may read them."""
        return (*CONVERTED, IntegralType) if self.format == "csv" and self.is_of_table(field) else CONVERTED


def load(spark: SparkSession, reading: Reading, files: list[str], options: Mapping[str, str]) -> DataFrame:
    """Read files as planned, with additional options. A text that is not exactly a value of its type fails the read."""
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
    if reading.format == "json" and not are_utf_8_lines(all_options):
        return _load_rewritten_numbers(spark, reading, all_options, files)
    return converted(load_plainly(spark, reading.format, all_options, files, reading.as_text), reading)


def converted(rows: DataFrame, reading: Reading) -> DataFrame:
    """Return rows that were read as text with all columns converted to their types."""
    read = {field.name: field.dataType for field in rows.schema}

    def as_value(column: Column, field: StructField) -> Column:
        return reading.convert(column, field, read[field.name])

    return with_each(rows, reading.converted, as_value, reading.is_of_table)


def are_utf_8_lines(options: Mapping[str, str]) -> bool:
    """Return True if Spark reads JSON line by line as UTF-8: as text, numbers then stay as they are written."""
    return not {name.lower() for name in options} & {"multiline", *ENCODING_OPTIONS}


def _load_rewritten_numbers(
    spark: SparkSession, reading: Reading, options: Mapping[str, str], files: list[str]
) -> DataFrame:
    """Read JSON whose numbers Spark may rewrite in text: check the text first, then read with the types."""
    as_text = load_plainly(spark, "json", options, files, reading.as_text)
    converted(as_text, reading).write.format("noop").mode("overwrite").save()
    return load_plainly(spark, "json", options, files, reading.schema)


def load_plainly(
    spark: SparkSession, format: Format, options: Mapping[str, str], files: list[str], schema: StructType | None
) -> DataFrame:
    """Read files with options and a schema, or with the schema of the files. Paths are not treated as patterns."""
    paths, literal = literal_paths(files)
    reader = spark.read.format(format).options(**options, **literal)
    times = nanoseconds.columns_in(options)
    if schema is not None:
        reader = reader.schema(nanoseconds.as_numbers(schema, times))
    rows = reader.load(paths)
    return nanoseconds.as_times(rows, times) if times else rows


def literal_paths(files: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return paths and an option that make Spark read files literally, even if their names look like patterns.

    With the option alone, Spark would read all files of the list once for each such name.
    """
    paths = [_PATTERN_CHARACTER.sub(r"\\\g<0>", file) for file in files]
    return paths, {_GLOB_PATHS: "false" if paths == files else "true"}


def parse_schema(schema: str) -> StructType:
    """Parse a schema in SQL. Its NOT NULL is left out: `stated_not_null.py` verifies it, and readers ignore it."""
    parsed = StructType.fromDDL(schema)
    assert isinstance(parsed, StructType)
    return parsed.toNullable()
