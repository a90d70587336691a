"""The refusal of a start that does not fit the backfill under way."""

import pytest

from sluice.backfills.progress import BackfillProgress
from sluice.backfills.requests import problem_of_addition, problem_of_edit
from sluice.contracts.backfill import AddPartitions, BackfillInput, BackfillState
from sluice.contracts.starting import PipelineText

PIPELINE = PipelineText(name="rides.yml", text="name: rides\n", folder="/home/ana/lake")
EDITED = PIPELINE.model_copy(update={"text": "name: rides\ntables: [b.rides]\n"})
IN_OTHER_FOLDER = PIPELINE.model_copy(update={"folder": "/home/bo/lake"})


def problem(pipeline: PipelineText, *partitions: str, running: bool = False) -> str:
    """Return the problem of a start during a paused backfill, of which 2018-02 and 2018-03 wait."""
    progress = BackfillProgress(BackfillState(partitions=["2018-02", "2018-03"], paused="by ana"))
    if running:
        progress.started("2018-02")
    input = BackfillInput(pipeline=PIPELINE, name="rides", starter="ana", progress=progress.state)
    added = AddPartitions(pipeline=pipeline, partitions=[*partitions], starter="bo")
    return problem_of_edit(input, progress, added) or problem_of_addition(input, progress, added)


@pytest.mark.parametrize("partitions", [("2021-01",), ("2018-02", "2018-03"), ("2018-02", "2018-03", "2021-01")])
def test_the_same_file_adds_any_partitions(partitions: tuple[str, ...]) -> None:
    assert problem(PIPELINE, *partitions) == ""


def test_an_edited_file_is_refused_for_partitions_that_the_start_does_not_name() -> None:
    """Ana's partitions would run with the file of Bo, into tables that he never meant for them."""
    assert problem(EDITED, "2018-02", "2018-03") == problem(EDITED, "2018-02", "2018-03", "2021-01") == ""
    assert "has 2 more partitions that would run with it, 2018-02 for example" in problem(EDITED, "2021-01")
    assert "has 1 more partition that would run with it, 2018-03" in problem(EDITED, "2018-02")
    assert "another version of the pipeline" in problem(EDITED, "2018-02", "2018-03", running=True)


def test_a_file_of_another_folder_is_refused() -> None:
    """Its relative paths name other files."""
    for running in (False, True):
        why = problem(IN_OTHER_FOLDER, "2018-02", "2018-03", running=running)
        assert "was started in /home/ana/lake, from rides.yml" in why


def test_another_spelling_of_the_path_is_no_edit() -> None:
    assert problem(PIPELINE.model_copy(update={"name": "./rides.yml"}), "2021-01") == ""
