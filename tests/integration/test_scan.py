"""The audit's scan: each check's question, answered from real rows."""

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakehouse.nessie import Catalogue
from lakehouse.tables import TableState
from sluice.checks import REGISTRY, expand
from sluice.checks.base import Check, Finding
from sluice.checks.nulls import NotNull
from sluice.jobs import ScanAnswer, ScanSpec, ScanTarget
from spark_jobs.scan import _Target, scan_all
from tests.integration.conftest import BRANCH


class Table:
    """A table with rows of an earlier run and rows of this one, and the questions about them."""

    def __init__(self, spark: SparkSession, catalogue: Catalogue, name: str) -> None:
        self._spark, self._catalogue, self._name = spark, catalogue, name

    def fill(self, columns: str, before: list[str], added: list[str]) -> None:
        """Make the table, with rows written as SQL values."""
        self._spark.sql(f"CREATE TABLE {self._name} ({columns})")
        for rows in before, added:
            self._base = self._catalogue.table(BRANCH, self._name)
            if rows:
                self._spark.sql(f"INSERT INTO {self._name} VALUES {', '.join(rows)}")

    def state(self) -> TableState:
        place = self._catalogue.table(BRANCH, self._name)
        assert place
        return TableState.load(place, self._base, {})

    def ask(self, written: dict[str, Any]) -> tuple[Finding | str, ScanAnswer]:
        """Ask one check of the rows; return the finding, or the error, and the answer."""
        fields = expand(written)[0]
        check = REGISTRY[fields["check"]].model_validate(fields)
        answer = self.scan([check])[0]
        return answer.error or check.judge(answer.numbers), answer

    def scan(self, checks: list[Check], insist: bool = False) -> list[ScanAnswer]:
        state = self.state()
        scans = {str(index): check.scan(state.types) for index, check in enumerate(checks)}
        whole = checks[0].scope == "table"
        target = ScanTarget(
            table=self._name,
            types=state.types,
            whole_table=whole,
            added_paths=None if whole else state.added_paths(),
            scans=scans,
        )
        spec = ScanSpec(catalogue="nessie", targets=[target], sample_rows=5, insist=insist, answer="")
        found = scan_all(self._spark, spec).scans
        return [found[key] for key in scans]


@pytest.fixture
def table(spark: SparkSession, stack: dict[str, str], request: pytest.FixtureRequest) -> Table:
    return Table(spark, Catalogue(stack["NESSIE_URI"]), f"i.{request.node.name.split('[')[0]}")


def found(table: Table, written: dict[str, Any]) -> tuple[bool, Any, int | None]:
    finding, answer = table.ask(written)
    assert isinstance(finding, Finding), finding
    if finding.failed_rows:
        assert answer.sample
    return finding.passed, finding.observed, finding.failed_rows


def test_only_added_rows_count_unless_the_table_is_asked(table: Table) -> None:
    table.fill("id INT", before=["(NULL)", "(1)", "(1)"], added=["(2)", "(3)"])
    assert found(table, {"not_null": "id"}) == (True, 0, 0)
    assert found(table, {"not_null": {"column": "id", "scope": "table"}}) == (False, 1, 1)
    assert found(table, {"row_count": {"min": 2, "max": 2}}) == (True, 2, None)
    assert found(table, {"row_count": {"min": 5, "max": 5, "scope": "table"}}) == (True, 5, None)
    assert found(table, {"unique": "id"}) == (True, 0, 0)
    assert found(table, {"unique": {"column": "id", "scope": "table"}}) == (False, 2, 2)


def test_a_key_that_main_has_already_is_not_unique(table: Table) -> None:
    table.fill("id INT, part INT", before=["(1, 1)", "(2, 1)"], added=["(2, 1)", "(NULL, 1)", "(NULL, 1)"])
    assert found(table, {"unique": "id"}) == (False, 1, 1)
    assert found(table, {"unique_combination_of_columns": ["id", "part"]}) == (False, 3, 3)


def test_accepted_values_and_the_missing_ones(table: Table) -> None:
    table.fill("kind STRING, n INT", before=[], added=["('a', 1)", "('b''s', 2)", "(NULL, 3)", "('x', 3)"])
    assert found(table, {"accepted_values": {"column": "kind", "values": ["a", "b's", "x"]}}) == (True, 0, 0)
    assert found(table, {"accepted_values": {"column": "kind", "values": ["a", "x"]}}) == (False, 1, 1)
    assert found(table, {"accepted_values": {"column": "n", "values": [1, 2, 3], "all_present": True}})[0]
    missing = found(table, {"accepted_values": {"column": "n", "values": [1, 2, 3, 4], "all_present": True}})
    assert missing == (False, "0 other, missing: 4", 0)


def test_ranges_of_numbers_dates_and_texts(table: Table) -> None:
    table.fill(
        "n INT, x DOUBLE, d DATE, s STRING",
        before=[],
        added=[
            "(1, 0.5, DATE'2024-01-01', 'a')",
            "(5, double('NaN'), DATE'2024-02-01', 'c')",
            "(NULL, NULL, NULL, NULL)",
        ],
    )
    assert found(table, {"accepted_range": {"column": "n", "min": 1, "max": 5}}) == (True, 0, 0)
    assert found(table, {"accepted_range": {"column": "n", "min": 1, "max": 5, "inclusive": False}}) == (False, 2, 2)
    assert found(table, {"accepted_range": {"column": "x", "min": 0}}) == (False, 1, 1)  # NaN lies in no range
    assert found(table, {"accepted_range": {"column": "d", "max": "2024-01-31"}}) == (False, 1, 1)
    assert found(table, {"accepted_range": {"column": "s", "min": "a", "max": "b"}}) == (False, 1, 1)


def test_strange_column_names_are_quoted(table: Table) -> None:
    table.fill("`a``b` INT, `o'x` INT, `select` INT, `ein.aus` INT", before=[], added=["(1, NULL, 2, NULL)"])
    for column, nulls in (("a`b", 0), ("o'x", 1), ("select", 0), ("ein.aus", 1)):
        assert found(table, {"not_null": column}) == (nulls == 0, nulls, nulls)


def test_a_query_returns_the_bad_rows_and_can_only_read(table: Table) -> None:
    table.fill("id INT", before=[], added=["(1)", "(2)"])
    name = table._name
    assert found(table, {"sql": f"SELECT * FROM {name} WHERE id > 1 -- the end"}) == (False, 1, 1)
    assert found(table, {"sql": f"WITH a AS (SELECT 1) SELECT * FROM {name} WHERE id > 2;"}) == (True, 0, 0)
    for attempt in (f"DELETE FROM {name}", f"1) ; DROP TABLE {name} --", "SELECT"):
        error, _ = table.ask({"sql": attempt})
        assert isinstance(error, str) and error
    assert found(table, {"row_count": {"min": 2, "scope": "table"}})[0]


def test_what_may_pass_fails_the_job_until_the_last_try(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise PySparkException("Failed to execute GET request against Nessie")

    table.fill("id INT", before=[], added=["(1)"])
    monkeypatch.setattr(_Target, "_aggregated", away)
    check = NotNull(column="id")
    with pytest.raises(PySparkException):
        table.scan([check], insist=False)
    assert "Nessie" in table.scan([check], insist=True)[0].error


def test_a_question_without_an_answer_spoils_no_other(table: Table) -> None:
    table.fill("id INT, kind STRING", before=[], added=["(1, 'x')"])
    fields: list[dict[str, Any]] = [
        {"check": "accepted_values", "column": "id", "values": ["no number"]},
        {"check": "not_null", "column": "kind"},
    ]
    broken, whole = table.scan([REGISTRY[each["check"]].model_validate(each) for each in fields])
    assert "no number" in broken.error
    assert not whole.error and whole.numbers["failed"] == 0
