"""The refusal of an input that main contains says if another version of the pipeline loaded it."""

import pytest
from temporalio.exceptions import ApplicationError

from sluice.publishing.commit_properties import INPUT, PIPELINE, PIPELINE_DIGEST, RUN_ID, WORKFLOW_ID
from tests.harness.branch_run import Run
from tests.harness.loading_run import Folder
from tests.harness.memory_lake import MemoryLake

EDITED = "The pipeline, or a value of its placeholders, differs from that of run w-r1: this alone does not load"


@pytest.mark.parametrize(
    ("digest", "name", "has_hint"), [("new", "p", True), ("old", "p", False), ("", "p", False), ("new", "q", False)]
)
async def test_files_that_another_version_loaded(folder: Folder, digest: str, name: str, has_hint: bool) -> None:
    folder.file("a.csv", "1")
    first = folder.run()
    branch, selected = await first.write()
    assert first.publish(branch, selected, **{PIPELINE_DIGEST: "old"}).merged
    folder.lake.catalog.delete_branch(branch.name)
    second = folder.run(pipeline=name)
    second.pipeline_digest = digest
    with pytest.raises(ApplicationError, match="already published") as refused:
        await second.write()
    assert (EDITED in str(refused.value), refused.value.type) == (has_hint, "AlreadyPublished")


@pytest.mark.parametrize(("digest", "has_hint"), [("new", True), ("old", False)])
def test_an_input_that_another_version_loaded(lake: MemoryLake, digest: str, has_hint: bool) -> None:
    published = {RUN_ID: "r1", WORKFLOW_ID: "w-r1", PIPELINE: "p", INPUT: "set of files", PIPELINE_DIGEST: "old"}
    lake.catalog.commit_tables("main", lake.catalog.head("main"), "published", properties=published)
    with pytest.raises(ApplicationError, match=r"published by p already.* add --again") as refused:
        Run(lake, "r2").open(input_digest="set of files", pipeline_digest=digest)
    assert (EDITED in str(refused.value)) == has_hint
