"""The content that a run requests for the merge commit, and the summary of the run at each stage."""

from temporalio.exceptions import ApplicationError

from sluice.contracts.existing_rows import ExistingRowsResult, Resume, ResumeBranchInput
from sluice.contracts.publish import Publication, PublishBranchInput
from sluice.contracts.table_changes import TableChange
from sluice.contracts.write import VerifyWriteInput, WriteResult
from sluice.pipeline.publish_options import PublishOptions
from sluice.presentation.web_ui import details
from sluice.publishing.commit_properties import METADATA
from tests.harness.workflow import HEAD, MERGED, WorkflowHarness, fails_for_good
from workflows.write_audit_publish import WriteAuditPublish

STATED = PublishOptions(message="Load {table}", metadata={"owner": "ana"})


def _noted(harness: WorkflowHarness) -> list[PublishBranchInput]:
    """Return a list that collects the input of each merge."""
    asked: list[PublishBranchInput] = []

    async def publish(given: PublishBranchInput, _: int) -> Publication:
        asked.append(given)
        return MERGED

    harness.fakes.overrides["publish_branch"] = publish
    return asked


async def test_a_merge_has_the_message_and_metadata_of_its_pipeline_as_they_are(harness: WorkflowHarness) -> None:
    asked = _noted(harness)
    result = await harness.end(await harness.start(commit=STATED))
    assert (asked[0].commit.message, asked[0].commit.properties[METADATA + "owner"]) == ("Load {table}", "ana")
    assert result.publish == STATED


async def test_without_any_the_message_is_the_default_one(harness: WorkflowHarness) -> None:
    asked = _noted(harness)
    result = await harness.end(await harness.start())
    assert asked[0].commit.message == f"Publish t.x from p ({result.workflow_id})"
    assert not [key for key in asked[0].commit.properties if key.startswith(METADATA)]


async def test_a_release_has_the_default_message_and_the_metadata_of_the_quarantined_run(
    harness: WorkflowHarness,
) -> None:
    asked = _noted(harness)
    resume = Resume(branch="quarantine/p/2026-01-31/r", run_id="r", base="b", head=HEAD)
    result = await harness.end(await harness.start(resume=resume, commit=STATED))
    assert asked[0].commit.message == f"Publish t.x from p ({result.workflow_id})"
    assert asked[0].commit.properties[METADATA + "owner"] == "ana"


async def test_a_release_may_be_published_one_by_one_if_its_pipeline_allows_it(harness: WorkflowHarness) -> None:
    asked: list[ResumeBranchInput] = []

    async def resume_branch(given: ResumeBranchInput, _: int) -> ExistingRowsResult:
        asked.append(given)
        raise ApplicationError("enough", non_retryable=True)

    harness.fakes.overrides["resume_branch"] = resume_branch
    resume = Resume(branch="quarantine/p/2026-01-31/r", run_id="r", base="b", head=HEAD)
    for options in (PublishOptions(allow_partial=True), PublishOptions()):
        await harness.end(await harness.start(resume=resume, commit=options))
    assert [each.allow_partial for each in asked] == [True, False]


async def test_the_guarantee_is_shown_before_there_is_a_branch(harness: WorkflowHarness) -> None:
    """A worker stated it before the start; the branch states it again."""
    harness.fakes.overrides["open_branch"] = fails_for_good
    handle = await harness.start(guarantee="checked")
    result = await harness.end(handle)
    assert (result.branch, result.guarantee) == (None, "checked")
    assert "Guarantee: checked: one request for all tables" in details(await handle.query(WriteAuditPublish.status))


async def test_the_summary_is_that_of_the_present_write(harness: WorkflowHarness) -> None:
    """An attempt that fails before the verification of its write leaves no summary."""
    _noted(harness)
    tables = {"t.x": TableChange(operation="append", added_rows=3, created=True)}

    async def verify(_: VerifyWriteInput, __: int) -> WriteResult:
        return WriteResult(head=HEAD, tables=tables)

    harness.fakes.overrides["verify_write"] = verify
    handle = await harness.start()
    result = await harness.end(handle)
    status = await handle.query(WriteAuditPublish.status)
    assert result.summary == status.result.summary
    assert result.summary and (result.summary.added, result.summary.new_tables) == (3, ["t.x"])
    harness.fakes.overrides["verify_write"] = fails_for_good
    assert (await harness.end(await harness.start())).summary is None
