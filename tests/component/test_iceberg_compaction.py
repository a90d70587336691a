"""Compactions of main by other programs that race with the publish of a run, in every kind of catalog."""

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession

from lakehouse.iceberg_catalog.connect import open_iceberg
from lakehouse.iceberg_catalog.job_catalog import job_catalog_properties
from lakehouse.iceberg_catalog.publication import Publisher
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.errors import ServiceUnavailable
from tests.harness.compaction import compact
from tests.harness.iceberg_guarantees import open_as
from tests.harness.iceberg_lake import IcebergLake
from tests.harness.iceberg_rest import IcebergRestServer
from tests.harness.iceberg_run import IcebergRun


@pytest.fixture(params=["atomic", "checked", "one by one", "rest"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> IcebergLake:
    if request.param == "rest":
        server: IcebergRestServer = request.getfixturevalue("iceberg_rest")
        catalog = open_iceberg("lake", "rest", server.uri, server.warehouse.as_uri(), {})
        return IcebergLake(catalog, server.open(), "t", "two")
    reader = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=tmp_path.as_uri())
    return IcebergLake(open_as(tmp_path, request.param), reader, "t", "two")


def publish(lake: IcebergLake, branch: BranchRef, head: str) -> Publication:
    """Publish as the activity does: check for conflicts first, and retry."""
    for _ in range(3):
        if conflicts := lake.catalog.find_conflicts(branch.name, head):
            return Publication(merged=False, conflicts=conflicts)
        try:
            return lake.publish(branch, head)
        except ServiceUnavailable:
            continue
    raise AssertionError("the catalog did not serve")


def test_a_compaction_between_the_check_and_the_commit(
    lake: IcebergLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = IcebergRun(lake, tmp_path)
    run.append(3)
    branch, written = run.record()
    prepare = Publisher._main_changes
    raced: list[int | None] = []

    def compact_before_the_commit(self: Publisher, *given: Any) -> Any:
        changes = prepare(self, *given)
        if not raced:
            raced.append(lake.snapshot("t"))
            compact(lake.table("t"))
        return changes

    monkeypatch.setattr(Publisher, "_main_changes", compact_before_the_commit)
    assert publish(lake, branch, written.head).conflicts == [lake.name("t")] and raced
    compacted = lake.snapshot("t")
    assert lake.rows("t") == [1, 2]  # main has nothing of the run
    rebased = run.rebase((branch, written))
    assert rebased.branch and rebased.write_result and rebased.compacted == [lake.name("t")]
    assert rebased.write_result.head != written.head
    assert publish(lake, rebased.branch, rebased.write_result.head).merged
    present = lake.table("t").current_snapshot()
    assert lake.rows("t") == [1, 2, 3] and present and present.parent_snapshot_id == compacted


@pytest.mark.parametrize("lake", ["atomic"], indirect=True)
def test_a_compaction_by_spark_while_a_run_is_under_way(lake: IcebergLake, tmp_path: Path, spark: SparkSession) -> None:
    run = IcebergRun(lake, tmp_path)
    run.append(3)
    branch, written = run.record()
    session = spark.newSession()
    for key, value in job_catalog_properties(tmp_path, "lake", tmp_path.as_uri()).items():
        session.conf.set(f"spark.sql.catalog.lake.{key}" if key else "spark.sql.catalog.lake", value)
    session.conf.set("spark.sql.catalog.lake.uri", f"jdbc:sqlite:{tmp_path}/catalog.db")
    options = "map('rewrite-all', 'true', 'min-input-files', '1')"
    session.sql(f"CALL lake.system.rewrite_data_files(table => '{lake.name('t')}', options => {options})").collect()
    snapshot = lake.table("t").current_snapshot()
    assert snapshot and snapshot.summary and snapshot.summary.operation.value == "replace"
    assert publish(lake, branch, written.head).conflicts == [lake.name("t")]
    rebased = run.rebase((branch, written))
    assert rebased.branch and rebased.write_result and rebased.compacted == [lake.name("t")]
    assert publish(lake, rebased.branch, rebased.write_result.head).merged and lake.rows("t") == [1, 2, 3]
