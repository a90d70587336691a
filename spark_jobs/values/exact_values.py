"""Keep Spark from rounding or cutting a value that it stores in a column of another type.

In Spark's store assignment, 2.5 becomes 2 in a column of whole numbers, 12.345 becomes 12.35 in DECIMAL(10, 2), and a
timestamp in a column of dates loses its time, all without an error. With this module, each such value fails the write.

A DOUBLE with a fraction may become the nearest FLOAT: a user who chose FLOAT chose its seven digits, and hardly any
DOUBLE has so few. A whole number may be an identifier, so a whole DOUBLE must stay the same as a FLOAT.
"""

import math
from collections.abc import Iterator
from functools import reduce
from operator import and_

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    LongType,
    MapType,
    ShortType,
    StructField,
    StructType,
)

from sluice.identifiers import quoted
from sluice.sizes import format_count
from spark_jobs.job import log_error
from spark_jobs.values.exact_text import END_OF_BIGINT, FIRST_WHOLE
from spark_jobs.values.file_addresses import address_of_file, path_of_address
from spark_jobs.values.many_columns import with_columns
from spark_jobs.values.type_rules import are_of_one_kind, fits, value_types

_BITS = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_FLOATING = (FloatType, DoubleType)
LOSS = "without being rounded or cut"


def keep_values_exact(rows: DataFrame, target: StructType) -> DataFrame:
    """Return the rows with a guard that fails the write if the table would store a changed value."""
    guarded = {have.name: _guarded(have, wanted) for have, wanted in _lossy_columns(rows.schema, target)}
    return with_columns(rows, guarded)


def inexact_values(rows: DataFrame, target: StructType, advice: str = "") -> list[str]:
    """Return the columns with values that the table cannot store exactly, each with a count and the first file.

    Args:
        advice: what the user should do, if neither another type of the column nor a CAST is the remedy.
    """
    problems = []
    for have, wanted in _lossy_columns(rows.schema, target):
        is_changed = ~is_stored_exactly(F.col(quoted(have.name)), have.dataType, wanted)
        changed = rows.select(is_changed.alias("is_changed"), address_of_file(rows).alias("file")).filter("is_changed")
        try:
            count, file = changed.agg(F.count(F.lit(1)), F.min("file")).collect()[0]
        except (PySparkException, Py4JJavaError) as error:  # the caller then reports the error of the write itself
            log_error(error)
            continue
        if count:
            problems.append(cannot_be_stored(have, wanted, count, path_of_address(file), advice))
    return problems


def cannot_be_stored(have: StructField, wanted: DataType, count: int, details: str, advice: str = "") -> str:
    """Describe values that a column of another type cannot store exactly.

    Args:
        details: the first file, and a value if it is shown.
        advice: what the user should do, as in `inexact_values`.
    """
    where = f" ({details})" if details else ""
    return (
        f"{have.name}: {format_count(count, 'value')} of type {have.dataType.simpleString()}{where} cannot be stored "
        f"as {wanted.simpleString()} {LOSS}: {advice or _advice(have, wanted)}"
    )


def _advice(have: StructField, wanted: DataType) -> str:
    return (
        f"change the type of the column, or write CAST({have.name} AS {wanted.simpleString().upper()}) in a transform"
    )


def _lossy_columns(have: StructType, target: StructType) -> Iterator[tuple[StructField, DataType]]:
    """Yield the columns whose values Spark may change when it stores them, with the type of the table's column."""
    wanted = {field.name.lower(): field.dataType for field in target}
    for field in have:
        other = wanted.get(field.name.lower())
        if other is not None and _may_lose(field.dataType, other):
            yield field, other


def _may_lose(have: DataType, wanted: DataType) -> bool:
    return any(are_of_one_kind(own, other) and not fits(own, other) for own, other in value_types(have, wanted))


def _guarded(have: StructField, wanted: DataType) -> Column:
    column = F.col(quoted(have.name))
    message = f"a value of the column {have.name} cannot be stored as {wanted.simpleString()} {LOSS}"
    return F.when(is_stored_exactly(column, have.dataType, wanted), column).otherwise(F.raise_error(F.lit(message)))


def is_stored_exactly(column: Column, have: DataType, wanted: DataType) -> Column:
    """Return a column that is true if a value stays the same when it is stored.

    Fields match by name, as in Spark's writer.
    """
    if not _may_lose(have, wanted):
        return F.lit(True)
    match have, wanted:
        case StructType(), StructType():
            by_name = {field.name.lower(): field.dataType for field in wanted}
            exact = [
                is_stored_exactly(column.getField(field.name), field.dataType, by_name[field.name.lower()])
                for field in have
                if field.name.lower() in by_name
            ]
            return reduce(and_, exact)
        case ArrayType(), ArrayType():
            return _all_exact(column, have.elementType, wanted.elementType)
        case MapType(), MapType():
            keys = _all_exact(F.map_keys(column), have.keyType, wanted.keyType)
            return keys & _all_exact(F.map_values(column), have.valueType, wanted.valueType)
    return _is_same_value(column, have, wanted)


def _is_same_value(column: Column, have: DataType, wanted: DataType) -> Column:
    """Return a column that is true if a number or time stays the same after a cast to another type and back."""
    stored = column.try_cast(wanted)
    is_same = stored.try_cast(have).eqNullSafe(column)
    if isinstance(have, DoubleType) and isinstance(wanted, FloatType):
        # From FIRST_WHOLE on, each DOUBLE is whole, so that a whole number no longer suggests an identifier.
        is_whole = (column == F.rint(column)) & (F.abs(column) < FIRST_WHOLE)
        is_in_range = (F.abs(stored) < math.inf) & (stored != 0.0)
        return is_same | (~is_whole & is_in_range)
    if isinstance(have, _FLOATING) and isinstance(wanted, DecimalType):
        return is_same & _are_same_whole(column, stored)
    if isinstance(have, DecimalType) and isinstance(wanted, _FLOATING):
        return is_same & _are_same_whole(stored, column)
    whole, other = (have, wanted) if isinstance(have, IntegralType) else (wanted, have)
    if isinstance(whole, IntegralType) and isinstance(other, _FLOATING):
        # Spark casts 2^63 to the BIGINT 2^63 - 1, and that to the DOUBLE 2^63.
        floating = (stored if whole == have else column).cast(DoubleType())
        return is_same & (column.isNull() | (floating < 2.0 ** (_BITS[type(whole)] - 1)))
    return is_same


def _are_same_whole(floating: Column, decimal: Column) -> Column:
    """Return a column that is false if a DOUBLE in the range of BIGINT is a whole number other than a DECIMAL.

    It may be an identifier. Spark casts one to the other by the digits that identify the DOUBLE: the DOUBLE 2^60, which
    is 1152921504606846976, becomes the DECIMAL 1152921504606846980.
    """
    double = floating.cast(DoubleType())
    is_whole = (F.abs(double) >= FIRST_WHOLE) & (F.abs(double) < END_OF_BIGINT)
    return F.when(is_whole, decimal == double.try_cast(LongType())).otherwise(F.lit(True))


def _all_exact(elements: Column, have: DataType, wanted: DataType) -> Column:
    return F.coalesce(F.forall(elements, lambda each: is_stored_exactly(each, have, wanted)), F.lit(True))
