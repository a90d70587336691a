"""A published run: its traces on main, in its report and in the commit."""

import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse.nessie.rest_v2 import NessieRest
from lakehouse.open_catalog import open_catalog
from sluice.settings import read_settings
from tests.harness.command_line import PROGRAM
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness

CITIES = [{"id": 1, "city": "Oslo", "people": 700000}, {"id": 2, "city": "Bergen", "people": 290000}]


@pytest.mark.cold
@pytest.mark.sentinel("a cold run")
def test_one_whole_run(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    source = csv_file(tmp_path / "cities.csv", CITIES)
    checks = (
        "[not_null: [id, city], row_count: {min: 2, max: 2}, accepted_range: {column: people, min: 1}, unique: [id]]"
    )
    ended = system.run_command(pipeline("cities", source, checks))
    result = ended.json
    assert (ended.code, result["outcome"]) == (0, "published"), ended.err
    assert result["tables"]["t.cities"].pop("added_bytes") > 0
    assert result["tables"] == {
        "t.cities": {
            "operation": "append",
            "added_rows": 2,
            "deleted_rows": 0,
            "deletes_by_value": False,
            "rows": None,
            "added_files": 1,
            "removed_files": 0,
            "distribution": "none",
            "total_rows": 2,
            "created": True,
            "hint": "",
        }
    }
    assert sorted(lake.rows("t.cities"), key=lambda row: row["id"]) == CITIES
    verdicts = {(c["check"], *c["columns"]): (c["verdict"], c["answered_by"]) for c in result["checks"]}
    assert verdicts == {
        ("not_null", "id"): ("pass", "metadata"),
        ("not_null", "city"): ("pass", "metadata"),
        ("row_count",): ("pass", "metadata"),
        ("accepted_range", "people"): ("pass", "metadata"),
        ("unique", "id"): ("pass", "duckdb"),
    }
    assert result["main_after"] == lake.head()
    assert not lake.branches("cities")

    commit = lake.commit(result["main_after"])
    assert commit["parentCommitHashes"] == [result["main_before"], result["audited_hash"]]
    properties = {key: values[0] for key, values in commit["allProperties"].items()}
    assert properties["sluice.run-id"] == result["run_id"]
    assert properties["sluice.workflow-id"] == result["workflow_id"]
    assert properties["sluice.audited-hash"] == result["audited_hash"]
    assert properties["sluice.pipeline"] == "cities"
    assert properties["sluice.verdicts"] == "5 pass"
    assert commit["authors"] == [properties["sluice.starter"]]

    again = system.run_command(pipeline("cities", source, checks))
    assert again.code == 0
    assert (again.json["outcome"], again.json["cause"]) == ("skipped", "already_published")
    assert result["workflow_id"] in again.json["reason"] and "--again" in again.json["reason"]
    assert lake.head() == result["main_after"]

    meant = system.run_command(pipeline("cities", source), "--again")
    assert meant.code == 0, meant.err
    assert len(lake.rows("t.cities")) == 4
    assert meant.json["tables"]["t.cities"]["total_rows"] == 4


def test_two_starts_at_once_are_one_run(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    file = system.file(pipeline("twins", csv_file(tmp_path / "twins.csv", CITIES)))
    command = [sys.executable, str(PROGRAM), str(file), "--json"]
    both = [
        subprocess.Popen(command, cwd=tmp_path, env=dict(system.environment), stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    ended = [process.communicate(timeout=240)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert ended[0] == ended[1]
    assert len(lake.rows("t.twins")) == 2


def test_a_run_that_another_overtook_writes_again_from_the_new_main(
    system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    def load(name: str, number: int, more: str = "") -> str:
        source = csv_file(tmp_path / f"{name}.csv", [{"id": number}])
        return pipeline(name, source, "[row_count: 1]", more).replace(f"t.{name}", "t.overtaken")

    slow = system.start(load("slower", 1, "approval: {timeout: 1h}"))
    system.wait_for_stage(slow, "waiting for approval")
    assert system.run(load("faster", 2)).code == 0
    system.approve(slow)
    seen = system.wait_for_stage(slow, "waiting for approval")
    while seen["attempts"] == 1:  # what would be published now is not what ana approved
        seen = system.wait_for_stage(slow, "waiting for approval")
    assert seen["approval"]["decisions"] == []
    system.approve(slow)
    ended = system.wait_for_end(slow)
    assert (ended.json["outcome"], ended.json["attempts"]) == ("published", 2)
    assert ended.json["tables"]["t.overtaken"]["total_rows"] == 2
    assert sorted(row["id"] for row in lake.rows("t.overtaken")) == [1, 2]
    assert not lake.branches("slower")


def test_the_pipeline_of_the_environment(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        f"TABLE_NAME=cities\nNAMESPACE=legacy\nBRANCH_NAME=nightly\nNOT_NULL_COLUMNS=id, city\n"
        f"S3_PATH={csv_file(tmp_path / 'in' / 'cities.csv', CITIES)}\n"
    )
    output = system.command("--json")
    assert (output.code, output.json["outcome"]) == (0, "published"), output.err
    assert [check["columns"] for check in output.json["checks"]] == [["id"], ["city"]]
    assert len(lake.rows("legacy.cities")) == 2


def test_two_tables_of_one_job_are_published_in_one_merge(
    system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "spark.range(3).writeTo('t.evens').createOrReplace()\n"
        "spark.range(5).writeTo('t.odds').createOrReplace()\n"
    )
    ended = system.run(
        f"name: two-tables\nwrite: {{job: {job}}}\n"
        "tables:\n  t.evens: {checks: [row_count: {min: 3, max: 3}]}\n  t.odds: {checks: [not_null: id]}\n"
    )
    assert ended.code == 0, ended.err
    assert {name: change["added_rows"] for name, change in ended.json["tables"].items()} == {"t.evens": 3, "t.odds": 5}
    assert (len(lake.rows("t.evens")), len(lake.rows("t.odds"))) == (3, 5)
    assert lake.commit(lake.head())["parentCommitHashes"][0] == ended.json["main_before"]


def test_checks_that_do_not_fit_a_table_that_is_there(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"id": 1}\n')
    (tmp_path / "no.json").write_text("{broken")  # Spark would report it, but no Spark is started
    checks = "[accepted_range: {column: id, min: low}]"
    table = "there"
    made = system.run(pipeline(table, tmp_path / "in.json"))
    assert made.code == 0, made.err
    ended = system.run(pipeline(table, tmp_path / "no.json", checks))
    assert (ended.code, ended.json["outcome"]) == (6, "failed"), ended.err
    assert "'id' is long: 'low' is not a whole number" in ended.json["reason"]
    assert not lake.branches("there")


def test_a_namespace_that_somebody_described(stack: dict[str, str], lake: LakeReader) -> None:
    """Spark's CREATE NAMESPACE sets a location, which describes the namespace."""
    catalog, branch = open_catalog(read_settings(stack)), "wap/described"
    catalog.create_branch(branch, catalog.initialize_main())
    content = {"type": "NAMESPACE", "elements": ["described"], "properties": {"location": "file:/there"}}
    made = {"type": "PUT", "key": {"elements": ["described"]}, "content": content}
    rest = NessieRest(stack["NESSIE_URI"], Path(stack["NESSIE_PUBLISHER_TOKEN_FILE"]).read_text())
    rest.commit(branch, catalog.head(branch), "Describe it", [made], {})
    tables = ["described.rows", "other.rows"]
    catalog.commit_tables(branch, catalog.head(branch), "Create namespaces", create_namespaces_for=tables)
    namespaces = [rest.content(branch, [name]) for name in ("described", "other")]
    assert [each.get("properties", {}) for each in namespaces if each] == [{"location": "file:/there"}, {}]
    lake.discard(branch)
