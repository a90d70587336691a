"""Convert text of files to the type of its column, if the type represents the text exactly.

Spark's readers and casts change values without an error: `12d` becomes the DOUBLE 12.0, `1.005` the DECIMAL(10, 2)
1.01, `2024-01` the DATE 2024-01-01, `10:30` a TIMESTAMP of today, and a time loses its nanoseconds. They read whole
numbers and booleans exactly, except that `00123` becomes 123.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sluice.input.plain_notation import DAY, DOUBLE_DIGITS, MARKED, MOMENT, TIME
from spark_jobs.values.stated_notation import AS_USUAL, StatedNotation, once
from spark_jobs.values.times import FIRST_YEAR, TIMES, is_known_year

# In Java, `$` matches before a line break at the end; `\z` does not.
_MANTISSA = r"(\d+\.?\d*|\.\d+)"
_NUMBER = rf"[+-]?{_MANTISSA}([eE][+-]?\d+)?"
_LENGTH_OF_DAY, _LENGTH_OF_TIME = 10, 19
_MIDNIGHT = r"00:00(:00(\.0+)?)?"
_DIGITS_OF_FLOAT = 6
"""Number of digits that a FLOAT always keeps."""
_MOST_OF_FLOAT = 9
"""Number of digits that identify a FLOAT."""
_LEAST_DOUBLE, _LEAST_FLOAT = 2.2250738585072014e-308, 1.1754943508222875e-38
"""The smallest normal DOUBLE and FLOAT. A smaller value keeps fewer digits."""
FIRST_WHOLE, END_OF_BIGINT = 2.0**53, 2.0**63
"""From the first on, each DOUBLE is a whole number. Below the second, it is a BIGINT."""
_NOT_FINITE = ("NaN", "Inf", "+Inf", "-Inf", "Infinity", "+Infinity", "-Infinity")
CONVERTED = (NullType, DecimalType, DoubleType, FloatType, *TIMES)
"""The types whose text this module converts. Spark's readers change values of them, and do not support NullType."""


@dataclass(frozen=True)
class Rules:
    """Rules of one source for the text of a column."""

    refuses_marks: bool = False
    """True if a number with a leading zero or a plus sign is refused: it may be a code."""
    notation: StatedNotation = AS_USUAL
    """The notation of values that options of the source state."""


PLAIN = Rules()


def contains_type(type: DataType, types: tuple[type[DataType], ...]) -> bool:
    """Return True if a type is one of some types, or contains one at any depth, except in keys of maps."""
    match type:
        case StructType():
            return any(contains_type(field.dataType, types) for field in type)
        case ArrayType():
            return contains_type(type.elementType, types)
        case MapType():
            return contains_type(type.valueType, types)
    return isinstance(type, types)


def convert(read: Column, field: StructField, as_read: DataType, rules: Rules = PLAIN) -> Column:
    """Convert a column to the type of a field. A text that is not exactly a value of its type fails the job.

    Args:
        as_read: the type with which the column was read, with text, or numbers of another type, at any depth.
    """
    # Several columns of one type are converted by one expression, which has no name of a column.
    message = f"a text is not exactly a value of the type {field.dataType.simpleString()}"
    return _converted(read, field.dataType, as_read, _Conversion(message, rules))


def is_exact(read: Column, type: DataType, as_read: DataType, rules: Rules = PLAIN) -> Column:
    """Return a column that is true if all text, at any depth, is exactly a value of its type."""

    def inner(read: Column, type: DataType, as_read: DataType) -> Column:
        return is_exact(read, type, as_read, rules)

    if type == as_read:
        return F.lit(True)
    match type, as_read:
        case StructType(), StructType():
            pairs = zip(type, as_read, strict=True)
            parts = [inner(read.getField(have.name), want.dataType, have.dataType) for want, have in pairs]
            return F.coalesce(reduce(and_, parts), F.lit(True))
        case ArrayType(), ArrayType():
            return _all(read, lambda each: inner(each, type.elementType, as_read.elementType))
        case MapType(), MapType():
            return _all(F.map_values(read), lambda each: inner(each, type.valueType, as_read.valueType))
    if isinstance(type, NullType):
        return read.isNull()
    text = _text(read, as_read)
    is_stated = rules.notation.states(type)
    exact = _stated_value(text, type, rules).isNotNull() if is_stated else _is_exact(text, type, rules)
    return F.coalesce(exact, F.lit(False)) | read.isNull()


@dataclass(frozen=True)
class _Conversion:
    message: str
    rules: Rules


def _converted(read: Column, type: DataType, as_read: DataType, conversion: _Conversion) -> Column:
    if type == as_read:
        return read
    match type, as_read:
        case StructType(), StructType():
            fields = [
                _converted(read.getField(have.name), want.dataType, have.dataType, conversion).alias(want.name)
                for want, have in zip(type, as_read, strict=True)
            ]
            return F.when(read.isNotNull(), F.struct(*fields))
        case ArrayType(), ArrayType():
            return F.transform(read, lambda each: _converted(each, type.elementType, as_read.elementType, conversion))
        case MapType(), MapType():
            return F.transform_values(
                read, lambda _, each: _converted(each, type.valueType, as_read.valueType, conversion)
            )
    if isinstance(type, NullType):
        return F.lit(None)
    text, rules = _text(read, as_read), conversion.rules
    is_stated = rules.notation.states(type)
    value = _stated_value(text, type, rules) if is_stated else F.when(_is_exact(text, type, rules), _value(text, type))
    return F.when(read.isNotNull(), F.coalesce(value, F.raise_error(F.lit(conversion.message))))


def _text(read: Column, as_read: DataType) -> Column:
    return read if isinstance(as_read, StringType) else read.cast(StringType())


def _stated_value(text: Column, type: DataType, rules: Rules) -> Column:
    """Return the value of a text in the notation that options state; NULL if it is not exactly one."""
    plain = F.when(_is_exact(text, type, rules), _value(text, type))
    value = rules.notation.value(text, type, plain)
    return once(value, lambda each: F.when(is_known_year(each, type), each))


def _all(elements: Column, condition: Callable[[Column], Column]) -> Column:
    return F.coalesce(F.forall(elements, condition), F.lit(True))


def _value(text: Column, type: DataType) -> Column:
    if isinstance(type, DateType):
        text = F.substring(text, 1, _LENGTH_OF_DAY)
    elif isinstance(type, TimestampType):  # Spark's cast needs an offset with minutes
        with_minutes = F.regexp_replace(text, r"^(.{10}[T ].*[+-]\d{2})$", "$1:00")
        text = F.when(F.length(text) == F.lit(_LENGTH_OF_TIME), text).otherwise(with_minutes)
    return text.try_cast(type)


def _is_exact(text: Column, type: DataType, rules: Rules) -> Column:
    """Return a column that is true if a type represents a text exactly. The usual notation is tried first."""
    exact = _is_exact_notation(text, type)
    if rules.refuses_marks and isinstance(type, NumericType):
        exact &= ~text.rlike(f"^{MARKED}")
    return F.coalesce(is_usual(text, type), F.lit(False)) | exact


def is_usual(text: Column, type: DataType) -> Column:
    """Return a column that is true if a text is the usual notation of a value, without regular expressions.

    The usual notation is the one that Spark writes, or `2026-01-31 10:30:00` for a time.
    """
    match type:
        case IntegralType() | DecimalType() | DoubleType():
            return text.try_cast(type).cast(StringType()) == text
        case DateType():
            return (text.try_cast(type).cast(StringType()) == text) & (text >= F.lit(FIRST_YEAR))
        case TimestampType() | TimestampNTZType():
            marks = [(5, "-"), (8, "-"), (14, ":"), (17, ":")]
            has_marks = reduce(and_, [F.substring(text, position, 1) == F.lit(mark) for position, mark in marks])
            has_marks &= F.substring(text, _LENGTH_OF_TIME, 1).between("0", "9")  # a cast reads `5Z` and `5 `, too
            is_year = text >= F.lit(FIRST_YEAR)
            return (F.length(text) == F.lit(_LENGTH_OF_TIME)) & has_marks & is_year & text.try_cast(type).isNotNull()
    return F.lit(False)


def _is_exact_notation(text: Column, type: DataType) -> Column:
    value = _value(text, type)
    match type:
        case DecimalType():
            plain = rf"^[+-]?(\d+(\.\d{{0,{type.scale}}}0*)?|\.(?=\d)\d{{0,{type.scale}}}0*)\z"
            is_value = text.rlike(plain) & value.isNotNull()
            return is_value | _interpreted(text, lambda each: _is_same_number(each, _value(each, type)))
        case DoubleType():
            longer = _interpreted(text, lambda each: _is_exact_double(each, _value(each, type)))
            return _is_short(text, DOUBLE_DIGITS) | longer | text.isin(*_NOT_FINITE)
        case FloatType():
            longer = _interpreted(text, lambda each: _is_exact_float(each, _value(each, type)))
            return _is_short(text, _DIGITS_OF_FLOAT) | longer | text.isin(*_NOT_FINITE)
        case IntegralType():
            notation = r"[+-]?\d+"
        case DateType():
            notation = rf"{DAY}([T ]{_MIDNIGHT})?"
        case TimestampType():
            notation = rf"({DAY}|{MOMENT})"
        case _:
            notation = rf"{DAY}([T ]{TIME})?"
    is_value = is_known_year(value, type) if isinstance(type, TIMES) else value.isNotNull()
    return text.rlike(rf"^{notation}\z") & is_value


def _interpreted(text: Column, condition: Callable[[Column], Column]) -> Column:
    """Return a condition on a text that Spark interprets.

    Spark takes longer to compile such a condition than most loads take, and few values need it.
    """
    return F.exists(F.array(text), condition)


def _is_short(text: Column, digits: int) -> Column:
    """Return a column that is true if a text is a number without exponent and has at most this many characters."""
    return (F.length(text) <= digits) & text.rlike(rf"^[+-]?{_MANTISSA}\z")


def _is_same_number(text: Column, value: Column) -> Column:
    return text.rlike(rf"^{_NUMBER}\z") & (_digits(text) == _digits(value.cast(StringType()))) & value.isNotNull()


def _is_exact_double(text: Column, value: Column) -> Column:
    """Return a column that is true if a text has the digits that identify a DOUBLE.

    Java 17 writes more digits than needed for a few values. So a text is accepted if its digits are those of Java,
    rounded. Java rounds large whole numbers already: their digits are those of the BIGINT.
    """
    is_short = (F.length(text) <= DOUBLE_DIGITS) & ~text.rlike("[eE]")
    is_whole = (F.abs(value) >= F.lit(FIRST_WHOLE)) & (F.abs(value) < F.lit(END_OF_BIGINT))
    written = F.when(is_whole, value.cast(LongType()).cast(StringType())).otherwise(value.cast(StringType()))
    stated, stored = _digits(text), _digits(written)
    is_rounded = (F.abs(value) >= F.lit(_LEAST_DOUBLE)) & (stated != F.lit("")) & _is_rounded(stated, stored)
    is_finite = F.abs(value) < F.lit(math.inf)
    return F.coalesce(
        text.rlike(rf"^{_NUMBER}\z") & is_finite & (is_short | (stated == stored) | is_rounded), F.lit(False)
    )


def _is_rounded(stated: Column, stored: Column) -> Column:
    """Return a column that is true if the stated digits are the stored ones, rounded; a half goes up or down."""
    missing = F.length(stored) - F.length(stated)
    padded = F.concat(stated, F.repeat(F.lit("0"), missing))
    whole = DecimalType(20, 0)
    rounded, written = padded.try_cast(whole), stored.try_cast(whole)
    difference = F.least(F.abs(rounded - written), F.abs(rounded * 10 - written))
    return (missing > 0) & (difference * 2 <= F.pow(F.lit(10), missing))


def _is_exact_float(text: Column, value: Column) -> Column:
    """Return a column that is true if a text is a FLOAT that is rounded to at most nine digits, or has all digits."""
    double, stated = value.cast(DoubleType()), _digits(text)
    number = F.length(stated)
    is_rounded = (number <= _DIGITS_OF_FLOAT) & (F.abs(double) >= F.lit(_LEAST_FLOAT))
    for digits in range(_DIGITS_OF_FLOAT + 1, _MOST_OF_FLOAT + 1):
        written = F.format_string(f"%.{digits - 1}e", double)
        is_rounded |= (number == digits) & (stated == _digits(written))
    as_double = text.try_cast(DoubleType())
    is_same = (as_double == double) & _is_exact_double(text, as_double)
    is_finite = F.abs(double) < F.lit(math.inf)
    return F.coalesce(text.rlike(rf"^{_NUMBER}\z") & is_finite & (is_rounded | is_same), F.lit(False))


def _digits(number: Column) -> Column:
    """Return the digits of a number without sign, point, exponent, and the zeros at both ends."""
    return F.regexp_replace(F.regexp_replace(number, r"[eE].*$|[+.-]", ""), "^0+|0+$", "")
