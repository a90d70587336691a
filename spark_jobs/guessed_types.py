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
_FRACTION = r"^-?(0|[1-9]\d*)\.\d+$"
_DAY = r"^\d{4}-\d{2}-\d{2}$"
_NUMERIC_START = r"^[-0-9]"
_MAX_DIGITS, _PLAIN_DIGITS = 38, 15
_LEAST_INT, _MOST_INT = -(2**31), 2**31 - 1
_TEXT = StringType()


def guess_types(text: DataFrame, names: Sequence[str]) -> dict[str, DataType]:
    """Return the type of each of some columns of text.

    Args:
        text: the rows of the files, with text in every column.
    """
    if not names:
        return {}
    values = text.select(F.posexplode(F.array(*[F.col(quoted(name)) for name in names])).alias("column", "text"))
    text_column = F.col("text")
    values = values.filter(text_column != F.lit("")).select("column", "text", _kind(text_column).alias("kind"))
    statistics: dict[int, dict[str, Mapping[str, Any]]] = {}
    for row in values.groupBy("column", "kind").agg(*_statistics(text_column)).collect():
        statistics.setdefault(row["column"], {})[row["kind"]] = row.asDict()
    return {name: _guess(statistics.get(number, {})) for number, name in enumerate(names)}


def _kind(text: Column) -> Column:
    """Return the notation that a value has: the first that fits, since hardly any value needs all of them tried."""
    numeric = (
        F.when(text.rlike(_WHOLE), "whole")
        .when(text.rlike(_FRACTION), "fraction")
        .when(text.rlike(_DAY), F.when(is_exact(text, DateType(), _TEXT), "day").otherwise("text"))
        .when(is_exact(text, TimestampType(), _TEXT), "moment")
        .otherwise("text")
    )
    is_boolean = F.lower(text).isin("true", "false")
    return F.when(text.rlike(_NUMERIC_START), numeric).when(is_boolean, "boolean").otherwise("text")


def _statistics(text: Column) -> list[Column]:
    """Return what decides about the type of a number, over the values of one notation."""
    is_number = F.col("kind").isin("whole", "fraction")
    digits = F.length(F.regexp_extract(text, r"^-?(\d*)", 1))
    decimals = F.length(F.regexp_replace(F.regexp_extract(text, r"\.(\d+)$", 1), "0+$", ""))
    long = text.try_cast(LongType())
    is_double = F.when(F.length(text) <= _PLAIN_DIGITS, F.lit(True)).otherwise(is_exact(text, DoubleType(), _TEXT))
    return [
        F.max(F.when(is_number, digits)).alias("digits"),
        F.max(F.when(is_number, decimals)).alias("decimals"),
        F.min(F.when(F.col("kind") == "whole", long)).alias("least"),
        F.max(F.when(F.col("kind") == "whole", long)).alias("most"),
        F.every(F.when(F.col("kind") == "whole", long.isNotNull())).alias("are_long"),
        F.every(F.when(is_number, is_double)).alias("are_double"),
    ]


def _guess(statistics: Mapping[str, Mapping[str, Any]]) -> DataType:
    """Return the type of a column.

    Args:
        statistics: those of its values, by their notation.
    """
    kinds = statistics.keys()
    if not kinds:
        return NullType()
    if kinds == {"boolean"}:
        return BooleanType()
    if kinds == {"day"}:
        return DateType()
    if kinds <= {"day", "moment"}:
        return TimestampType()
    return _guess_number(statistics) if kinds <= {"whole", "fraction"} else StringType()


def _guess_number(statistics: Mapping[str, Mapping[str, Any]]) -> DataType:
    if statistics.keys() == {"whole"}:
        whole = statistics["whole"]
        if whole["are_long"]:
            return IntegerType() if whole["least"] >= _LEAST_INT and whole["most"] <= _MOST_INT else LongType()
    elif all(each["are_double"] for each in statistics.values()):
        return DoubleType()
    decimals = max(each["decimals"] for each in statistics.values())
    digits = max(each["digits"] for each in statistics.values())
    return DecimalType(_MAX_DIGITS, decimals) if digits + decimals <= _MAX_DIGITS else StringType()
