"""Releases and roll-backs over several tables, in a catalog that publishes tables one by one."""

from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from temporalio.exceptions import ApplicationError

from activities.publishing.plan_rollback import PlanRollbackActivity
from activities.publishing.restore_tables import RestoreTablesActivity
from lakehouse.iceberg_catalog.capabilities import capabilities_of
from lakehouse.iceberg_catalog.connect import open_iceberg
from lakehouse.iceberg_catalog.sql_committer import SqlCommitter
from sluice.contracts.existing_rows import ExistingRowsResult, RestoreTablesInput
from sluice.contracts.rollback import PlanRollbackInput, PlanRollbackResult
from sluice.publishing.commit_properties import GUARANTEE
from tests.harness.activity import run_activity
from tests.harness.memory_lake import MemoryLake
from tests.harness.quarantined_run import HERE, LakeRun, plan_release

BOTH = ("t.x", "t.y")
REFUSED = "cannot publish 2 tables at once"


@pytest.fixture
def lake(tmp_path: Path) -> MemoryLake:
    catalog = open_iceberg("lake", "sql", f"sqlite:///{tmp_path}/catalog.db", tmp_path.as_uri(), {})
    branches = catalog._branches
    branches.committer = branches._log._committer = SqlCommitter(branches.tables.catalog, "one by one")
    catalog.capabilities = capabilities_of("one by one")
    catalog.initialize_main()
    return MemoryLake(catalog, tmp_path)


def ids_of_readers(folder: Path) -> list[list[int]]:
    """Return the ids of both tables as a reader without Sluice sees them."""
    reader = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri())
    return [sorted(reader.load_table(name).scan().to_arrow()["id"].to_pylist()) for name in BOTH]


def restore(lake: MemoryLake, run: LakeRun, plan: PlanRollbackResult) -> ExistingRowsResult:
    input = RestoreTablesInput(run_ref=run.ref, restore=plan.restore, allow_partial=run.allow_partial)
    restored: ExistingRowsResult = run_activity(RestoreTablesActivity(lake.catalog, {}, HERE).restore_tables, input)
    return restored


def test_a_quarantine_over_two_tables_is_released_where_its_pipeline_allows_it(
    lake: MemoryLake, tmp_path: Path
) -> None:
    LakeRun(lake, BOTH).published(1)
    run = LakeRun(lake, BOTH)
    run.quarantined(2, 3)
    resume = plan_release(lake, run.run_id)
    with pytest.raises(ApplicationError, match=REFUSED):
        LakeRun(lake, BOTH).resume(resume)
    assert ids_of_readers(tmp_path) == [[1], [1]]
    released = LakeRun(lake, BOTH, allow_partial=True)
    held = released.resume(resume)
    assert held.branch.guarantee == "one by one"
    assert released.publish(held.branch, held.write_result, resume=resume).merged
    assert ids_of_readers(tmp_path) == [[1, 2, 3], [1, 2, 3]]


def test_a_run_over_two_tables_is_rolled_back_where_the_roll_back_allows_it(lake: MemoryLake, tmp_path: Path) -> None:
    LakeRun(lake, BOTH).published(1)
    run = LakeRun(lake, BOTH, allow_partial=True)
    run.published(2)
    query = PlanRollbackInput(run=run.run_id)
    plan: PlanRollbackResult = run_activity(PlanRollbackActivity(lake.catalog).plan_rollback, query)
    assert plan.recorded and plan.recorded.publish.allow_partial, "main remembers what the pipeline allowed"
    with pytest.raises(ApplicationError, match=f"(?s){REFUSED}.*or for a roll-back by `--allow-partial`"):
        restore(lake, LakeRun(lake, BOTH), plan)
    back = LakeRun(lake, BOTH, allow_partial=True)
    restored = restore(lake, back, plan)
    publication = back.publish(restored.branch, restored.write_result, restore=plan.restore)
    assert publication.merged and ids_of_readers(tmp_path) == [[1], [1]]
    (commit,) = [each for each in lake.catalog.history("main") if each.hash == publication.main_after]
    assert commit.properties[GUARANTEE] == restored.branch.guarantee == "one by one"
