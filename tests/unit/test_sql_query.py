"""SQL over the audit results: it sees the table `results`, and nothing else of the worker's machine."""

from pathlib import Path

import pyarrow as pa
import pytest

from lakehouse import sql_query
from lakehouse.sql_query import run_sql
from sluice.contracts.lake_queries import MAX_RESULT_BYTES
from sluice.errors import InvalidInput

RESULTS = pa.table({"run_id": ["a", "b"], "columns": [["x"], None], "failed_rows": [0, 3]})


def test_a_query_returns_columns_and_rows() -> None:
    answer = run_sql(
        RESULTS, "SELECT run_id, columns, sum(failed_rows) AS bad FROM results GROUP BY ALL ORDER BY 1", "1GB"
    )
    assert answer.columns == ["run_id", "columns", "bad"]
    assert answer.rows == [["a", ["x"], "0"], ["b", None, "3"]]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{file}')",
        "COPY results TO '{file}'",
        "SELECT * FROM results_of_python",
        "SET enable_external_access = true",
        "ATTACH '{file}'",
        "INSTALL httpfs",
    ],
)
def test_a_query_reaches_nothing_else(sql: str, tmp_path: Path) -> None:
    results_of_python = RESULTS
    file = tmp_path / "file.csv"
    file.write_text("secret\n")
    with pytest.raises(InvalidInput):
        run_sql(results_of_python, sql.format(file=file), "1GB")
    assert file.read_text() == "secret\n"


@pytest.mark.parametrize(("sql", "message"), [("SELECT", "SELECT clause"), ("", "returns no rows")])
def test_what_is_no_query_is_refused_with_a_reason(sql: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        run_sql(RESULTS, sql, "1GB")


def test_a_value_in_a_later_row_that_cannot_be_cast_is_the_user_s_error() -> None:
    rows = pa.table({"observed": ["1"] * 5000 + ["x"]})
    with pytest.raises(InvalidInput, match="Conversion Error: Could not convert string 'x'") as raised:
        run_sql(rows, "SELECT observed::INT FROM results", "1GB")
    assert "\n" not in str(raised.value)


def test_a_result_that_temporal_cannot_carry_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"larger than 1 MiB.*LIMIT"):
        run_sql(RESULTS, f"SELECT repeat('x', {MAX_RESULT_BYTES}) FROM results", "1GB")


def test_a_query_that_takes_too_long_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_query, "_LIMIT", 0.2)
    with pytest.raises(InvalidInput, match="took longer than"):
        run_sql(RESULTS, "SELECT count(*) FROM range(100000000000) AS r, results", "1GB")
