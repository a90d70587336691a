"""Rows are not requeued after their file was loaded again with other content."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.publishing.plan_publish import PlanPublishActivity
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.publish import PlanPublishInput
from sluice.contracts.references import BranchRef
from sluice.pipeline.scope import LoadScope
from sluice.pipeline.write import Write
from sluice.publishing.commit_properties import RELEASED_RUN, RUN_ID
from sluice.publishing.load_properties import requeue_properties
from sluice.publishing.older_rows import may_be_older
from tests.harness.activity import run_activity
from tests.harness.branch_run import Run
from tests.harness.loading_run import Folder, roll_back

REQUEUE = Write(mode="requeue", statements=["DELETE FROM t.x__quarantine"])


def requeue(folder: Folder, name: str, runs: Sequence[str], *, over_younger: bool = False) -> BranchRef:
    """Open the branch of a run that requeues rows of some runs of a pipeline that appends."""
    order = LoadOrder(files_of_runs=list(runs), over_younger=over_younger)
    return Run(folder.lake, name).open(write=REQUEUE, order=order)


async def test_rows_of_a_corrected_file_are_requeued_only_if_somebody_says_so(folder: Folder) -> None:
    file = folder.file("a.csv", "1")
    folder.file("b.csv", "7")
    first = folder.run("a.csv")
    await first.load()
    other = folder.run("b.csv")
    await other.load()
    assert requeue(folder, "q1", [first.ref.run_id, other.ref.run_id])
    file.write_text("2")
    corrected = folder.run("a.csv")
    await corrected.load()
    refused = r"other content of .*a\.csv: run w-r3 loaded it .* after run r1-0* quarantined rows .* --over-younger"
    for runs in ([first.ref.run_id], [other.ref.run_id, first.ref.run_id]):
        with pytest.raises(ApplicationError, match=refused) as error:
            requeue(folder, "q2", runs)
        assert error.value.type == "InvalidInput"
    assert requeue(folder, "q3", [other.ref.run_id])
    assert requeue(folder, "q4", [corrected.ref.run_id]), "its own content is the latest"
    assert requeue(folder, "q5", [first.ref.run_id], over_younger=True)
    roll_back(folder.lake, "back", corrected.ref.run_id)
    assert requeue(folder, "q6", [first.ref.run_id])


@pytest.mark.parametrize(
    ("loaded", "corrected", "is_refused"),
    [
        ("2018-01", "2018-02", False),
        ("2018-01", "2018-01", True),
        ("2018-01", "2018", True),
        ("2018-01", "", True),
        ("", "2018-01", True),
    ],
)
async def test_a_part_of_the_file_corrects_its_own_rows(
    folder: Folder, loaded: str, corrected: str, is_refused: bool
) -> None:
    file = folder.file("a.csv", "1")
    first = folder.run("a.csv", scope=LoadScope(content=loaded))
    await first.load()
    file.write_text("2")
    await folder.run("a.csv", scope=LoadScope(content=corrected), again=True).load()
    if not is_refused:
        assert requeue(folder, "q1", [first.ref.run_id])
        return
    with pytest.raises(ApplicationError, match=r"main contains other content of .*a\.csv"):
        requeue(folder, "q1", [first.ref.run_id])


async def test_rows_that_a_requeue_quarantined_again_came_from_the_files_of_the_first_run(folder: Folder) -> None:
    file = folder.file("a.csv", "1")
    first = folder.run("a.csv")
    await first.load()
    requeued = requeue_properties(LoadOrder(files_of_runs=[first.ref.run_id]))
    head = folder.lake.catalog.head("main")
    folder.lake.catalog.commit_tables("main", head, "requeue", properties={RUN_ID: "q1", **requeued})
    assert requeue(folder, "q2", ["q1"])
    file.write_text("2")
    await folder.run("a.csv").load()
    with pytest.raises(ApplicationError, match=r"main contains other content of .*a\.csv"):
        requeue(folder, "q3", ["q1"])


async def test_runs_that_main_does_not_know_are_refused(folder: Folder) -> None:
    """Such as the partitions of a joint publish."""
    folder.file("a.csv", "1")
    first = folder.run("a.csv")
    await first.load()
    with pytest.raises(ApplicationError, match=r"main has no commit of run partition-1.* --run; .* --over-younger"):
        requeue(folder, "q1", [first.ref.run_id, "partition-1"])
    assert requeue(folder, "q2", ["partition-1"], over_younger=True)


async def test_a_manifest_that_is_gone_is_refused_with_the_option_of_a_requeue(folder: Folder) -> None:
    file = folder.file("a.csv", "1")
    first = folder.run("a.csv")
    selected = await first.load()
    file.write_text("2")
    await folder.run("a.csv").load()
    Path(selected.manifest.location.removeprefix("file://")).unlink()
    with pytest.raises(ApplicationError, match="A requeue has --over-younger instead of --again"):
        requeue(folder, "q1", [first.ref.run_id])


async def test_rows_of_a_table_that_was_dropped_are_requeued_only_if_somebody_says_so(folder: Folder) -> None:
    """Its quarantine table stayed, and its file was loaded again: a requeue published the bad row twice."""
    folder.file("a.csv", "1")
    first = folder.run("a.csv")
    await first.load()
    folder.lake.recreate("t.x")
    second = folder.run("a.csv")
    await second.load()
    for runs in ([first.ref.run_id], [first.ref.run_id, second.ref.run_id]):
        with pytest.raises(ApplicationError, match=r"t\.x was dropped and created again .* --run; .* --over-younger"):
            requeue(folder, "q1", runs)
    assert requeue(folder, "q2", [second.ref.run_id])
    assert requeue(folder, "q3", [first.ref.run_id], over_younger=True)


async def test_main_is_asked_before_the_start(folder: Folder) -> None:
    file = folder.file("a.csv", "1")
    first = folder.run("a.csv")
    await first.load()
    planning = PlanPublishActivity(folder.lake.catalog, {}, folder.lake.loaded_files).plan_publish
    order = LoadOrder(files_of_runs=[first.ref.run_id])
    given: dict[str, Any] = {"tables": ["t.x", "t.x__quarantine"], "write": REQUEUE, "order": order}
    assert may_be_older(order, REQUEUE, given["tables"])
    assert run_activity(planning, PlanPublishInput(pipeline="p", **given)).guarantee == "atomic"
    file.write_text("2")
    await folder.run("a.csv").load()
    with pytest.raises(ApplicationError, match=r"main contains other content of .*a\.csv"):
        run_activity(planning, PlanPublishInput(pipeline="p", **given))


@pytest.mark.parametrize("options", [{"policy": "reload"}, {"loads_all_contents": True}])
async def test_both_contents_are_wanted(folder: Folder, options: dict[str, object]) -> None:
    """Their pipeline loads files again each time, or the landing zone each content."""
    file = folder.file("a.csv", "1")
    first = folder.run("a.csv", **options)
    await first.load()
    file.write_text("2")
    await folder.run("a.csv", **options).load()
    assert requeue(folder, "q1", [first.ref.run_id])


async def test_rows_of_a_release_came_with_the_files_of_the_quarantined_run(folder: Folder) -> None:
    file = folder.file("a.csv", "1")
    release = folder.run("a.csv")
    branch, selected = await release.write()
    assert release.publish(branch, selected, **{RELEASED_RUN: "quarantined"}).merged
    folder.lake.catalog.delete_branch(branch.name)
    assert requeue(folder, "q1", ["quarantined"])
    file.write_text("2")
    await folder.run("a.csv").load()
    with pytest.raises(ApplicationError, match=r"main contains other content of .*a\.csv"):
        requeue(folder, "q2", ["quarantined"])
