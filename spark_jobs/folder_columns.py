"""Columns that Spark makes from folders named `column=value`."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType, StringType, StructType

from sluice.contracts.spark_jobs import IngestSpec
from sluice.errors import InvalidInput
from sluice.identifiers import quoted
from sluice.input.plain_notation import MARKED

_LOSES_AS_NUMBER = rf"^\s*{MARKED}"
_ENCODED = re.compile("%([0-9A-Fa-f]{2})")


def columns_of_folders(spec: IngestSpec) -> dict[str, set[str]]:
    """Return the values of each column that Spark makes from folders."""
    return {name: {unquote(value) for value in values} for name, values in _encoded_values(spec).items()}


def check_places(spec: IngestSpec) -> None:
    """Check that all files are in folders of the same columns.

    Raises:
        InvalidInput: a file is in folders of other columns.
    """
    first: dict[tuple[str, ...], str] = {}
    for file in spec.files if spec.base_path else ():
        first.setdefault(tuple(name for name, _ in _folders(spec, file)), file)
    if len(first) > 1:
        (fewer, outside), (more, inside) = sorted(first.items(), key=lambda each: len(each[0]))[:2]
        named = ", ".join(f"{name}=" for name in more if name not in fewer)
        raise InvalidInput(
            f"{outside} does not lie in folders {named} as {inside} does: move it into one, or load it in a run of "
            "its own"
        )


def check_twice(spec: IngestSpec, names: Sequence[str]) -> None:
    """Check that no column is both in the folders and in the files.

    Args:
        names: the columns of the files.

    Raises:
        InvalidInput: a column is in both.
    """
    folders = {name.lower() for name in columns_of_folders(spec)}
    if twice := next((name for name in names if name.lower() in folders), None):
        raise InvalidInput(
            f"the column {twice} is in the folders `{twice}=` and in the files, and one value would be lost: leave it "
            "out of the files, or list them by a pattern: then folders become no columns"
        )


def check_numbers(read: StructType, target: StructType | None, spec: IngestSpec) -> None:
    """Check that no column from folders becomes a number and so loses leading zeros or a plus sign.

    Raises:
        InvalidInput: a value would lose characters.
    """
    numbers = {field.name for field in read if isinstance(field.dataType, NumericType)}
    numbers -= {field.name for field in target or () if isinstance(field.dataType, NumericType)}
    for name, values in columns_of_folders(spec).items():
        lost = [value for value in values if re.match(_LOSES_AS_NUMBER, value)]
        if name in numbers and lost:
            raise InvalidInput(
                f"the value of the folder {name}={lost[0]} would become a number and lose characters: name all columns "
                f"and their types in source.schema, with {name} as STRING"
            )


def decode_values(rows: DataFrame, spec: IngestSpec) -> DataFrame:
    """Return the rows with the values of folders decoded as UTF-8, since Spark reads each encoded byte as a letter."""
    text = {field.name for field in rows.schema if isinstance(field.dataType, StringType)}
    misread = {name: _misread(values) for name, values in _encoded_values(spec).items() if name in text}
    for name, meant in misread.items():
        if meant:
            words = F.create_map(*[F.lit(word) for pair in meant.items() for word in pair])
            column = F.col(quoted(name))
            rows = rows.withColumn(name, F.coalesce(F.element_at(words, column), column))
    return rows


def _misread(values: set[str]) -> Mapping[str, str]:
    """Return the decoded values, by the values that Spark reads, for those that differ."""
    as_read = {_ENCODED.sub(lambda byte: chr(int(byte[1], 16)), value): unquote(value) for value in values}
    return {read: meant for read, meant in as_read.items() if read != meant}


def _encoded_values(spec: IngestSpec) -> dict[str, set[str]]:
    columns: dict[str, set[str]] = {}
    for file in spec.files if spec.base_path else ():
        for name, value in _folders(spec, file):
            columns.setdefault(name, set()).add(value)
    return columns


def _folders(spec: IngestSpec, file: str) -> list[tuple[str, str]]:
    """Return the columns that the folders of a file name, each with its value as encoded in the path."""
    base = f"{(spec.base_path or '').rstrip('/')}/"
    parts = [part.partition("=") for part in file.removeprefix(base).split("/")[:-1]]
    return [(unquote(name), value) for name, equals, value in parts if equals]
