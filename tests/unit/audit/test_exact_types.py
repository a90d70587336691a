"""Types of Iceberg that store every value of another type."""

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    UUIDType,
)

from lakehouse.iceberg.exact_types import inexact_columns


def struct(*types: IcebergType, first_id: int = 2) -> StructType:
    return StructType(*(NestedField(first_id + number, f"f{number}", type) for number, type in enumerate(types)))


@pytest.mark.parametrize(
    ("have", "wanted", "fits"),
    [
        (IntegerType(), LongType(), True),
        (IntegerType(), DoubleType(), True),
        (FloatType(), DoubleType(), True),
        (DecimalType(9, 2), DecimalType(12, 4), True),
        (DateType(), TimestamptzType(), True),
        (StringType(), UUIDType(), True),
        (BinaryType(), FixedType(16), True),
        (struct(IntegerType()), struct(LongType(), first_id=7), True),
        (ListType(2, IntegerType()), ListType(3, LongType()), True),
        (MapType(2, StringType(), 3, FloatType()), MapType(4, StringType(), 5, DoubleType()), True),
        (DoubleType(), IntegerType(), False),
        (DoubleType(), FloatType(), False),
        (LongType(), DoubleType(), False),
        (LongType(), IntegerType(), False),
        (DecimalType(9, 2), DecimalType(9, 1), False),
        (DecimalType(9, 2), DecimalType(9, 3), False),
        (TimestamptzType(), DateType(), False),
        (StringType(), IntegerType(), False),
        (struct(DoubleType()), struct(IntegerType()), False),
        (struct(IntegerType()), struct(IntegerType(), IntegerType()), False),
    ],
)
def test_a_type_stores_every_value_of_another_one(have: IcebergType, wanted: IcebergType, fits: bool) -> None:
    schemas = (Schema(NestedField(1, "v", type)) for type in (have, wanted))
    assert inexact_columns(*schemas) == ([] if fits else ["v"])
