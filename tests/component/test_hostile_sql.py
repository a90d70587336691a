"""SQL in a pipeline on Spark's side: its functions, and the refusals of a session if validation fails."""

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from sluice.checks.base import CheckQuery
from sluice.contracts.spark_jobs import ScanSpec, ScanTarget
from sluice.sql.functions import ALLOWED, CLAUSES, OPERATORS, REFUSED
from sluice.sql.tokens import tokens
from spark_jobs.scan import scan_all
from tests.harness.ordinary_sql import ORDINARY_QUERIES


def test_every_function_of_spark_is_allowed_or_refused(spark: SparkSession) -> None:
    """A function is refused until somebody has examined it. This test lists the functions to examine."""
    listed = {row[0].lower() for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()} - OPERATORS
    assert listed - ALLOWED - REFUSED.keys() == set()
    assert not ALLOWED & REFUSED.keys()


def test_no_function_is_allowed_that_spark_does_not_have(spark: SparkSession) -> None:
    listed = {row[0].lower() for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    syntax = {"cast", "collate", "extract", "position", "struct", "overlay", "trim", "substring"}
    missing = ALLOWED - listed - syntax - CLAUSES
    for name in missing:  # the list lacks table functions
        with pytest.raises(AnalysisException) as raised:
            spark.sql(f"SELECT * FROM {name}('x', 'y', 'z', 'a', 'b', 'c', 'd', 'e')").collect()
        assert "UNRESOLVABLE_TABLE_VALUED_FUNCTION" not in str(raised.value), name


@pytest.mark.parametrize("text", ORDINARY_QUERIES)
def test_what_is_called_an_ordinary_query_is_one_to_spark(spark: SparkSession, text: str) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    parser.parsePlan(text)


@pytest.mark.parametrize(
    ("text", "strings"),
    [
        ("SELECT 1 -- \\\n'\n, 'x' -- '", ["x"]),
        ("SELECT 1 /* /* */ ' */ , 'x' -- '", ["x"]),
        ("SELECT r'\\', 'x'", ["\\", "x"]),
        ("SELECT '\\'', 'x'", ["'", "x"]),
        ("SELECT 'a' 'b'", ["ab"]),
    ],
)
def test_spark_ends_quotes_and_comments_where_validation_does(
    spark: SparkSession, text: str, strings: list[str]
) -> None:
    row = spark.sql(text).collect()[0]
    assert [value for value in row if isinstance(value, str)] == strings
    texts = [token.text for token in tokens(text) if token.kind == "text"]
    assert len(texts) == len(strings) or texts == ["'a'", "'b'"]


@pytest.mark.parametrize("query", ["SELECT * FROM text.`{file}`", "SELECT * FROM csv.`file:{file}`"])
def test_a_session_reads_no_path_as_a_table(spark: SparkSession, query: str, tmp_path: Path) -> None:
    """Even if a hostile query passed validation, the scan that contains it never reads the file."""
    file = tmp_path / "secret.txt"
    file.write_text("very-secret\n")
    hostile = CheckQuery(user_query=query.format(file=file))
    target = ScanTarget(table="i.x", types={}, queries={"key": hostile}, views=[])
    spec = ScanSpec(spark_catalog="nessie", main="main", targets=[target], sample_rows=5, last_attempt=True, answer="")
    answer = scan_all(spark, spec).scans["key"]
    assert answer.error and not answer.sample
    assert "very-secret" not in answer.model_dump_json()


def test_a_session_replaces_no_variable(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spark.sql("SELECT '${env:HOME}' AS a, '${spark.app.name}' AS b").collect()[0].asDict() == {
        "a": "${env:HOME}",
        "b": "${spark.app.name}",
    }


def test_a_pipe_and_a_script_are_no_surprise(spark: SparkSession) -> None:
    """Spark does accept the syntax that validation therefore refuses."""
    spark.sql("SELECT * FROM range(1) |> WHERE id = 0").collect()
    with pytest.raises((ParseException, AnalysisException)):
        spark.sql("SELECT * FROM my_udtf(1)").collect()
