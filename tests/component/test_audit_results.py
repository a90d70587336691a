"""The records of ended runs: the whole report next to the lake, the verdicts in a table."""

import json
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from lakehouse.audit import results_table as audit_results_table
from lakehouse.audit.results_table import BRANCH, TABLE, AuditResultsTable
from tests.harness.lake import LakeReader
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness


@pytest.mark.slow
@pytest.mark.warm
def test_every_run_that_ended_can_be_queried(
    system: SystemHarness, lake: LakeReader, tmp_path: Path, spark: SparkSession
) -> None:
    source = csv_file(tmp_path / "in.csv", [{"id": 1, "name": "a"}, {"id": None, "name": "b"}])
    good = system.run(pipeline("noted", source, "[row_count: 1, not_null: name]")).json
    bad = system.run(pipeline("noted-bad", source, "[row_count: 1, not_null: id]")).json
    assert (good["outcome"], bad["outcome"]) == ("published", "quarantined")
    report = json.loads(Path(urlsplit(bad["report"]).path).read_text())
    assert [(each["check"], each["verdict"]) for each in report["checks"]] == [
        ("row_count", "pass"),
        ("not_null", "fail"),
    ]

    asked = "SELECT check_name, verdict, outcome FROM results WHERE pipeline = 'noted-bad' ORDER BY check_name"
    output = system.command("results", asked, "--json")
    assert output.json["rows"] == [
        {"check_name": "not_null", "verdict": "fail", "outcome": "quarantined"},
        {"check_name": "row_count", "verdict": "pass", "outcome": "quarantined"},
    ]
    assert "noted" in system.command("results").out
    for wrong in ("SELECT", "SELECT * FROM nobody"):
        output = system.command("results", wrong)
        assert output.code == 2 and output.err.startswith("sluice: "), output.err

    namespace, table = TABLE.split(".")
    selected = spark.sql(
        f"SELECT count(*) FROM nessie.{namespace}.`{table}@{BRANCH}` WHERE run_id = '{good['run_id']}'"
    )
    assert selected.collect()[0][0] == 2
    assert not lake.rows(TABLE)  # main does not have the table
    lake.discard(bad["branch"])


def test_the_table_of_results_does_not_grow_with_every_run(tmp_path: Path) -> None:
    results_table = AuditResultsTable(MemoryCatalog(), tmp_path.as_uri(), {})
    for each in range(60):
        results_table.record(f"run-{each}", [{"run_id": f"run-{each}", "pipeline": "p"}], again=False)
    rows = results_table.read()
    assert rows and 20 <= len(rows.metadata.snapshots) <= 41  # the number of snapshots is limited
    results_table.record("run-7", [{"run_id": "run-7", "pipeline": "p"}], again=True)  # as after a lost answer
    rows = results_table.read()
    assert rows and rows.scan().to_arrow().num_rows == 60


def test_a_table_of_an_earlier_release_gets_the_columns_of_waivers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, until = MemoryCatalog(), datetime(2026, 12, 1, tzinfo=timezone.utc)
    results_table = AuditResultsTable(catalog, tmp_path.as_uri(), {})
    with monkeypatch.context() as earlier:
        earlier.setattr(audit_results_table, "_LATER", ())
        results_table.record("run-1", [{"run_id": "run-1", "pipeline": "p"}], again=False)
    before = results_table.read_rows()
    assert before and before["waived_by"].to_pylist() == [None], "a query names the column, also before a run adds it"
    assert set(before.column_names) == {field.name for field in audit_results_table._schema().fields}
    waived = {"waived_by": "ana", "waived_until": until, "waiver_reason": "late feed", "waiver_run_id": "run-2"}
    for each in ("run-2", "run-3"):
        results_table.record(each, [{"run_id": each, "pipeline": "p", **waived}], again=False)
    table, rows = results_table.read(), results_table.read_rows()
    assert table and rows and len(table.metadata.schemas) == 2, "columns are added once"
    by_run = {row["run_id"]: row for row in rows.to_pylist()}
    assert by_run["run-1"]["waived_by"] is None
    assert {name: by_run["run-3"][name] for name in waived} == waived
