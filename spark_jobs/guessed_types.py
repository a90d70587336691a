"""Guess the types of CSV columns that no table and no schema states, from the plain notation of each type.

A column has a type only if that type holds all its values exactly; else it is text. `12D`, `1E5`, `00123`, `+47`,
`10:30` and `2024-01` are text. A column without any value has no type yet.
"""

from collections.abc import Iterator, Mapping, Sequence
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
from spark_jobs.exact_text import is_exact, is_usual

_WHOLE = r"^-?(0|[1-9]\d*)\z"
_FRACTION = r"^-?(0|[1-9]\d*)\.\d+\z"
_AFTER_YEAR = 5
_MAX_DIGITS, _PLAIN_DIGITS = 38, 15
_LEAST_INT, _MOST_INT = -(2**31), 2**31 - 1
_TEXT = StringType()


def guess_types(text: DataFrame, names: Sequence[str]) -> dict[str, DataType]:
    """Return the type of each of some columns of text.

    Args:
        text: the rows of the files, with text in every column.
    """
    statistics: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name, row in _by_notation(text, names, _statistics(F.col("text"))):
        statistics.setdefault(name, {})[row["kind"]] = row
    types = {name: _guess(statistics.get(name, {})) for name in names}
    decimals = [name for name, type in types.items() if isinstance(type, DecimalType)]
    digits: dict[str, tuple[int, int]] = {}
    for name, row in _by_notation(text, decimals, _digits(F.col("text"))):
        whole, fraction = digits.get(name, (0, 0))
        digits[name] = max(whole, row["whole"]), max(fraction, row["fraction"])
    return types | {name: _decimal(*digits[name]) for name in decimals}


def _by_notation(
    text: DataFrame, names: Sequence[str], aggregates: Sequence[Column]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield aggregates over the values of each column that have one notation, with the name of the column.

    The values of all columns are in one, so that thousands of columns make no larger plan.
    """
    if not names:
        return
    columns = F.array(*[F.col(quoted(name)) for name in names])
    values = text.select(F.posexplode(columns).alias("column", "text")).filter(F.col("text") != F.lit(""))
    values = values.select("column", "text", _kind(F.col("text")).alias("kind"))
    for row in values.groupBy("column", "kind").agg(*aggregates).collect():
        yield names[row["column"]], row.asDict()


def _kind(text: Column) -> Column:
    """Return the notation of a value. Each is tried only where the first letters allow it.

    A cast that fails is no cheap test: Spark makes an error of it, and drops that.
    """
    number = F.when(text.rlike(_WHOLE), "whole").when(text.rlike(_FRACTION), "fraction").otherwise("text")
    is_moment = is_exact(text, TimestampType(), _TEXT)
    time = F.when(is_usual(text, DateType()), "day").when(is_moment, "moment").otherwise("text")
    other = F.when(F.lower(text).isin("true", "false"), "boolean").otherwise("text")
    begins_as_number = F.substring(text, 1, 1).between("-", "9")
    begins_as_year = F.substring(text, _AFTER_YEAR, 1) == F.lit("-")
    return F.when(begins_as_number, F.when(begins_as_year, time).otherwise(number)).otherwise(other)


def _statistics(text: Column) -> list[Column]:
    """Return what decides about the type of a number."""
    is_whole, is_number = F.col("kind") == "whole", F.col("kind").isin("whole", "fraction")
    long = F.when(is_whole, text.try_cast(LongType()))
    is_short = F.length(text) <= F.when(is_whole, _PLAIN_DIGITS).otherwise(_PLAIN_DIGITS + 1)
    is_double = F.when(is_short, F.lit(True)).otherwise(is_exact(text, DoubleType(), _TEXT))
    return [
        F.min(long).alias("least"),
        F.max(long).alias("most"),
        F.every(F.when(is_whole, long.isNotNull())).alias("are_long"),
        F.every(F.when(is_number, is_double)).alias("are_double"),
    ]


def _digits(text: Column) -> list[Column]:
    """Return the number of digits before and behind the point, without zeros at the end."""
    fraction = F.regexp_replace(F.regexp_extract(text, r"\.(\d+)$", 1), "0+$", "")
    return [
        F.max(F.length(F.regexp_extract(text, r"^-?(\d*)", 1))).alias("whole"),
        F.max(F.length(fraction)).alias("fraction"),
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
    return DecimalType(_MAX_DIGITS, 0)  # how many digits it needs, another pass tells


def _decimal(whole: int, fraction: int) -> DataType:
    return DecimalType(_MAX_DIGITS, fraction) if whole + fraction <= _MAX_DIGITS else StringType()
