"""Spark scans tables and checks at the limits: 10,000 columns and 20,000 accepted values."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakehouse.open_catalog import open_catalog
from sluice.settings import read_settings
from tests.harness.audited_table import Table, check_of

pytestmark = pytest.mark.matrix
_COLUMNS = 10_000


@pytest.fixture
def table(spark: SparkSession, stack: dict[str, str], tmp_path: Path) -> Table:
    return Table(spark, open_catalog(read_settings(stack)), "i.wide", tmp_path)


def test_ten_thousand_columns_and_twenty_thousand_values(table: Table) -> None:
    row = ", ".join(map(str, range(_COLUMNS - 1)))
    table.fill(", ".join(f"c{number} INT" for number in range(_COLUMNS)), [], [f"({row}, NULL)"])
    checks = [check_of({"not_null": f"c{number}"}) for number in range(_COLUMNS - 1_000, _COLUMNS)]
    for values, column in ((range(20_000), "c9000"), (range(10_000, 30_000), "c9001")):
        checks.append(check_of({"accepted_values": {"column": column, "values": [*values]}}))
    for verdicts in (table.by_spark(checks), table.by_duckdb(checks)):
        bad = [(each.columns, each.verdict, each.failed_rows) for each in verdicts if each and each.verdict != "pass"]
        assert len(verdicts) == len(checks)
        assert bad == [(["c9999"], "fail", 1), (["c9001"], "fail", 1)]
