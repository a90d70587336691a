"""A quarantine table keeps bad rows as they are, although the types of the table changed since it was made."""

import pytest
from pyspark.sql import SparkSession

from sluice.errors import InvalidInput
from spark_jobs.quarantine_rows import append_to_quarantine
from tests.harness.audited_table import Table


def keep(spark: SparkSession, table: Table, value: str) -> None:
    """Append a row with this value to the table."""
    append_to_quarantine(spark, spark.sql(f"SELECT {value} AS v"), table.name, "nessie")


@pytest.mark.parametrize(
    ("before", "value", "read"),
    [
        ("CAST(0.5 AS FLOAT)", "CAST(0.1 AS DOUBLE)", "0.1"),
        ("1", "3000000000L", "3000000000"),
        ("1.25", "CAST(12345.25 AS DECIMAL(7,2))", "12345.25"),
        ("named_struct('a', CAST(0.5 AS FLOAT))", "named_struct('a', CAST(0.1 AS DOUBLE))", "{0.1}"),
        ("array(CAST(0.5 AS FLOAT))", "array(CAST(0.1 AS DOUBLE))", "[0.1]"),
        ("map('k', CAST(0.5 AS FLOAT))", "map('k', CAST(0.1 AS DOUBLE))", "{k -> 0.1}"),
        ("1", "CAST(2.0 AS DOUBLE)", "2"),
        ("CAST(0.5 AS DOUBLE)", "1", "1.0"),
        ("DATE'2026-01-31'", "TIMESTAMP'2026-02-01 00:00:00'", "2026-02-01"),
    ],
)
def test_a_value_stays_the_same(spark: SparkSession, table: Table, before: str, value: str, read: str) -> None:
    table.sql("DROP TABLE IF EXISTS {t}")
    for each in (before, value):
        keep(spark, table, each)
    assert read in [row[0] for row in spark.sql(f"SELECT CAST(v AS STRING) FROM {table.name}").collect()]


@pytest.mark.parametrize(
    ("before", "value", "type"),
    [
        ("1", "CAST(2.5 AS DOUBLE)", "int"),
        ("DATE'2026-01-31'", "TIMESTAMP'2026-02-01 10:30:00'", "date"),
        ("1.25", "CAST(1.125 AS DECIMAL(4,3))", "decimal(3,2)"),
        ("named_struct('a', 1)", "named_struct('a', CAST(2.5 AS DOUBLE))", "struct<a:int>"),
    ],
)
def test_a_value_that_would_change_is_refused(
    spark: SparkSession, table: Table, before: str, value: str, type: str
) -> None:
    table.sql("DROP TABLE IF EXISTS {t}")
    keep(spark, table, before)
    with pytest.raises(InvalidInput) as raised:
        keep(spark, table, value)
    assert str(raised.value).startswith(f"{table.name}.v: 1 value of type ")
    assert f"cannot be stored as {type} without being rounded or cut: requeue or delete the rows" in str(raised.value)
    assert spark.table(table.name).count() == 1
