"""Load files as planned: by Spark's readers, and decimals in text as they are written."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import CharType, DecimalType, DoubleType, StringType, StructField, StructType, VarcharType

from sluice.contracts.spark_jobs import IngestSpec
from sluice.identifiers import quoted
from sluice.pipeline.source import Format
from spark_jobs.schemas import has_decimals, replace_types

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

    @property
    def decimals(self) -> list[StructField]:
        """The fields with decimals that Spark's reader of text does not read as they are written."""
        names = {name.lower() for name in self.options}
        is_text = self.format in ("csv", "json") and "locale" not in names
        return [each for each in self.schema or () if is_text and has_decimals(each.dataType)]

    @property
    def as_text(self) -> StructType | None:
        """The schema with text instead of decimals."""
        fields = [
            replace_types(each, (DecimalType,), StringType()) if each in self.decimals else each
            for each in self.schema or ()
        ]
        return StructType(fields) if fields else self.schema


def load(spark: SparkSession, reading: Reading, files: list[str], options: Mapping[str, str]) -> DataFrame:
    """Read files as planned, with more options.

    Decimals in text are cast: Spark's readers leave out every comma, and make 1250 of 12,50. If the pipeline states a
    `locale`, that says what a comma means.
    """
    schema, decimals = reading.schema, reading.decimals
    all_options = {**reading.options, **options}
    if schema is None or not decimals:
        return load_plainly(spark, reading.format, all_options, files, schema)
    as_text = load_plainly(spark, reading.format, all_options, files, reading.as_text)
    if reading.format == "json" and not keeps_digits(all_options):
        _check_numbers(as_text, decimals)
        return load_plainly(spark, reading.format, all_options, files, schema)
    types = {field.name: field.dataType for field in decimals}
    text = "nullif(trim({}), '')" if reading.format == "csv" else "{}"
    return as_text.select(
        *[
            F.expr(text.format(quoted(name))).cast(types[name]).alias(name) if name in types else F.col(quoted(name))
            for name in as_text.columns
        ]
    )


def keeps_digits(options: Mapping[str, str]) -> bool:
    """Return whether Spark reads a JSON number as text without rounding it: only by lines, and as UTF-8."""
    stated = {name.lower(): value.lower() for name, value in options.items()}
    encoding = stated.get("encoding", stated.get("charset", "utf-8"))
    return stated.get("multiline") != "true" and encoding in ("utf-8", "utf8")


def _check_numbers(as_text: DataFrame, decimals: Sequence[StructField]) -> None:
    """Fail where a text is no number: read as a decimal, it would lose its commas."""
    as_doubles = [
        F.col(quoted(each.name)).cast(replace_types(each, (DecimalType,), DoubleType()).dataType) for each in decimals
    ]
    as_text.select(*as_doubles).write.format("noop").mode("overwrite").save()


def load_plainly(
    spark: SparkSession, format: Format, options: Mapping[str, str], files: list[str], schema: StructType | None
) -> DataFrame:
    """Read files by options and a schema; without one, by that of the files. Their paths are no patterns."""
    paths, literal = literal_paths(files)
    reader = spark.read.format(format).options(**options, **literal)
    return (reader.schema(schema) if schema is not None else reader).load(paths)


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


def columns_of_folders(spec: IngestSpec) -> dict[str, set[str]]:
    """Return the values of each column that Spark makes of folders named `column=value`."""
    columns: dict[str, set[str]] = {}
    base = f"{spec.base_path.rstrip('/')}/" if spec.base_path else ""
    for file in spec.files if base else ():
        for part in file.removeprefix(base).split("/")[:-1]:
            name, equals, value = part.partition("=")
            if equals:
                columns.setdefault(unquote(name), set()).add(unquote(value))
    return columns


def path_of_address(address: str) -> str:
    """Return the path that Spark's address of a file stands for."""
    parts = urlsplit(address)
    return unquote(parts.path) if parts.scheme == "file" else unquote(address)
