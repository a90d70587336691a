"""Guess the types of CSV columns that no table and no schema states, from the plain notation of each type.

A column has a type only if that type holds all its values exactly; else it is text. `12D`, `1E5`, `00123`, `+47`,
`10:30` and `2024-01` are text. A column without any value has no type yet.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    TimestampType,
)

from sluice.identifiers import quoted
from spark_jobs.exact_text import is_exact

_WHOLE = r"^-?(0|[1-9]\d*)$"
_NUMBER = r"^-?(0|[1-9]\d*)(\.\d+)?$"
_DAY = r"^\d{4}-\d{2}-\d{2}$"
_MAX_DIGITS = 38
_TEXT = StringType()


def guess_types(text: DataFrame, names: Sequence[str]) -> dict[str, DataType]:
    """Return the type of each of some columns of text.

    Args:
        text: the rows of the files, with text in every column.
    """
    if not names:
        return {}
    row = text.agg(*[_statistics(F.col(quoted(name))).alias(str(index)) for index, name in enumerate(names)]).collect()[
        0
    ]
    return {name: _guess(row[index].asDict()) for index, name in enumerate(names)}


def _statistics(column: Column) -> Column:
    """Return what decides about the type of a column, over all its values."""
    text = F.nullif(column, F.lit(""))
    length, empty = F.length, F.lit("")
    digits = length(F.regexp_extract(text, r"^-?(\d*)", 1))
    fraction = length(F.regexp_replace(F.regexp_extract(text, r"\.(\d+)$", 1), "0+$", ""))
    every: Mapping[str, Column] = {
        "whole": text.rlike(_WHOLE),
        "number": text.rlike(_NUMBER),
        "int": text.try_cast(IntegerType()).isNotNull(),
        "long": text.try_cast(LongType()).isNotNull(),
        "double": is_exact(text, DoubleType(), _TEXT),
        "boolean": F.lower(text).isin("true", "false"),
        "day": text.rlike(_DAY) & is_exact(text, DateType(), _TEXT),
        "moment": is_exact(text, TimestampType(), _TEXT),
    }
    given = text != empty
    return F.struct(
        F.count(text).alias("values"),
        F.max(digits).alias("digits"),
        F.max(fraction).alias("fraction"),
        *[F.every(F.when(given, condition)).alias(name) for name, condition in every.items()],
    )


def _guess(statistics: Mapping[str, Any]) -> DataType:
    if not statistics["values"]:
        return NullType()
    decimal = DecimalType(_MAX_DIGITS, min(statistics["fraction"], _MAX_DIGITS))
    candidates = (
        (statistics["boolean"], BooleanType()),
        (statistics["day"], DateType()),
        (statistics["moment"], TimestampType()),
        (not statistics["number"], StringType()),
        (statistics["whole"] and statistics["int"], IntegerType()),
        (statistics["whole"] and statistics["long"], LongType()),
        (not statistics["whole"] and statistics["double"], DoubleType()),
        (statistics["digits"] + statistics["fraction"] <= _MAX_DIGITS, decimal),
    )
    return next((type for is_one, type in candidates if is_one), StringType())
