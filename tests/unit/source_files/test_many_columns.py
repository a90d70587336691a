"""Columns that one expression converts or checks."""

from pyspark.sql.types import LongType, StructField, StructType

from spark_jobs.values.many_columns import _groups


def test_columns_have_one_expression_only_if_all_that_decides_it_is_the_same() -> None:
    optional, required = StructType([StructField("x", LongType())]), StructType([StructField("x", LongType(), False)])
    fields = [
        StructField("a", optional),
        StructField("b", required),
        StructField("c", optional, nullable=False),
        StructField("d", optional),
        StructField("e", required),
        StructField("f", optional),
        StructField("g", optional),
    ]
    groups = _groups(fields, lambda field: field.name < "f")
    assert [[field.name for field in group] for group in groups] == [["a", "d"], ["b", "e"], ["f", "g"]]
