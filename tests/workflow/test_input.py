"""The order of steps of a run that loads files: each attempt selects them, and the merge checks them again."""

from typing import Any

from temporalio.exceptions import ApplicationError

from sluice.contracts.existing_rows import RebaseBranchInput, RebaseResult
from sluice.contracts.input import PublicationCheck, SelectInputInput
from sluice.contracts.publish import Publication, PublishBranchInput
from sluice.contracts.quarantine import QuarantineBranchInput
from sluice.contracts.selected_input import ManifestRef, SelectedInput
from sluice.contracts.write import JobReport, WriteTableInput
from sluice.publishing.commit_properties import INPUT, INPUT_TABLES, MANIFEST, MANIFEST_DIGEST
from tests.harness.workflow import MANIFEST as FIRST
from tests.harness.workflow import MERGED, WorkflowHarness, fails_for_good

WRITE = {"source": {"path": "/in/*.csv"}}
SECOND = ManifestRef(location="lake/a2.jsonl", digest="d2")


async def test_files_are_selected_between_the_opening_and_the_write(harness: WorkflowHarness) -> None:

    async def note(input: PublishBranchInput, _: int) -> Publication:
        assert input.main.published == PublicationCheck(tables=["t.x"], manifest=FIRST)
        assert [input.commit.properties[key] for key in (INPUT, MANIFEST, MANIFEST_DIGEST, INPUT_TABLES)] == [
            *("d", FIRST.location, FIRST.digest, '["t.x"]')
        ]
        return MERGED

    async def load(input: WriteTableInput, _: int) -> JobReport:
        assert input.manifest == FIRST
        return JobReport()

    harness.fakes.overrides |= {"publish_branch": note, "write_table": load}
    result = await harness.end(await harness.start(write=WRITE))
    assert result.outcome == "published" and result.input and result.input.manifest == FIRST
    assert harness.fakes.steps[:3] == ["open_branch", "select_input", "write_table"]


async def test_a_run_whose_files_are_all_loaded_ends_without_a_write(harness: WorkflowHarness) -> None:
    async def refuse(_: SelectInputInput, __: int) -> Any:
        raise ApplicationError("loaded by run w", type="AlreadyPublished", non_retryable=True)

    harness.fakes.overrides["select_input"] = refuse
    result = await harness.end(await harness.start(write=WRITE))
    assert (result.outcome, result.cause, result.reason) == ("skipped", "already_published", "loaded by run w")
    assert "write_table" not in harness.fakes.calls and "quarantine_branch" not in harness.fakes.calls
    assert harness.fakes.calls.count("discard_branch") == 1


async def test_shared_files_are_left_out_by_the_next_attempt(harness: WorkflowHarness) -> None:
    async def select(input: SelectInputInput, times: int) -> SelectedInput:
        assert input.listed == (FIRST if times == 2 else None)
        return SelectedInput(manifest=SECOND if times == 2 else FIRST, files=1)

    async def conflict(input: PublishBranchInput, times: int) -> Publication:
        return MERGED if times == 2 else Publication(merged=False, conflicts=["t.x"])

    async def overlap(input: RebaseBranchInput, _: int) -> RebaseResult:
        assert input.published and input.published.manifest == FIRST
        assert input.input_properties[MANIFEST] == FIRST.location
        return RebaseResult(why_not="main contains 1 file of its input already")

    harness.fakes.overrides |= {"select_input": select, "publish_branch": conflict, "rebase_branch": overlap}
    result = await harness.end(await harness.start(write=WRITE))
    assert (result.outcome, result.attempts) == ("published", 2)
    assert result.input and result.input.manifest == SECOND
    assert [(each.resolved, each.why) for each in result.conflicts] == [
        ("rewritten", "main contains 1 file of its input already")
    ]


async def test_a_quarantine_names_the_files_of_its_run(harness: WorkflowHarness) -> None:
    kept: list[QuarantineBranchInput] = []

    async def keep(input: QuarantineBranchInput, _: int) -> str:
        kept.append(input)
        return input.name

    harness.fakes.overrides |= {"quarantine_branch": keep}
    result = await harness.end(await harness.start(write=WRITE, approval={"timeout": "1h"}))
    assert result.cause == "expired"
    assert kept[0].properties[MANIFEST] == FIRST.location and kept[0].properties[INPUT] == "d"


async def test_an_input_without_files_is_asked_for_as_a_whole(harness: WorkflowHarness) -> None:
    async def note(input: PublishBranchInput, _: int) -> Publication:
        assert input.main.published == PublicationCheck(tables=["t.x"], pipeline="p", digest="d")
        return MERGED

    harness.fakes.overrides |= {"publish_branch": note}
    result = await harness.end(await harness.start())
    assert result.outcome == "published" and "select_input" not in harness.fakes.calls


async def test_a_source_that_changed_ends_the_run(harness: WorkflowHarness) -> None:
    harness.fakes.overrides["select_input"] = fails_for_good
    result = await harness.end(await harness.start(write=WRITE))
    assert (result.outcome, result.cause) == ("failed", "invalid")
