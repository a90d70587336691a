"""Conflicts with programs that changed main of a table in the catalog `iceberg`: what is added, and what is redone."""

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from temporalio.exceptions import ApplicationError

from activities.publishing.plan_rollback import PlanRollbackActivity
from lakehouse.iceberg_catalog.connect import open_iceberg
from sluice.contracts.rollback import PlanRollbackInput
from sluice.pipeline.write import Write
from sluice.publishing.commit_properties import PIPELINE, RUN_ID, WORKFLOW_ID
from tests.harness.activity import run_activity
from tests.harness.compaction import compact
from tests.harness.iceberg_lake import SCHEMA, IcebergLake, ids
from tests.harness.iceberg_run import PROGRAM, IcebergRun


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = open_iceberg("lake", "sql", uri, tmp_path.as_uri(), {})
    return IcebergLake(catalog, SqlCatalog("lake", uri=uri, warehouse=tmp_path.as_uri()), "t", "read")


@pytest.fixture
def run(lake: IcebergLake, tmp_path: Path) -> IcebergRun:
    return IcebergRun(lake, tmp_path)


def test_a_program_that_appended_is_not_run_again_because_main_was_compacted(
    lake: IcebergLake, run: IcebergRun
) -> None:
    run.append(3)
    branch, written = run.record()
    compact(lake.table("t"))
    compacted = lake.snapshot("t")
    assert lake.publish(branch, written.head).conflicts == [lake.name("t")]
    rebased = run.rebase((branch, written))
    assert rebased.branch and rebased.write_result and rebased.compacted == [lake.name("t")]
    assert rebased.write_result.head != written.head  # another hash, which is audited again
    assert lake.publish(rebased.branch, rebased.write_result.head).merged and lake.rows("t") == [1, 2, 3]
    present = lake.table("t").current_snapshot()
    assert present and present.parent_snapshot_id == compacted
    assert len([*lake.table("t").scan().plan_files()]) == 2  # the compacted file, and that of the run


@pytest.mark.parametrize("write", [PROGRAM, Write.model_validate({"job": "job.py", "on_conflict": "rebase"})])
def test_a_table_that_was_dropped_and_created_again_is_another_one(
    write: Write, lake: IcebergLake, run: IcebergRun
) -> None:
    run.append(3)
    branch, written = run.record()
    lake.reader.drop_table(lake.name("t"))
    lake.reader.create_table(lake.name("t"), SCHEMA)
    lake.append("t", 9)
    assert lake.publish(branch, written.head).conflicts == [lake.name("t")]
    with pytest.raises(ApplicationError, match="is another table than the one that") as refused:
        run.rebase((branch, written), write)
    assert refused.value.type == "TableReplaced" and lake.rows("t") == [9]


def test_a_run_is_not_rolled_back_in_a_table_that_was_dropped_and_created_again(
    lake: IcebergLake, run: IcebergRun
) -> None:
    """The rows of the new table are of another program, and would go with it."""
    run.append(3)
    branch, written = run.record()
    properties = {RUN_ID: run.ref.run_id, WORKFLOW_ID: run.ref.workflow_id, PIPELINE: run.ref.pipeline}
    assert lake.catalog.publish(branch, written.head, "ana", "publish", properties).merged
    planning = PlanRollbackActivity(lake.catalog, {}).plan_rollback
    query = PlanRollbackInput(run=run.ref.run_id)
    assert [*run_activity(planning, query).restore.tables] == [lake.name("t")]
    lake.reader.drop_table(lake.name("t"))
    lake.reader.create_table(lake.name("t"), SCHEMA)
    lake.append("t", 9)
    with pytest.raises(ApplicationError, match="later runs built on it"):
        run_activity(planning, query)
    with pytest.raises(ApplicationError, match="is another table than the one that") as refused:
        run_activity(planning, query.model_copy(update={"with_later": True}))
    assert refused.value.type == "TableReplaced" and lake.rows("t") == [9]


def test_several_compactions_are_taken_over(lake: IcebergLake, run: IcebergRun) -> None:
    run.append(3)
    written = run.record()
    for _ in range(2):
        compact(lake.table("t"))
    rebased = run.rebase(written)
    assert rebased.branch and rebased.write_result
    assert lake.publish(rebased.branch, rebased.write_result.head).merged and lake.rows("t") == [1, 2, 3]


def test_a_run_that_deleted_rows_of_compacted_files_is_written_again(lake: IcebergLake, run: IcebergRun) -> None:
    run.delete(1)
    written = run.record()
    compact(lake.table("t"))
    rebased = run.rebase(written)
    assert rebased.branch is None and rebased.compacted == [lake.name("t")]
    assert lake.name("t") in rebased.why_not and "may depend" not in rebased.why_not


@pytest.mark.parametrize("beside", ["append", "append and expiry", "column", "wrong count", "roll-back"])
def test_what_is_not_a_compaction_alone_is_written_again(beside: str, lake: IcebergLake, run: IcebergRun) -> None:
    run.append(3)
    written = run.record()
    table = lake.table("t")
    if beside.startswith("append"):
        lake.append("t", 9)
        added = lake.snapshot("t")
        compact(lake.table("t"))
        if "expiry" in beside:
            assert added
            lake.table("t").maintenance.expire_snapshots().by_id(added).commit()
    elif beside == "column":
        compact(table)
        with lake.table("t").update_schema() as schema:
            schema.add_column("more", table.schema().find_type("id"))
    elif beside == "wrong count":
        compact(table, ids(1))
    else:
        first = table.snapshots()[0].snapshot_id
        table.manage_snapshots().rollback_to_snapshot(first).commit()
    rebased = run.rebase(written)
    assert (rebased.branch, rebased.compacted) == (None, [])
    assert "may depend on the earlier rows of main" in rebased.why_not


def test_a_pipeline_that_demands_it_is_written_again(lake: IcebergLake, run: IcebergRun) -> None:
    run.append(3)
    written = run.record()
    compact(lake.table("t"))
    rebased = run.rebase(written, PROGRAM.model_copy(update={"on_conflict": "rewrite"}))
    assert rebased.branch is None and rebased.compacted == [lake.name("t")]


def test_a_table_that_a_program_may_have_read_was_compacted(lake: IcebergLake, run: IcebergRun) -> None:
    run.append(3)
    written = run.record()
    compact(lake.table("read"))
    rebased = run.rebase(written, PROGRAM, lake.name("read"))
    assert rebased.branch and rebased.compacted == [lake.name("read")]


def test_an_append_is_added_to_what_another_program_appended(lake: IcebergLake, run: IcebergRun) -> None:
    run.append(3)
    written = run.record()
    lake.append("t", 9)
    rebased = run.rebase(written, Write.model_validate({"source": {"path": "/in.csv"}}))
    assert rebased.branch and rebased.write_result and rebased.compacted == []
    assert lake.publish(rebased.branch, rebased.write_result.head).merged and lake.rows("t") == [1, 2, 3, 9]
