"""The files that main has, from its history: sequences of runs on a catalog in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.lake.list_files import ListFilesActivity
from activities.run.open_branch import OpenBranchActivity
from lakehouse.catalog import BranchInfo, TableCommit
from lakehouse.input.file_listing import newest_first
from lakehouse.source_files import find_files
from sluice.contracts.lake_queries import FileEntry, ListFilesInput, ListFilesResult
from sluice.contracts.publish import Publication
from sluice.contracts.references import RunRef
from sluice.contracts.write import OpenBranchInput
from sluice.pipeline.scope import LoadScope
from sluice.pipeline.source import Source
from sluice.publishing.branch_properties import input_properties
from sluice.publishing.commit_properties import PIPELINE, RUN_ID, WORKFLOW_ID
from tests.harness.activity import run_activity
from tests.harness.loading_run import TABLE, Folder, names, rebase, roll_back, row_of
from tests.harness.memory_lake import MemoryLake


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
    assert outcomes(lake) == [("b.csv", "table dropped"), ("a.csv", "table dropped")]
    again = await folder.run().load()
    assert names(lake, again) == ["a.csv", "b.csv"] and len(lake.ids(TABLE)) == 2 + is_created_again
    folder.file("c.csv", "3")
    assert names(lake, await folder.run().load()) == ["c.csv"], "those of the new table are known"
    with pytest.raises(ApplicationError, match="all 3 files were already published"):
        await folder.run().write()


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


async def test_files_that_arrive_between_two_attempts_are_not_of_the_run(folder: Folder) -> None:
    folder.file("a.csv", "1")
    run = folder.run()
    await run.write()
    folder.file("b.csv", "2")
    _, selected = await run.write()
    assert names(folder.lake, selected) == ["a.csv"]
    late = folder.run()
    folder.file("c.csv", "3")
    with pytest.raises(ApplicationError, match=r"since the run was started: .* A landing zone tries again"):
        await late.write()


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


async def test_the_newest_files_are_listed_first_whatever_their_outcome(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old quarantine took the places of newer publications in a limited list."""
    folder.file("a.csv", "1")
    await folder.run().quarantine()
    await folder.run().load()
    list_branches, old = folder.lake.catalog.list_branches, datetime(2020, 1, 1, tzinfo=timezone.utc)

    def old_branches(prefix: str) -> list[BranchInfo]:
        return [replace(each, committed_at=old) for each in list_branches(prefix)]

    monkeypatch.setattr(folder.lake.catalog, "list_branches", old_branches)
    assert outcomes(folder.lake) == [("a.csv", "published"), ("a.csv", "quarantined")]


def test_times_are_compared_and_not_their_texts() -> None:
    times = ["2026-01-31T10:00:00+02:00", "2026-01-31T09:00:00Z", "2026-01-31T09:00:00.5Z", "2026-01-31T08:30:00"]
    files = [
        FileEntry(path=time, size=1, identity="i", table="t.x", run_id="r", workflow_id="w", pipeline="p",
                  outcome="published", since=time, commit="c", partition="")
        for time in times
    ]  # fmt: skip
    assert [file.since for file in newest_first(files)] == [times[1], times[2], times[3], times[0]]


def outcomes(lake: MemoryLake, **query: str | Sequence[str]) -> list[tuple[str, str]]:
    input = ListFilesInput.model_validate(query)
    listed: ListFilesResult = run_activity(ListFilesActivity(lake.catalog, lake.loaded_files).list_files, input)
    assert listed.total == len(listed.files)
    return [(Path(each.path).name, each.outcome) for each in listed.files]


async def test_content_that_is_sent_again_after_another_is_loaded_where_the_order_matters(folder: Folder) -> None:
    """Prices were sent as 10, 20, 10 under one path. An earlier version left out the third, and main kept 20."""
    for price in ("10", "20", "10"):
        folder.file("prices.csv", price)
        assert (await folder.run("prices.csv", order_matters=True).load()).files == 1
        with pytest.raises(ApplicationError, match="already published"):
            await folder.run("prices.csv", order_matters=True).write()
    folder.file("copy.csv", "20")
    with pytest.raises(ApplicationError, match=r"copy\.csv has the content of .*prices\.csv"):
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


async def loaded(folder: Folder, *names: str, over_younger: bool = False) -> list[str]:
    """Load files in order; return the names of those that the last run loaded."""
    await folder.run(*names, order_matters=True, over_younger=over_younger).load()
    head = folder.lake.loaded_files.list_files("", [], 1)[0][0].file.run_id
    loads = folder.lake.loaded_files.list_files("r.run_id = ?", [head], -1)[0]
    return sorted(Path(each.file.path).name for each in loads)


async def refused(folder: Folder, *names: str, because: str, **options: Any) -> ApplicationError:
    """Start a run of files where the order matters, and return the error by which it loads none."""
    run = folder.run(*names, **{"order_matters": True, **options})
    with pytest.raises(ApplicationError, match=because) as error:
        await run.select(run.open())
    return error.value


async def test_content_that_comes_again_under_a_new_name_is_refused_with_what_to_do(folder: Folder) -> None:
    """Prices of three days were 10, 20, 10. An earlier version left the third file out, and main kept 20."""
    for name, price in {"d1.csv": "10", "d2.csv": "20", "d3.csv": "10"}.items():
        folder.file(name, price)
    assert await loaded(folder, "d1.csv") == ["d1.csv"] and await loaded(folder, "d2.csv") == ["d2.csv"]
    expected = r"d3\.csv has the content of \S*d1\.csv, which run w-r1 loaded into t\.x .*Run w-r2 loaded other content"
    error = await refused(folder, "*.csv", because=expected)
    assert error.type == "InvalidInput" and "--over-younger" in str(error)
    assert await loaded(folder, "*.csv", over_younger=True) == ["d3.csv"], "and no other file again"
    folder.file("d4.csv", "40")
    assert await loaded(folder, "*.csv") == ["d4.csv"], "the path of d3.csv is known by now"


async def test_content_under_a_new_name_is_left_out_while_main_has_its_rows_as_they_were(folder: Folder) -> None:
    """Each region sends a file a day. That of the south is unchanged, and the rows of the north are other rows."""
    for name, content in {"north1.csv": "1", "south1.csv": "2", "north2.csv": "3", "south2.csv": "2"}.items():
        folder.file(name, content)
    for name in ("north1.csv", "south1.csv", "north2.csv"):
        await folder.run(name, order_matters=True, replaces=False).load()
    await refused(folder, "south2.csv", because="already published")
    folder.file("north3.csv", "4")
    assert await loaded(folder, "*.csv") == ["north3.csv"], "which replaces the rows of the south"
    folder.file("south4.csv", "2")
    await refused(folder, "south4.csv", because=r"south4\.csv has the content of \S*south1\.csv")


async def test_files_whose_rows_are_as_they_were_prove_no_move_of_the_others(folder: Folder) -> None:
    """One region is unchanged. The prices of the other were 10 and 20, and are 10 again: this file is not left out."""
    for name, content in {"a1.csv": "10", "b1.csv": "7", "a2.csv": "20", "c1.csv": "30"}.items():
        folder.file(name, content)
    for name in ("a1.csv", "a2.csv"):
        await folder.run(name, order_matters=True).load()
    for name in ("b1.csv", "c1.csv"):
        await folder.run(name, order_matters=True, replaces=False).load()
    folder.file("a3.csv", "10")
    folder.file("b3.csv", "7")
    await refused(folder, "a3.csv", "b3.csv", because=r"a3\.csv has the content of \S*a1\.csv")


async def test_a_copy_that_a_run_left_out_stays_out_after_younger_loads(folder: Folder) -> None:
    """It lay in the folder all the time, and no supplier sent it again."""
    folder.file("a.csv", "10")
    folder.file("b.csv", "10")
    await loaded(folder, "*.csv")
    folder.file("c.csv", "10")
    folder.file("d.csv", "20")
    assert await loaded(folder, "*.csv") == ["d.csv"], "c.csv came before any younger load"
    folder.file("e.csv", "30")
    assert await loaded(folder, "*.csv") == ["e.csv"]


async def test_files_that_were_moved_together_are_left_out(folder: Folder) -> None:
    names = ("a.csv", "b.csv", "c.csv")
    for name in names:
        folder.file(name, name)
        await loaded(folder, name)
    for name in names:
        (folder.path / name).rename(folder.path / f"moved_{name}")
    await refused(folder, "moved_*.csv", because="all 3 files were already published")


async def test_a_load_that_was_rolled_back_or_has_no_order_overtakes_nothing(folder: Folder) -> None:
    folder.file("d1.csv", "10")
    folder.file("d2.csv", "20")
    await loaded(folder, "d1.csv")
    await loaded(folder, "d2.csv")
    folder.file("d3.csv", "10")
    await refused(folder, "d3.csv", because="already published", order_matters=False)
    roll_back(folder.lake, "back", "r2-".ljust(36, "0"))
    await refused(folder, "d3.csv", because="already published")


async def test_other_partitions_overtake_nothing(folder: Folder) -> None:
    folder.file("d1.csv", "10")
    folder.file("d2.csv", "20")
    january, february = LoadScope(path="2018-01"), LoadScope(path="2018-02")
    await folder.run("d1.csv", order_matters=True, scope=january).load()
    await folder.run("d2.csv", order_matters=True, scope=february).load()
    folder.file("d3.csv", "10")
    await refused(folder, "d3.csv", because="already published", scope=january)


async def test_a_file_that_grew_is_loaded_whole_and_the_report_says_so(folder: Folder) -> None:
    """An earlier version said nothing, and rows of the first content were in the table twice."""
    folder.file("a.csv", "1")
    folder.file("b.csv", "2")
    assert (await folder.run("*.csv").load()).summary == ""
    folder.file("a.csv", "1\n3")
    summary = (await folder.run("*.csv").load()).summary
    assert "1 file loaded, 1 left out: loaded before by run w-r1" in summary
    assert "a.csv was loaded before with other content (run w-r1, " in summary
    assert "are in t.x twice now" in summary and "`mode: merge` with keys" in summary
    folder.file("a.csv", "4")
    folder.file("b.csv", "5")
    assert (
        "a.csv and 1 file more were loaded before with other content (run w-r2"
        in (await folder.run("*.csv", again=True).load()).summary
    )
    folder.file("a.csv", "6")
    assert (await folder.run("a.csv", order_matters=True).load()).summary == "", "a merge updates the rows"


async def test_a_file_that_grew_between_its_partitions_has_no_row_twice(folder: Folder) -> None:
    folder.file("a.csv", "1")
    await folder.run("a.csv", scope=LoadScope(content="2018-01")).load()
    folder.file("a.csv", "1\n2")
    assert (await folder.run("a.csv", scope=LoadScope(content="2018-02")).load()).summary == ""
    again = {"scope": LoadScope(content="2018-01"), "order_matters": False}
    await refused(folder, "a.csv", because=r"run w-r1 loaded it .* for 2018-01, and .* the same rows again", **again)
    assert "(run w-r1, " in (await folder.run("a.csv", again=True, **again).load()).summary
    folder.file("a.csv", "1\n2\n3")
    assert (await folder.run("a.csv", order_matters=True, scope=LoadScope(content="2018-01")).load()).summary == ""


async def test_a_run_that_waited_is_not_merged_beside_other_content_of_its_file(folder: Folder) -> None:
    file = folder.file("a.csv", "1")
    waiting = folder.run("a.csv")
    branch, selected = await waiting.write()
    file.write_text("2")
    await folder.run("a.csv").load()
    assert not waiting.publish(branch, selected).merged
    rebased = rebase(folder.lake, waiting, branch, selected)
    assert "a.csv: run w-r2 loaded it into t.x" in rebased.why_not
    file.write_text("1")
    with pytest.raises(ApplicationError, match=r"main contains other content of .*a\.csv: run w-r2"):
        await waiting.select(waiting.open())
