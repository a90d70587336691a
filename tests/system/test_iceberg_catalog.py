"""Runs on a stack without Nessie, whose catalog is Iceberg's own in an SQLite file, read back by plain PyIceberg."""

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from devstack.film_permits import BOROUGHS, film_permits
from devstack.stack import ROOT, Stack
from tests.harness.system import SystemHarness, link_tools

PERMITS = "nyc.film_permits"
LOAD = (ROOT / "pipelines" / "film_permits.yml").read_text()
DELETE = (ROOT / "pipelines" / "film_permits_without_staten_island.yml").read_text()
LEFT = {borough: count for borough, count in BOROUGHS.items() if borough != "Staten Island"}

ESCAPE = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.table("nyc.film_permits")
rows.limit(1).writeTo("nyc.film_permits").createOrReplace()
spark.sql("ALTER TABLE nyc.film_permits ADD COLUMN spy STRING")
spark.sql("INSERT INTO nyc.film_permits.branch_main SELECT *, 'x' FROM nyc.film_permits LIMIT 1")
spark.sql("DROP TABLE nyc.film_permits")
"""
REPLACE = """
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.getOrCreate()
rows = spark.table("nyc.film_permits").withColumn("reviewed", F.lit(True)).localCheckpoint()
rows.writeTo("nyc.film_permits").createOrReplace()
"""


def user_job(name: str, program: Path, checks: str) -> str:
    return f"name: {name}\nwrite: {{job: {program}}}\ntables:\n  {PERMITS}:\n    checks: [{checks}]\n"


class Reader:
    """A reader of the catalog by SQL and PyIceberg that uses none of Sluice's code."""

    def __init__(self, home: Path) -> None:
        self._file = home / "iceberg" / "catalog.db"

    def tables(self) -> dict[str, str]:
        """Return the metadata file of each table."""
        with sqlite3.connect(self._file) as database:
            rows = database.execute(
                "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables"
            ).fetchall()
        return {f"{namespace}.{name}": location for namespace, name, location in rows}

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table as any reader sees them."""
        metadata = StaticTable.from_metadata(self.tables()[table])
        return list(metadata.scan().to_arrow().to_pylist())

    def last_commit(self) -> dict[str, Any]:
        """Return the newest commit on main in the log."""
        log = StaticTable.from_metadata(self.tables()["sluice.commits"]).current_snapshot()
        assert log and log.summary
        commit: dict[str, Any] = json.loads(log.summary.additional_properties["sluice.commit"])
        return commit


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("iceberg-home")
    link_tools(home)
    return home


@pytest.fixture(scope="module")
def variables(home: Path) -> Iterator[Mapping[str, str]]:
    variables = {"SLUICE_HOME": str(home), "CATALOG": "sql", "SPARK_ENGINE": "connect"}
    stack = Stack(home, {**os.environ, **variables})
    try:
        yield {**stack.up(), **variables}
    finally:
        stack.down()


@pytest.fixture
def iceberg(variables: Mapping[str, str], tmp_path: Path) -> SystemHarness:
    return SystemHarness(tmp_path, {**os.environ, **variables})


def boroughs(reader: Reader) -> Counter[str]:
    return Counter(row["borough"] for row in reader.rows(PERMITS))


def test_permits_are_deleted_on_a_branch_and_jobs_cannot_leave_theirs(
    iceberg: SystemHarness, home: Path, tmp_path: Path
) -> None:
    reader = Reader(home)
    permits = tmp_path / "data" / "permits" / "permits.csv"
    permits.parent.mkdir(parents=True)
    permits.write_bytes(film_permits())
    loaded = iceberg.run(LOAD)
    assert (loaded.json["outcome"], loaded.json["guarantee"]) == ("published", "atomic"), loaded
    assert boroughs(reader) == BOROUGHS

    before = reader.tables()[PERMITS]
    run = iceberg.start(DELETE)
    waiting = iceberg.wait_for_stage(run, "waiting for approval")
    assert (reader.tables()[PERMITS], boroughs(reader)) == (before, BOROUGHS)
    shown = iceberg.command("query", f"SELECT count(*) AS n FROM {PERMITS}", "--ref", waiting["branch"], "--json")
    assert "975" in shown.out, shown
    iceberg.approve(run)
    ended = iceberg.wait_for_end(run)
    assert ended.json["outcome"] == "published", ended
    assert boroughs(reader) == LEFT
    commit = reader.last_commit()
    assert commit["message"] == "Remove the film permits of Staten Island"
    assert commit["merged"] == ended.json["audited_hash"]
    assert commit["properties"]["sluice.metadata.ticket"] == "FILM-42"
    assert commit["properties"]["sluice.guarantee"] == "atomic"

    too_much = DELETE.replace("= 'Staten Island'", "IN ('Staten Island', 'Bronx')")
    stopped = iceberg.run(too_much)
    assert (stopped.code, stopped.json["outcome"]) == (3, "quarantined")
    assert boroughs(reader) == LEFT

    before = reader.tables()[PERMITS]
    escape = tmp_path / "escape.py"
    escape.write_text(ESCAPE)
    escaped = iceberg.run(user_job("escape", escape, "row_count: {min: 1}"))
    assert escaped.code != 0 and escaped.json["outcome"] != "published", escaped
    assert (reader.tables()[PERMITS], boroughs(reader)) == (before, LEFT)

    replace = tmp_path / "replace.py"
    replace.write_text(REPLACE)
    replaced = iceberg.run(user_job("replace", replace, "row_count: {min: 975, max: 975}"))
    assert replaced.json["outcome"] == "published", replaced
    assert boroughs(reader) == LEFT and all(row["reviewed"] for row in reader.rows(PERMITS))

    back = iceberg.command("rollback", replaced.json["workflow_id"], "--json", "--yes")
    assert back.code == 0, back
    assert boroughs(reader) == LEFT and "reviewed" not in reader.rows(PERMITS)[0]


def test_doctor_tries_a_commit_to_two_tables(iceberg: SystemHarness, home: Path) -> None:
    result = iceberg.command("doctor", "--json")
    findings = {each["part"]: each for each in json.loads(result.out)["findings"]}
    assert findings["transactions"]["state"] == findings["tokens"]["state"] == "ok", result
    assert "atomic" in findings["transactions"]["detail"]
    assert not [name for name in Reader(home).tables() if "probe_" in name]
