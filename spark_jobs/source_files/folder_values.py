"""Convert the values of folders named `column=value`, which Spark makes columns of, like text of files.

Spark would guess types by its own rules: `1E5` becomes 100000, `1d` the DOUBLE 1.0, and `-0` the INT 0. So it reads
each value as text, and this module converts the text.
"""

import re
from collections.abc import Collection, Mapping
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from sluice.contracts.guessed_types import GuessedColumn
from sluice.contracts.spark_jobs import IngestSpec
from sluice.errors import InvalidInput
from sluice.identifiers import quoted
from sluice.input.plain_notation import (
    BOOLEANS,
    LEAST_INT,
    LEAST_LONG,
    MOST_INT,
    MOST_LONG,
    decimal_type,
    digits_of,
    guess_type,
    is_exact_double,
    notation_of,
)
from spark_jobs.source_files.folder_columns import columns_of_folders, encoded_values
from spark_jobs.source_files.guessed_types import type_of
from spark_jobs.values.exact_text import Rules, convert, is_exact
from spark_jobs.values.many_columns import with_columns
from spark_jobs.values.stated_notation import StatedNotation

_GUESSES = "spark.sql.sources.partitionColumnTypeInference.enabled"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_ENCODED = re.compile("%([0-9A-Fa-f]{2})")
_TEXT = StringType()


def read_as_text(spark: SparkSession) -> None:
    """Have Spark read each value of a folder as text, unless the schema of a read states another type."""
    spark.conf.set(_GUESSES, "false")


def with_text_in_folders(schema: StructType, spec: IngestSpec) -> StructType:
    """Return a schema with text in place of the types of columns from folders."""
    names = {name.lower() for name in columns_of_folders(spec)}
    return StructType(
        [
            StructField(each.name, _TEXT, metadata=each.metadata) if each.name.lower() in names else each
            for each in schema
        ]
    )


def with_typed_folders(
    rows: DataFrame, spec: IngestSpec, wanted: StructType | None, options: Mapping[str, str]
) -> tuple[DataFrame, list[GuessedColumn]]:
    """Return the rows with the values of folders in their types, and the columns whose types were guessed.

    Args:
        wanted: the stated schema, or the schema of the table; None if there is neither.
        options: options that state the notation of values. That of folders is plain, but `timeZone` applies.

    Raises:
        InvalidInput: a value is not exactly a value of its column's type.
    """
    rules = Rules(notation=StatedNotation({name: zone for name, zone in options.items() if name == "timeZone"}))
    known = {field.name.lower(): field.dataType for field in wanted or ()}
    typed: dict[str, Column] = {}
    guessed: list[GuessedColumn] = []
    misread = {name: _misread(name, values) for name, values in encoded_values(spec).items()}
    for name, values in columns_of_folders(spec).items():
        type = known.get(name.lower())
        given = values - {_NO_VALUE}
        if type is None:
            guessed.append(GuessedColumn(name=name, type=_guess(given)))
            type = type_of(guessed[-1])
        else:
            _check(rows.sparkSession, spec, name, given, type, rules)
        typed[name] = _converted(_decoded(F.col(quoted(name)), misread[name]), StructField(name, type), rules)
    return with_columns(rows, typed), guessed


def _guess(values: Collection[str]) -> str:
    """Return the SQL type of values, as of an untyped column of CSV; empty without any value."""
    by_notation: dict[str, list[str]] = {}
    for value in values:
        by_notation.setdefault(notation_of(value), []).append(value)
    whole = [int(value) for value in by_notation.get("whole", ())]
    type = guess_type(
        by_notation.keys(),
        are_int=all(LEAST_INT <= number <= MOST_INT for number in whole),
        are_long=all(LEAST_LONG <= number <= MOST_LONG for number in whole),
        are_double=all(is_exact_double(value) for name in ("whole", "fraction") for value in by_notation.get(name, ())),
    )
    if type == "DECIMAL":
        digits = [digits_of(value) for value in values]
        type = decimal_type(max(whole for whole, _ in digits), max(fraction for _, fraction in digits))
    return type


def _check(
    spark: SparkSession, spec: IngestSpec, name: str, values: Collection[str], type: DataType, rules: Rules
) -> None:
    """Check that each value of a column from folders is exactly a value of the column's type."""
    source = spec.write.source
    owner = "source.schema" if source and source.schema_ else next(iter(spec.tables))
    if isinstance(type, StructType | ArrayType | MapType):
        raise InvalidInput(f"{name} is {type.simpleString()} in {owner}, but a folder is one value: state STRING")
    if isinstance(type, StringType | BinaryType) or not values:
        return
    texts = spark.range(1).select(F.explode(F.array(*[F.lit(value) for value in sorted(values)])).alias("text"))
    text = F.col("text")
    is_value = F.lower(text).isin(*BOOLEANS) if isinstance(type, BooleanType) else is_exact(text, type, _TEXT, rules)
    for row in texts.filter(~is_value).take(1):
        raise InvalidInput(
            f"the value of the folder {name}={row['text']} is not exactly a value of the type {type.simpleString()}, "
            f"which {owner} states: rename the folder, or state another type for {name}"
        )


def _converted(text: Column, field: StructField, rules: Rules) -> Column:
    if isinstance(field.dataType, NullType):
        return F.lit(None)
    if isinstance(field.dataType, BooleanType | BinaryType):
        return text.cast(field.dataType)
    return convert(text, field, _TEXT, rules)


def _decoded(read: Column, misread: Mapping[str, str]) -> Column:
    """Return a value decoded as UTF-8, since Spark reads each encoded byte as a letter."""
    if not misread:
        return read
    words = F.create_map(*[F.lit(word) for pair in misread.items() for word in pair])
    return F.coalesce(F.element_at(words, read), read)


def _misread(name: str, values: set[str]) -> Mapping[str, str]:
    """Return the decoded values, by the values that Spark reads, for those that differ.

    Raises:
        InvalidInput: Spark reads two different values as one: `%C3%A9`, which is `é`, and the letters `Ã©`.
    """
    as_read: dict[str, str] = {}
    for value in sorted(values):
        read, meant = _ENCODED.sub(lambda byte: chr(int(byte[1], 16)), value), unquote(value)
        if as_read.setdefault(read, meant) != meant:
            both = f"{name}={as_read[read]} and {name}={meant}"
            raise InvalidInput(f"Spark cannot tell the folders {both} apart: rename one of them")
    return {read: meant for read, meant in as_read.items() if read != meant}
