"""Rows are not requeued after their file was loaded again with other content."""

from collections.abc import Sequence

import pytest
from temporalio.exceptions import ApplicationError

from sluice.contracts.load_order import LoadOrder
from sluice.contracts.references import BranchRef
from sluice.pipeline.scope import LoadScope
from sluice.pipeline.write import Write
from sluice.publishing.commit_properties import RELEASED_RUN
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
    assert requeue(folder, "q1", [first.ref.run_id, other.ref.run_id, "unknown"])
    file.write_text("2")
    corrected = folder.run("a.csv")
    await corrected.load()
    refused = r"main contains other content of .*a\.csv: run w-r3 loaded it .*Requeue the rows of other runs by --run"
    for runs in ([first.ref.run_id], [other.ref.run_id, first.ref.run_id]):
        with pytest.raises(ApplicationError, match=refused) as error:
            requeue(folder, "q2", runs)
        assert error.value.type == "InvalidInput"
    assert requeue(folder, "q3", [other.ref.run_id])
    assert requeue(folder, "q4", [corrected.ref.run_id]), "its own content is the latest"
    assert requeue(folder, "q5", [first.ref.run_id], over_younger=True)
    roll_back(folder.lake, "back", corrected.ref.run_id)
    assert requeue(folder, "q6", [first.ref.run_id])


async def test_another_partition_of_the_file_corrects_nothing(folder: Folder) -> None:
    file = folder.file("a.csv", "1")
    first = folder.run("a.csv", scope=LoadScope(content="2018-01"))
    await first.load()
    file.write_text("2")
    await folder.run("a.csv", scope=LoadScope(content="2018-02")).load()
    assert requeue(folder, "q1", [first.ref.run_id])


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
