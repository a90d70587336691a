"""The files that main has, from its history: sequences of runs on a catalog in memory, and the index alone."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import pytest
from temporalio.exceptions import ApplicationError

from activities.approval.require_approval import ApprovalPolicy
from activities.lake.list_files import ListFilesActivity
from activities.publishing.publish_branch import PublishBranchActivity
from activities.publishing.rebase_branch import RebaseBranchActivity
from activities.quarantine.plan_release import PlanReleaseActivity
from activities.quarantine.resume_branch import ResumeBranchActivity
from activities.run.open_branch import OpenBranchActivity
from lakehouse.catalog import TableCommit
from lakehouse.loaded_files import LoadedFiles
from lakehouse.source_files import find_files
from lakehouse.table_versions import changed_tables
from sluice.contracts.existing_rows import RebaseBranchInput, RebaseResult, ResumeBranchInput
from sluice.contracts.input import PublicationCheck, SelectedInput
from sluice.contracts.lake_queries import ListFilesInput, ListFilesResult, PlanReleaseInput, ReleasePlan
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.write import OpenBranchInput, TableChange, WriteResult
from sluice.input.held_files import WantedFile
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from sluice.pipeline.source import Source
from sluice.pipeline.write import Write
from sluice.publishing.branch_properties import input_properties
from sluice.publishing.certificate import approved_properties
from sluice.publishing.commit_properties import PIPELINE, RUN_ID, WORKFLOW_ID
from tests.harness.activity import run_activity
from tests.harness.loading_run import TABLE, Folder, Run, names, roll_back, row_of
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.publish_input import publish_input


@pytest.fixture
def lake(tmp_path: Path) -> MemoryLake:
    return MemoryLake(MemoryCatalog(), tmp_path / "tables")


@pytest.fixture
def folder(lake: MemoryLake, tmp_path: Path) -> Folder:
    return Folder(lake, tmp_path / "landing")


async def test_a_file_that_arrives_later_is_loaded_alone(folder: Folder) -> None:
    a = folder.file("a.csv", "1")
    await folder.run().load()
    b = folder.file("b.csv", "2")
    second = await folder.run().load()
    assert names(folder.lake, second) == ["b.csv"]
    assert "1 left out: loaded before by run w-r1" in second.summary and second.left_out[0].path == str(a)
    assert folder.lake.ids(TABLE) == sorted([row_of(a), row_of(b)])
    with pytest.raises(ApplicationError, match="all 2 files were already published") as refused:
        await folder.run().write()
    assert (refused.value.type, refused.value.non_retryable) == ("AlreadyPublished", True)


async def test_spelling_pattern_folder_and_name_do_not_matter(folder: Folder) -> None:
    folder.file("a.csv", "1")
    await folder.run("a.csv").load()
    folder.file("deep/copy.csv", "1")
    for again in (("./a.csv",), ("deep/../a.csv",), ("*.csv", "a*.csv"), ("deep/copy.csv",), (".",)):
        with pytest.raises(ApplicationError, match="already published"):
            await folder.run(*again).write()


async def test_one_content_twice_in_a_run_is_loaded_once(folder: Folder) -> None:
    for name in ("a.csv", "b.csv", "sub/a.csv"):
        folder.file(name, "1")
    selected = await folder.run(".", "*.csv").load()
    assert (selected.files, selected.duplicates) == (1, 2)
    assert len(folder.lake.ids(TABLE)) == 1


async def test_again_loads_all_and_a_changed_file_is_new(folder: Folder) -> None:
    folder.file("a.csv", "1")
    await folder.run().load()
    assert (await folder.run(again=True).load()).files == 1
    assert len(folder.lake.ids(TABLE)) == 2
    folder.file("a.csv", "1 and more")
    assert (await folder.run().load()).loaded_before == 0


async def test_policies_refuse_and_reload(folder: Folder) -> None:
    folder.file("a.csv", "1")
    await folder.run().load()
    folder.file("b.csv", "2")
    with pytest.raises(ApplicationError, match="1 of 2 files was already published"):
        await folder.run(policy="refuse").write()
    assert (await folder.run(policy="reload").load()).files == 2


async def test_what_a_later_load_replaced_may_be_loaded_again(folder: Folder) -> None:
    """A table is overwritten by 10, 20, 10. In an earlier version, the third was "already published"; main kept 20."""
    january, february = LoadScope(path="2018-01"), LoadScope(path="2018-02")
    folder.file("a.csv", "10")
    first = folder.run(policy="reload", scope=january)
    await first.load()
    loaded = folder.lake.loaded_files
    assert loaded.find_input("p", first.digest, [TABLE], "table")
    folder.file("a.csv", "30")
    await folder.run(policy="reload", scope=february).load()
    assert loaded.find_input("p", first.digest, [TABLE], "partitions"), "another partition replaces nothing of it"
    assert loaded.find_input("p", first.digest, [TABLE], "table") is None
    folder.file("a.csv", "20")
    second = folder.run(policy="reload", scope=january)
    await second.load()
    assert loaded.find_input("p", first.digest, [TABLE]) and not loaded.find_input("q", first.digest, [TABLE])
    assert loaded.find_input("p", first.digest, [TABLE], "partitions") is None
    assert loaded.find_input("p", second.digest, [TABLE], "partitions")


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


@pytest.mark.parametrize("is_created_again", [False, True])
async def test_files_whose_rows_went_with_their_table_are_loaded_again(
    is_created_again: bool, folder: Folder, lake: MemoryLake
) -> None:
    """In an earlier version, they stayed "already published" after another program had dropped the table."""
    folder.file("a.csv", "1")
    await folder.run().load()
    folder.file("b.csv", "2")
    await folder.run().load()
    lake.catalog.commit_tables("main", lake.catalog.head("main"), "drop", [TableCommit(TABLE, None)])
    if is_created_again:
        lake.append("main", TABLE, [7])
    again = await folder.run().load()
    assert names(lake, again) == ["a.csv", "b.csv"] and len(lake.ids(TABLE)) == 2 + is_created_again
    folder.file("c.csv", "3")
    assert names(lake, await folder.run().load()) == ["c.csv"], "those of the new table are known"
    with pytest.raises(ApplicationError, match="all 3 files were already published"):
        await folder.run().write()


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


def release_plan(lake: MemoryLake, run_id: str) -> ReleasePlan:
    plan: ReleasePlan = run_activity(
        PlanReleaseActivity(lake.catalog, "here", lake.loaded_files).plan_release, PlanReleaseInput(run=run_id)
    )
    return plan


def release(lake: MemoryLake, plan: ReleasePlan, run: Run) -> None:
    ref = RunRef(run_id="release-".ljust(36, "0"), workflow_id="w-release", pipeline="p", label="p", attempt=1)
    append = Write.model_validate({"source": {"path": "/in.csv"}})
    input = ResumeBranchInput(run_ref=ref, resume=plan.resume, write=append, tables=[TABLE])
    resumed = run_activity(ResumeBranchActivity(lake.catalog, {}, "here", lake.loaded_files).resume_branch, input)
    assert plan.input_digest == run.digest and plan.resume.manifest == run.listed
    properties = approved_properties(ref, resumed.write_result.head, "", [], [])
    properties.update(input_properties(plan.input_digest, [TABLE], plan.resume.manifest))
    head, published = resumed.write_result.head, plan.resume.published
    publishing = publish_input(ref, resumed.branch, head, properties, published=published)
    publish = PublishBranchActivity(lake.catalog, ApprovalPolicy(lake.catalog), {}, lake.loaded_files).publish_branch
    assert run_activity(publish, publishing).merged


async def test_a_roll_back_frees_files_and_its_own_roll_back_takes_them_again(folder: Folder) -> None:
    folder.file("a.csv", "1")
    first = folder.run()
    await first.load()
    back = roll_back(folder.lake, "back", first.ref.run_id)
    await folder.run().select(folder.run().open())
    roll_back(folder.lake, "forth", back)
    with pytest.raises(ApplicationError, match="by run w-r1"):
        await folder.run().write()


async def test_two_runs_at_once_that_share_a_file_load_it_once(folder: Folder) -> None:
    folder.file("a.csv", "1")
    folder.file("b.csv", "2")
    first, second = folder.run("a.csv"), folder.run()
    mine, mine_selected = await first.write()
    other, other_selected = await second.write()
    assert other_selected.files == 2
    assert first.publish(mine, mine_selected).merged
    assert second.publish(other, other_selected).conflicts == [TABLE]
    rebased = rebase(folder.lake, second, other, other_selected)
    assert rebased.branch is None and "loaded into t.x by run w-r1" in rebased.why_not
    branch, selected = await second.write()
    assert names(folder.lake, selected) == ["b.csv"]
    assert second.publish(branch, selected).merged and len(folder.lake.ids(TABLE)) == 2


async def test_a_rebase_goes_on_where_no_file_is_shared(folder: Folder) -> None:
    folder.file("a.csv", "1")
    folder.file("b.csv", "2")
    first, second = folder.run("a.csv"), folder.run("b.csv")
    await folder.run().quarantine()  # main has none of its files
    branch, selected = await second.write()
    await first.load()
    assert second.publish(branch, selected).conflicts == [TABLE]
    assert rebase(folder.lake, second, branch, selected).branch


async def test_the_merge_asks_again_where_the_table_did_not_move(folder: Folder) -> None:
    """A publication that left the table unchanged cannot happen. If it does, no file is loaded twice."""
    folder.file("a.csv", "1")
    run = folder.run()
    branch, selected = await run.write()
    described = {RUN_ID: "other", WORKFLOW_ID: "w-other", **input_properties("d", [TABLE], selected.manifest)}
    folder.lake.catalog.commit_tables("main", folder.lake.catalog.head("main"), "m", properties=described)
    assert run.publish(branch, selected) == Publication(merged=False, conflicts=[TABLE], merge_requested=False)


async def test_a_whole_input_that_was_published_is_not_merged(folder: Folder) -> None:
    folder.file("a.csv", "1")
    run = folder.run(policy="reload")
    branch, selected = await run.write()
    described = {RUN_ID: "other", WORKFLOW_ID: "w-other", PIPELINE: "p", **input_properties(run.digest)}
    folder.lake.catalog.commit_tables("main", folder.lake.catalog.head("main"), "m", properties=described)
    with pytest.raises(ApplicationError, match="published by run w-other") as refused:
        run.publish(branch, selected)
    assert refused.value.type == "AlreadyPublished"


def rebase(lake: MemoryLake, run: Run, branch: BranchRef, selected: SelectedInput) -> RebaseResult:
    head = lake.catalog.head(branch.name)
    change = TableChange(operation="append", added_rows=selected.files, added_files=1)
    versions = changed_tables(lake.catalog.diff(branch.base, branch.name, head))
    run.ref = run.ref.model_copy(update={"attempt": run.ref.attempt + 1})
    input = RebaseBranchInput(
        run_ref=run.ref,
        branch=branch,
        write_result=WriteResult(head=head, tables={TABLE: change}, versions=versions),
        write=Write.model_validate({"source": {"path": "/in.csv"}}),
        rows_quarantined=False,
        published=PublicationCheck(tables=[TABLE], manifest=selected.manifest),
    )
    result: RebaseResult = run_activity(
        RebaseBranchActivity(lake.catalog, {}, "here", lake.loaded_files).rebase_branch, input
    )
    return result


async def test_files_that_arrive_between_two_attempts_are_not_of_the_run(folder: Folder) -> None:
    folder.file("a.csv", "1")
    run = folder.run()
    await run.write()
    folder.file("b.csv", "2")
    _, selected = await run.write()
    assert names(folder.lake, selected) == ["a.csv"]
    late = folder.run()
    folder.file("c.csv", "3")
    with pytest.raises(ApplicationError, match="changed since the run was started"):
        await late.write()


async def test_the_index_is_built_again_where_it_is_missing_damaged_or_of_another_history(
    folder: Folder, tmp_path: Path
) -> None:
    folder.file("a.csv", "1")
    await folder.run().load()
    (index,) = (tmp_path / "tables" / "home").rglob("*.sqlite")

    async def refuses() -> None:
        with pytest.raises(ApplicationError, match=r"already published: loaded into t\.x by run w-r1"):
            await folder.run().write()

    index.unlink()
    await refuses()
    index.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    await refuses()
    with sqlite3.connect(index) as database:
        database.execute("DROP TABLE files")
    await refuses()
    with sqlite3.connect(index) as database:
        database.execute("UPDATE commits SET hash = hash || 'x'")
        database.execute("DELETE FROM files")
    await refuses()
    with sqlite3.connect(index) as database:
        database.execute("PRAGMA user_version = 999")
    await refuses()


async def test_a_manifest_that_is_missing_or_altered_is_refused_until_it_is_restored(
    folder: Folder, tmp_path: Path
) -> None:
    folder.file("a.csv", "1")
    first = await folder.run().load()
    path = Path(first.manifest.location.removeprefix("file://"))
    content = path.read_bytes()
    fresh = LoadedFiles(folder.lake.catalog, folder.lake.manifests, tmp_path / "other home")
    folder.lake.loaded_files = fresh
    for damage in (path.unlink, lambda: path.write_bytes(content.replace(b"a.csv", b"b.csv"))):
        damage()
        with pytest.raises(ApplicationError, match=r"files that commit .* are unknown.* --again") as refused:
            await folder.run().write()
        assert refused.value.type == "ManifestUnreadable"
    listed: ListFilesResult = run_activity(ListFilesActivity(folder.lake.catalog, fresh).list_files, ListFilesInput())
    assert listed.unknown
    assert fresh.find(["t.other"], [WantedFile("x", "x")]) == []  # other tables are not affected
    assert (await folder.run(again=True).write())[1].files == 1
    path.write_bytes(content)
    with pytest.raises(ApplicationError, match="already published"):
        await folder.run().write()


async def test_a_manifest_in_a_store_that_cannot_be_reached_concerns_its_own_tables_alone(
    folder: Folder, tmp_path: Path
) -> None:
    """In an earlier version, a run into a lake on S3 stopped all runs of a worker that cannot reach that store."""
    folder.file("a.csv", "1")
    first = await folder.run().load()
    path = Path(first.manifest.location.removeprefix("file://"))
    path.unlink()
    path.mkdir()  # opening it fails, but not because it is missing
    fresh = LoadedFiles(folder.lake.catalog, folder.lake.manifests, tmp_path / "other home")
    assert fresh.find(["t.other"], [WantedFile("x", "x")]) == []
    folder.lake.loaded_files = fresh
    with pytest.raises(ApplicationError, match="cannot be read now") as refused:
        await folder.run().write()
    assert refused.value.type == "ServiceUnavailable" and not refused.value.non_retryable


async def test_many_threads_and_processes_may_share_an_index(folder: Folder, tmp_path: Path) -> None:
    for number in range(20):
        folder.file(f"{number}.csv", str(number))
        await folder.run(f"{number}.csv").load()
    catalog, manifests = folder.lake.catalog, folder.lake.manifests
    files = find_files(Source(path=str(folder.path), format="csv"))
    wanted = [WantedFile(file.path, file.identity) for file in files]
    answers: list[int] = []

    def ask() -> None:
        loaded = LoadedFiles(catalog, manifests, tmp_path / "shared")
        answers.append(len(loaded.find([TABLE], wanted)))

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [20] * 8


async def test_files_are_listed_with_their_outcome(folder: Folder) -> None:
    folder.file("a.csv", "1")
    first = folder.run()
    await first.load()
    folder.file("b.csv", "2")
    await folder.run().quarantine()
    folder.file("c.csv", "3")
    await folder.run("c.csv").write()
    assert outcomes(folder.lake) == [("c.csv", "under way"), ("b.csv", "quarantined"), ("a.csv", "published")]
    roll_back(folder.lake, "back", first.ref.run_id)
    assert outcomes(folder.lake, table=TABLE, run=first.ref.run_id) == [("a.csv", "rolled back")]
    assert outcomes(folder.lake, paths=[str(folder.path / "b*")]) == [("b.csv", "quarantined")]
    assert outcomes(folder.lake, table="t.other") == outcomes(folder.lake, run="nobody") == []
    (a,) = find_files(Source(path=str(folder.path / "a.csv")))
    assert outcomes(folder.lake, identities=[a.identity]) == [("a.csv", "rolled back")]


def outcomes(lake: MemoryLake, **query: str | Sequence[str]) -> list[tuple[str, str]]:
    input = ListFilesInput.model_validate(query)
    listed: ListFilesResult = run_activity(ListFilesActivity(lake.catalog, lake.loaded_files).list_files, input)
    assert listed.total == len(listed.files)
    return [(Path(each.path).name, each.outcome) for each in listed.files]


def month(number: int, *, is_path: bool = False) -> LoadScope:
    label = f"2018-{number:02}"
    return LoadScope(path=label) if is_path else LoadScope(content=label)


async def test_each_partition_of_one_file_is_loaded_once(folder: Folder, tmp_path: Path) -> None:
    """An earlier version loaded only the first, and reported for the others that main has their file."""
    folder.file("a.csv", "1")
    for number in (1, 2, 3):
        assert (await folder.run(scope=month(number)).load()).files == 1
        with pytest.raises(ApplicationError, match="already published"):
            await folder.run(scope=month(number)).write()
    assert len(folder.lake.ids(TABLE)) == 3
    listed: ListFilesResult = run_activity(
        ListFilesActivity(folder.lake.catalog, folder.lake.loaded_files).list_files, ListFilesInput()
    )
    assert [each.partition for each in listed.files if each.outcome == "published"] == [
        f"2018-0{number}" for number in (3, 2, 1)
    ]
    folder.lake.loaded_files = LoadedFiles(folder.lake.catalog, folder.lake.manifests, tmp_path / "other home")
    with pytest.raises(ApplicationError, match="by run w-r3"):  # the index was rebuilt from main's history
        await folder.run(scope=month(2)).write()
    roll_back(folder.lake, "back", "r3-".ljust(36, "0"))
    assert (await folder.run(scope=month(2)).load()).files == 1


async def test_the_same_bytes_of_two_partitions_are_loaded_for_each(folder: Folder) -> None:
    for name in ("2018-01/a.csv", "2018-02/a.csv"):
        folder.file(name, "1")
    await folder.run("2018-01/*.csv", scope=month(1, is_path=True)).load()
    await folder.run("2018-02/*.csv", scope=month(2, is_path=True)).load()
    assert len(folder.lake.ids(TABLE)) == 2
    for scope in (NO_SCOPE, LoadScope(path="2018-02-01")):  # no partition, or another name for it
        with pytest.raises(ApplicationError, match="already published"):
            await folder.run("2018-02/a.csv", scope=scope).write()


async def test_a_file_that_was_loaded_whole_is_a_partition_by_its_path_and_none_by_its_content(folder: Folder) -> None:
    folder.file("2018-01/a.csv", "1")
    await folder.run("2018-01/a.csv").load()
    with pytest.raises(ApplicationError, match="already published"):
        await folder.run("2018-01/*.csv", scope=month(1, is_path=True)).write()
    with pytest.raises(ApplicationError, match=r"loaded .*a\.csv whole into t\.x.*--again") as refused:
        await folder.run("2018-01/a.csv", scope=month(1)).write()
    assert refused.value.type == "InvalidInput", "it is not skipped"
    assert (await folder.run("2018-01/a.csv", scope=month(1), again=True).load()).files == 1


async def test_two_partitions_of_a_file_at_once_are_both_published(folder: Folder) -> None:
    folder.file("a.csv", "1")
    first, second = folder.run(scope=month(1)), folder.run(scope=month(2))
    assert first.digest != second.digest
    await folder.run().quarantine()  # so that main has the table
    mine, other = await first.write(), await second.write()
    assert first.publish(*mine).merged
    assert second.publish(*other).conflicts == [TABLE]
    assert "loaded" not in rebase(folder.lake, second, *other).why_not, "main does not hold this partition"


async def test_the_quarantine_of_a_partition_is_released_although_another_was_published(folder: Folder) -> None:
    folder.file("a.csv", "1")
    first = folder.run(scope=month(1))
    await first.quarantine()
    await folder.run(scope=month(2)).load()
    release(folder.lake, release_plan(folder.lake, first.ref.run_id), first)
    with pytest.raises(ApplicationError, match="by run w-release"):
        await folder.run(scope=month(1)).write()


async def test_content_that_is_sent_again_after_another_is_loaded_where_the_order_matters(folder: Folder) -> None:
    """Prices were sent as 10, 20, 10 under one path. An earlier version left out the third, and main kept 20."""
    for price in ("10", "20", "10"):
        folder.file("prices.csv", price)
        assert (await folder.run("prices.csv", order_matters=True).load()).files == 1
        with pytest.raises(ApplicationError, match="already published"):
            await folder.run("prices.csv", order_matters=True).write()
    folder.file("copy.csv", "20")
    with pytest.raises(ApplicationError, match="already published"):  # this path had no other content
        await folder.run("copy.csv", order_matters=True).write()
    folder.file("prices.csv", "20")
    with pytest.raises(ApplicationError, match="already published"):  # appended rows stay, whatever is loaded later
        await folder.run("prices.csv").write()


async def test_an_input_without_files_is_free_again_after_a_roll_back(lake: MemoryLake) -> None:
    described = {RUN_ID: "r1", WORKFLOW_ID: "w-1", PIPELINE: "p", **input_properties("d")}
    lake.catalog.commit_tables("main", lake.catalog.initialize_main(), "m", properties=described)
    ref = RunRef(run_id="r2".ljust(36, "0"), workflow_id="w-2", pipeline="p", label="p", attempt=1)
    input = OpenBranchInput(run_ref=ref, tables={}, schema_is_fixed=False, input_digest="d", again=False)
    opening = OpenBranchActivity(lake.catalog, {}, "here", lake.loaded_files)
    with pytest.raises(ApplicationError, match="published by p already: run w-1"):
        run_activity(opening.open_branch, input)
    roll_back(lake, "back", "r1")
    assert run_activity(opening.open_branch, input).base == lake.catalog.head("main")
