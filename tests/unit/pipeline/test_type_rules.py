"""The types of files that a schema or a table of other types can take."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_jobs.values.type_rules import fits, is_readable


def _struct(type: DataType) -> StructType:
    return StructType([StructField("n", type)])


@pytest.mark.parametrize(
    ("have", "wanted", "has_all"),
    [
        (DecimalType(20, 0), LongType(), False),  # whole numbers of 64 bits without a sign
        (DecimalType(19, 0), LongType(), False),
        (DecimalType(18, 0), LongType(), True),
        (DecimalType(10, 0), IntegerType(), False),
        (DecimalType(9, 0), IntegerType(), True),
        (DecimalType(9, 2), IntegerType(), False),
        (LongType(), DecimalType(20, 0), True),
        (LongType(), DecimalType(19, 0), False),
        (ByteType(), ShortType(), True),
        (ShortType(), IntegerType(), True),
        (IntegerType(), LongType(), True),
        (LongType(), IntegerType(), False),
        (IntegerType(), DoubleType(), True),
        (LongType(), DoubleType(), False),
    ],
)
def test_a_type_fits_if_the_other_has_each_of_its_values(have: DataType, wanted: DataType, has_all: bool) -> None:
    assert fits(have, wanted) == has_all
    for nested in (_struct, ArrayType, lambda type: MapType(StringType(), type)):
        assert is_readable(nested(have), nested(wanted)) == has_all
    assert is_readable(have, wanted), "a number is cast, and stays the same or is refused"


@pytest.mark.parametrize(
    ("have", "wanted", "is_good"),
    [
        (DateType(), IntegerType(), False),
        (IntegerType(), DateType(), False),
        (TimestampType(), LongType(), False),
        (LongType(), StringType(), False),
        (DateType(), TimestampNTZType(), True),
        (TimestampNTZType(), DateType(), True),
        (BinaryType(), StringType(), True),
        (ArrayType(BinaryType()), ArrayType(StringType()), True),
        (_struct(DateType()), _struct(TimestampNTZType()), True),
        (_struct(DateType()), _struct(TimestampType()), False),
        (_struct(TimestampNTZType()), _struct(DateType()), False),
        (_struct(DateType()), _struct(IntegerType()), False),
        (_struct(DateType()), StringType(), False),
    ],
)
def test_a_column_of_parquet_is_read_as_another_type(have: DataType, wanted: DataType, is_good: bool) -> None:
    assert is_readable(have, wanted) == is_good
