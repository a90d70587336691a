"""The files of a quarantine: they are free again, and a release refuses files that main has."""

import pytest
from temporalio.exceptions import ApplicationError

from activities.quarantine.plan_release import PlanReleaseActivity
from lakehouse.catalog import TableCommit
from sluice.contracts.lake_queries import PlanReleaseInput
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from tests.harness.activity import run_activity
from tests.harness.loading_run import TABLE, Folder, release, release_plan
from tests.harness.memory_lake import MemoryLake


async def test_failed_and_quarantined_runs_free_their_files_and_a_release_keeps_them(folder: Folder) -> None:
    folder.file("a.csv", "1")
    first = folder.run()
    await first.quarantine()
    failed = folder.run()
    branch, _ = await failed.write()
    folder.lake.catalog.delete_branch(branch.name)
    plan = release_plan(folder.lake, first.ref.run_id)
    release(folder.lake, plan, first)
    with pytest.raises(ApplicationError, match=r"already published: loaded into t\.x by run w-release"):
        await folder.run().write()


async def test_a_quarantine_of_a_landing_zone_is_not_released_over_other_content_of_its_path(folder: Folder) -> None:
    file = folder.file("a.csv", "1")
    first = folder.run("a.csv", one_content_per_path=True)
    await first.quarantine()
    file.write_text("2")
    await folder.run("a.csv", one_content_per_path=True).load()
    with pytest.raises(ApplicationError, match=r"main contains other content of .*a\.csv: run w-r2 .* add --again"):
        release_plan(folder.lake, first.ref.run_id)


@pytest.mark.parametrize("scope", [NO_SCOPE, LoadScope(path="2018-01"), LoadScope(content="2018-01")])
async def test_a_quarantine_is_not_released_beside_content_of_its_file_that_was_loaded_later(
    folder: Folder, scope: LoadScope
) -> None:
    file = folder.file("a.csv", "0")
    if scope == NO_SCOPE:  # a partition would be refused, once main contains it
        await folder.run("a.csv").load()
    file.write_text("1")
    first = folder.run("a.csv", scope=scope)
    await first.quarantine()
    assert release_plan(folder.lake, first.ref.run_id)
    file.write_text("2")
    if scope.content:
        await folder.run("a.csv", scope=LoadScope(content="2019-07")).load()
        assert release_plan(folder.lake, first.ref.run_id), "another partition of the file"
    await folder.run("a.csv", scope=scope).load()
    with pytest.raises(ApplicationError, match=r"main contains other content of .*a\.csv: run w-r.* add --again"):
        release_plan(folder.lake, first.ref.run_id)


async def test_a_quarantine_is_not_released_into_a_table_that_was_created_again(
    folder: Folder, lake: MemoryLake
) -> None:
    folder.file("a.csv", "1")
    await folder.run().load()
    folder.file("b.csv", "2")
    kept = folder.run()
    await kept.quarantine()
    lake.catalog.commit_tables("main", lake.catalog.head("main"), "drop", [TableCommit(TABLE, None)])
    lake.append("main", TABLE, [7])
    with pytest.raises(ApplicationError, match="is another table than the one that quarantine/"):
        release(lake, release_plan(lake, kept.ref.run_id), kept)
    assert lake.ids(TABLE) == [7]


async def test_a_quarantine_whose_files_were_published_meanwhile_is_not_released(folder: Folder) -> None:
    folder.file("a.csv", "1")
    first = folder.run()
    await first.quarantine()
    planned = release_plan(folder.lake, first.ref.run_id)
    folder.file("b.csv", "2")
    await folder.run().load()
    with pytest.raises(ApplicationError, match=r"by run w-r2 .*a\.csv.*--again") as refused:
        release_plan(folder.lake, first.ref.run_id)
    assert refused.value.type == "InvalidInput"
    with pytest.raises(ApplicationError, match="add --again"):
        release(folder.lake, planned, first)  # it was planned before, and checks again
    assert len(folder.lake.ids(TABLE)) == 2
    plan = run_activity(
        PlanReleaseActivity(folder.lake.catalog, "here", folder.lake.loaded_files).plan_release,
        PlanReleaseInput(run=first.ref.run_id, again=True),
    )
    release(folder.lake, plan, first)
    assert len(folder.lake.ids(TABLE)) == 3
