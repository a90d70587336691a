"""An append that waited is not published after its pipeline was edited to replace rows, and did so."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from tests.harness.loading_run import TABLE, Folder, rebase, release_plan, roll_back, row_of

OVERWRITE = {"policy": "reload", "order_matters": True, "replaced": "table"}
MERGE = {"order_matters": True, "replaces": False}
REPLACED = r"run w-r3 of another version of this pipeline, .* wrote t\.x after the files of this input were selected"


@pytest.mark.parametrize("edited", [OVERWRITE, MERGE], ids=["overwrite", "merge"])
@pytest.mark.parametrize("policy", ["skip", "reload"])
async def test_an_append_is_not_rebased_onto_rows_that_its_pipeline_replaced(
    folder: Folder, edited: dict[str, Any], policy: str
) -> None:
    """In an earlier version, the rows of `a.csv` were on main twice: `full.csv` has them, too."""
    folder.file("first.csv", "0")
    await folder.run("first.csv").load()
    a = folder.file("a.csv", "1")
    waiting = folder.run("a.csv", policy=policy)
    branch, selected = await waiting.write()
    folder.file("full.csv", "1, 2")
    replacing = folder.run("full.csv", **edited)
    await replacing.load()
    before = folder.lake.ids(TABLE)
    assert waiting.publish(branch, selected).conflicts == [TABLE]
    refused = rebase(folder.lake, waiting, branch, selected)
    assert refused.branch is None and "another version of this pipeline" in refused.why_not
    with pytest.raises(ApplicationError, match=f"{REPLACED}.*Start the pipeline again") as error:
        await waiting.write()
    assert error.value.type == "InputChanged" and folder.lake.ids(TABLE) == before
    roll_back(folder.lake, "back", replacing.ref.run_id)
    assert waiting.publish(*await waiting.write()).merged
    assert row_of(a) in folder.lake.ids(TABLE)


async def test_an_append_is_rebased_onto_rows_that_another_pipeline_replaced(folder: Folder) -> None:
    folder.file("first.csv", "0")
    await folder.run("first.csv").load()
    folder.file("a.csv", "1")
    waiting = folder.run("a.csv")
    branch, selected = await waiting.write()
    folder.file("full.csv", "2")
    await folder.run("full.csv", pipeline="q", **OVERWRITE).load()
    rebased = rebase(folder.lake, waiting, branch, selected)
    assert rebased.branch and waiting.publish(rebased.branch, selected).merged
    assert len(folder.lake.ids(TABLE)) == 2


@pytest.mark.parametrize("policy", ["skip", "reload"])
async def test_a_quarantined_append_is_not_released_after_its_pipeline_replaced_rows(
    folder: Folder, policy: str
) -> None:
    folder.file("first.csv", "0")
    await folder.run("first.csv").load()
    folder.file("a.csv", "1")
    kept = folder.run("a.csv", policy=policy)
    await kept.quarantine()
    assert release_plan(folder.lake, kept.ref.run_id)
    folder.file("full.csv", "1, 2")
    await folder.run("full.csv", **OVERWRITE).load()
    with pytest.raises(ApplicationError, match=f"{REPLACED}.*add --again"):
        release_plan(folder.lake, kept.ref.run_id)
