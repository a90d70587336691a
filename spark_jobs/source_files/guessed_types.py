"""Guess the types of CSV columns that neither a table nor a schema states, from the plain notation of each type.

A column gets a type only if the type represents all values of the column exactly; else it is text. `12D`, `1E5`,
`00123`, `+47`, `10:30` and `2024-01` are text. A column without values has no type yet.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    TimestampType,
)

from sluice.contracts.guessed_types import GuessedColumn
from sluice.identifiers import quoted
from sluice.input.plain_notation import (
    BEGINS_NUMBER,
    BOOLEANS,
    DOUBLE_DIGITS,
    FRACTION,
    LEAST_INT,
    MOST_INT,
    NUMBERS,
    WHOLE,
    decimal_type,
    guess_type,
    looks_numeric,
)
from spark_jobs.values.exact_text import is_exact, is_usual
from spark_jobs.values.file_addresses import path_of_address

_AFTER_YEAR = 5
_TEXT = StringType()
_TYPES: dict[str, DataType] = {
    "": NullType(),
    "BOOLEAN": BooleanType(),
    "DATE": DateType(),
    "TIMESTAMP": TimestampType(),
    "INT": IntegerType(),
    "BIGINT": LongType(),
    "DOUBLE": DoubleType(),
    "STRING": StringType(),
}
_MOST_SEARCHED = 5
"""Maximum number of columns that are searched in all rows for the first value that is text."""
_FILE = "sluice_file"


def guess_types(frames: Sequence[DataFrame], names: Sequence[str]) -> list[GuessedColumn]:
    """Return the guessed types of some columns, in the order of the names.

    Args:
        frames: the rows of the files, with text in every column.
    """
    address = F.col("_metadata.file_path").alias(_FILE)
    text = reduce(lambda rows, more: rows.unionByName(more), [frame.select("*", address) for frame in frames])
    statistics: dict[str, dict[str, dict[str, Any]]] = {}
    for name, row in _by_notation(text, names, _statistics(F.col("text"))):
        statistics.setdefault(name, {})[row["kind"]] = row
    # With the test of long numbers, the first query of a small file takes half as long again, and few files have any.
    for name, row in _by_notation(text, _to_test_again(statistics), [_are_double(F.col("text"))]):
        statistics[name][row["kind"]] |= row
    types = {name: _guess(statistics.get(name, {})) for name in names}
    decimals = [name for name, type in types.items() if type == "DECIMAL"]
    digits: dict[str, tuple[int, int]] = {}
    for name, row in _by_notation(text, decimals, _digits(F.col("text"))):
        whole, fraction = digits.get(name, (0, 0))
        digits[name] = max(whole, row["whole"]), max(fraction, row["fraction"])
    types |= {name: decimal_type(*digits[name]) for name in decimals}
    of_text = {name: list(statistics[name].values()) for name in names if types[name] == "STRING"}
    mixed = [name for name, rows in of_text.items() if len(rows) > 1]
    others = [name for name, rows in of_text.items() if len(rows) == 1 and rows[0]["looks_numeric"]]
    values = _values_of_text(text, mixed, others)
    return [GuessedColumn(name=name, type=types[name], **values.get(name, {})) for name in names]


def type_of(column: GuessedColumn) -> DataType:
    """Return Spark's type of a column."""
    known = _TYPES.get(column.type)
    return known or DataType.fromDDL(column.type)


def _values_of_text(text: DataFrame, mixed: Sequence[str], others: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return a value that makes a column text, and its file, for some columns.

    Args:
        mixed: columns that also have values of other notations. All rows are searched.
        others: columns with only text. The value of the first row is returned if it looks like a number.
    """
    rows = []
    for name in mixed[:_MOST_SEARCHED]:
        column = F.col(quoted(name))
        is_text = (column != F.lit("")) & (_kind(column) == "text")
        rows += [(name, row) for row in text.select(column.alias(name), _FILE).filter(is_text).take(1)]
    if others:
        columns = [F.col(quoted(name)) for name in others]
        first = text.select(*columns, _FILE).take(1)
        rows += [(name, row) for row in first for name in others if looks_numeric(row[name] or "")]
    return {name: {"value": row[name], "where": path_of_address(row[_FILE]).rsplit("/", 1)[-1]} for name, row in rows}


def _by_notation(
    text: DataFrame, names: Sequence[str], aggregates: Sequence[Column]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a column's name and aggregates over its values, for each column and each notation in it.

    The query puts the values of all columns into one column, so that thousands of columns make no larger plan.
    """
    if not names:
        return
    columns = F.array(*[F.col(quoted(name)) for name in names])
    values = text.select(F.posexplode(columns).alias("column", "text")).filter(F.col("text") != F.lit(""))
    values = values.select("column", "text", _kind(F.col("text")).alias("kind"))
    for row in values.groupBy("column", "kind").agg(*aggregates).collect():
        yield names[row["column"]], row.asDict()


def _kind(text: Column) -> Column:
    """Return the notation of a value. A notation is tried only if the first characters allow it.

    A failing cast would be an expensive test, since Spark creates an error and drops it.
    """
    is_whole, is_fraction = text.rlike(rf"^(?:{WHOLE})\z"), text.rlike(rf"^(?:{FRACTION})\z")
    number = F.when(is_whole, "whole").when(is_fraction, "fraction").otherwise("text")
    is_moment = is_exact(text, TimestampType(), _TEXT)
    time = F.when(is_usual(text, DateType()), "day").when(is_moment, "moment").otherwise("text")
    other = F.when(F.lower(text).isin(*BOOLEANS), "boolean").otherwise("text")
    begins_as_number = F.substring(text, 1, 1).between("-", "9")
    begins_as_year = F.substring(text, _AFTER_YEAR, 1) == F.lit("-")
    return F.when(begins_as_number, F.when(begins_as_year, time).otherwise(number)).otherwise(other)


def _statistics(text: Column) -> list[Column]:
    """Return the aggregates that decide the type of a column."""
    is_whole = F.col("kind") == "whole"
    long = F.when(is_whole, text.try_cast(LongType()))
    is_short = F.length(text) <= F.when(is_whole, DOUBLE_DIGITS).otherwise(DOUBLE_DIGITS + 1)
    return [
        F.min(long).alias("least"),
        F.max(long).alias("most"),
        F.every(F.when(is_whole, long.isNotNull())).alias("are_long"),
        F.every(is_short).alias("are_short"),
        F.some(F.substring(text, 1, 1).isin(*BEGINS_NUMBER)).alias("looks_numeric"),
    ]


def _to_test_again(statistics: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """Return the numeric columns with a fraction and with a number of more digits than every DOUBLE preserves."""
    return [
        name
        for name, kinds in statistics.items()
        if "fraction" in kinds and kinds.keys() <= NUMBERS and not all(row["are_short"] for row in kinds.values())
    ]


def _are_double(text: Column) -> Column:
    return F.every(is_exact(text, DoubleType(), _TEXT)).alias("are_double")


def _digits(text: Column) -> list[Column]:
    """Return the maximum number of digits before and after the point, without zeros at the end."""
    fraction = F.regexp_replace(F.regexp_extract(text, r"\.(\d+)$", 1), "0+$", "")
    return [
        F.max(F.length(F.regexp_extract(text, r"^-?(\d*)", 1))).alias("whole"),
        F.max(F.length(fraction)).alias("fraction"),
    ]


def _guess(statistics: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the SQL type of a column, in the form of `guess_type`.

    Args:
        statistics: aggregates over the column's values, by their notation.
    """
    whole = statistics.get("whole", {"are_long": False})
    return guess_type(
        statistics.keys(),
        are_int=bool(whole["are_long"]) and whole["least"] >= LEAST_INT and whole["most"] <= MOST_INT,
        are_long=bool(whole["are_long"]),
        are_double=all(each.get("are_double", each["are_short"]) for each in statistics.values()),
    )
