"""Guess the types of CSV columns that neither a table nor a schema states, from the plain notation of each type.

A column gets a type only if the type represents all values of the column exactly; else it is text. `12D`, `1E5`,
`00123`, `+47`, `10:30` and `2024-01` are text. A column without values has no type yet.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Row
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
from spark_jobs.exact_text import is_exact, is_usual
from spark_jobs.load_files import path_of_address

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
_UNCLEAR = "unclear"


def guess_types(frames: Sequence[DataFrame], names: Sequence[str]) -> list[GuessedColumn]:
    """Return the guessed types of some columns, in the order of the names.

    Args:
        frames: the rows of the files, with text in every column.
    """
    address = F.col("_metadata.file_path").alias(_FILE)
    text = reduce(lambda rows, more: rows.unionByName(more), [frame.select("*", address) for frame in frames])
    statistics = _statistics(text, names, exact=False)
    unclear = [name for name, kinds in statistics.items() if _is_unclear(kinds)]
    statistics |= _statistics(text, unclear, exact=True)
    types = {name: _guess(statistics.get(name, {})) for name in names}
    decimals = [name for name, type in types.items() if type == "DECIMAL"]
    digits: dict[str, tuple[int, int]] = {}
    for name, row in _by_notation(text, decimals, _digits(F.col("text")), exact=False):
        whole, fraction = digits.get(name, (0, 0))
        digits[name] = max(whole, row["whole"]), max(fraction, row["fraction"])
    types |= {name: decimal_type(*digits[name]) for name in decimals}
    of_text = {name: statistics[name] for name in names if types[name] == "STRING"}
    mixed = [name for name, kinds in of_text.items() if len(kinds) > 1]
    others = [name for name, kinds in of_text.items() if len(kinds) == 1 and kinds["text"]["looks_numeric"]]
    values = _first_texts(text, mixed[:_MOST_SEARCHED], unclear) | _first_values(text, others)
    return [GuessedColumn(name=name, type=types[name], **values.get(name, {})) for name in names]


def type_of(column: GuessedColumn) -> DataType:
    """Return Spark's type of a column."""
    known = _TYPES.get(column.type)
    return known or DataType.fromDDL(column.type)


def _first_texts(text: DataFrame, names: Sequence[str], unclear: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the first value that is text, and its file, for columns that also have values of other notations.

    Args:
        unclear: columns with values whose notation only the exact expressions tell.
    """
    values = {}
    for name in names:
        column = F.col(quoted(name))
        is_text = (column != F.lit("")) & (_kind(column, exact=name in unclear) == "text")
        for row in text.select(column.alias(name), _FILE).filter(is_text).take(1):
            values[name] = _value(row, name)
    return values


def _first_values(text: DataFrame, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the values of the first row that look like numbers, and its file, for columns of text."""
    if not names:
        return {}
    rows = text.select(*[F.col(quoted(name)) for name in names], _FILE).take(1)
    return {name: _value(row, name) for row in rows for name in names if looks_numeric(row[name] or "")}


def _value(row: Row, name: str) -> dict[str, str]:
    return {"value": row[name], "where": path_of_address(row[_FILE]).rsplit("/", 1)[-1]}


def _statistics(text: DataFrame, names: Sequence[str], *, exact: bool) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return the aggregates that decide the types of some columns, by the notations of their values."""
    statistics: dict[str, dict[str, Mapping[str, Any]]] = {}
    if not names:
        return statistics
    for name, row in _by_notation(text, names, _aggregates(F.col("text"), exact=exact), exact=exact):
        statistics.setdefault(name, {})[row["kind"]] = row
    return statistics


def _is_unclear(kinds: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return True if only the exact expressions tell the type of a column.

    Spark takes longer to compile them than to read most files, and few columns have values that need them.
    """
    has_long = any(row["are_double"] is False for row in kinds.values())
    return _UNCLEAR in kinds or ("fraction" in kinds and has_long)


def _by_notation(
    text: DataFrame, names: Sequence[str], aggregates: Sequence[Column], *, exact: bool
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a column's name and aggregates over its values, for each column and each notation in it.

    The query puts the values of all columns into one column, so that thousands of columns make no larger plan.
    """
    if not names:
        return
    columns = F.array(*[F.col(quoted(name)) for name in names])
    values = text.select(F.posexplode(columns).alias("column", "text")).filter(F.col("text") != F.lit(""))
    values = values.select("column", "text", _kind(F.col("text"), exact=exact).alias("kind"))
    for row in values.groupBy("column", "kind").agg(*aggregates).collect():
        yield names[row["column"]], row.asDict()


def _kind(text: Column, *, exact: bool) -> Column:
    """Return the notation of a value. A notation is tried only if the first characters allow it.

    A failing cast would be an expensive test, since Spark creates an error and drops it.

    Args:
        exact: False if a value that begins like a date, and is not in the usual notation of a date or time, is unclear.
    """
    is_whole, is_fraction = text.rlike(rf"^(?:{WHOLE})\z"), text.rlike(rf"^(?:{FRACTION})\z")
    number = F.when(is_whole, "whole").when(is_fraction, "fraction").otherwise("text")
    is_moment = is_exact(text, TimestampType(), _TEXT) if exact else is_usual(text, TimestampType())
    time = F.when(is_usual(text, DateType()), "day").when(is_moment, "moment").otherwise("text" if exact else _UNCLEAR)
    other = F.when(F.lower(text).isin(*BOOLEANS), "boolean").otherwise("text")
    begins_as_number = F.substring(text, 1, 1).between("-", "9")
    begins_as_year = F.substring(text, _AFTER_YEAR, 1) == F.lit("-")
    return F.when(begins_as_number, F.when(begins_as_year, time).otherwise(number)).otherwise(other)


def _aggregates(text: Column, *, exact: bool) -> list[Column]:
    """Return the aggregates that decide the type of a column.

    Args:
        exact: False if only short numbers count as exact values of DOUBLE.
    """
    is_whole, is_number = F.col("kind") == "whole", F.col("kind").isin("whole", "fraction")
    long = F.when(is_whole, text.try_cast(LongType()))
    is_double = F.length(text) <= F.when(is_whole, DOUBLE_DIGITS).otherwise(DOUBLE_DIGITS + 1)
    if exact:
        is_double = F.when(is_double, F.lit(True)).otherwise(is_exact(text, DoubleType(), _TEXT))
    return [
        F.min(long).alias("least"),
        F.max(long).alias("most"),
        F.every(F.when(is_whole, long.isNotNull())).alias("are_long"),
        F.every(F.when(is_number, is_double)).alias("are_double"),
        F.some(F.substring(text, 1, 1).isin(*BEGINS_NUMBER)).alias("looks_numeric"),
    ]


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
        are_double=all(each["are_double"] for name, each in statistics.items() if name in NUMBERS),
    )
