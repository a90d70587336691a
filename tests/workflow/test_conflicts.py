"""The order of things when main moves under a run: rebased, or rewritten."""

from typing import Any

from sluice.contracts.existing_rows import RebaseResult
from sluice.contracts.publish import FindConflictsInput, Publication, PublishBranchInput
from sluice.contracts.write import TableChange, WriteResult
from tests.harness.workflow import HEAD, MERGED, NEWER, WorkflowHarness, fails_with_a_bug


async def _refuse_to_take_over(_: Any, __: int) -> RebaseResult:
    return RebaseResult(why_not="it overwrites")


async def test_main_moved_so_the_files_are_taken_over_and_audited_again(harness: WorkflowHarness) -> None:
    async def collide(order: PublishBranchInput, times: int) -> Publication:
        if times == 1:
            return Publication(merged=False, conflicts=["t.x"])
        assert (order.head, order.branch.name[-2:]) == (NEWER, "a2")
        return MERGED

    harness.fakes.overrides["publish_branch"] = collide
    result = await harness.end(await harness.start())
    assert (result.outcome, result.attempts, result.audited_hash) == ("published", 2, NEWER)
    assert [(each.tables, each.resolved) for each in result.conflicts] == [(["t.x"], "rebased")]
    assert harness.fakes.calls.count("write_table") == 1 and harness.fakes.calls.count("audit_branch") == 2


async def test_a_conflict_is_seen_before_the_audit_and_before_people_are_asked(harness: WorkflowHarness) -> None:
    async def moved_already(_: Any, __: int) -> WriteResult:
        return WriteResult(head=HEAD, tables={"t.x": TableChange(operation="append")}, conflicts=["t.x"])

    async def moved(order: FindConflictsInput, times: int) -> list[str]:
        return ["t.x"] if times == 1 else []

    harness.fakes.overrides["verify_write"] = moved_already
    harness.fakes.overrides["find_conflicts"] = moved
    handle = await harness.start(approval={"timeout": "1h"})
    result = await harness.end(handle)  # nobody answers
    assert (result.cause, result.attempts, len(result.conflicts)) == ("expired", 3, 2)
    activities = [
        name for name in harness.fakes.calls if name in ("audit_branch", "rebase_branch", "notify", "write_table")
    ]
    assert activities == [
        "write_table",
        "rebase_branch",
        "audit_branch",
        "rebase_branch",
        "audit_branch",
        "notify",
        "notify",
    ]


async def test_a_take_over_that_breaks_off_leaves_neither_branch(harness: WorkflowHarness) -> None:
    discarded = []

    async def collide(_: Any, __: int) -> Publication:
        return Publication(merged=False, conflicts=["t.x"])

    async def note(name: str, _: int) -> None:
        discarded.append(name[-2:])

    harness.fakes.overrides |= {"publish_branch": collide, "rebase_branch": fails_with_a_bug, "discard_branch": note}
    result = await harness.end(await harness.start(on_failure="discard"))
    assert result.outcome == "failed" and discarded == ["a2"]
    assert harness.fakes.calls.count("quarantine_branch") == 1


async def test_main_that_always_moves_ends_the_run(harness: WorkflowHarness) -> None:
    async def always(_: Any, __: int) -> Publication:
        return Publication(merged=False, conflicts=["t.x"])

    harness.fakes.overrides["publish_branch"] = always
    result = await harness.end(await harness.start())
    assert (result.outcome, result.attempts, len(result.conflicts)) == ("failed", 101, 100)


async def test_main_moved_so_the_write_is_done_again(harness: WorkflowHarness) -> None:
    harness.fakes.overrides["rebase_branch"] = _refuse_to_take_over

    async def collide(_: Any, times: int) -> Publication:
        return MERGED if times > 1 else Publication(merged=False, conflicts=["t.x"])

    harness.fakes.overrides["publish_branch"] = collide
    result = await harness.end(await harness.start())
    assert (result.outcome, result.attempts) == ("published", 2)

    async def always(_: Any, __: int) -> Publication:
        return Publication(merged=False, conflicts=["t.x"])

    harness.fakes.overrides["publish_branch"] = always
    result = await harness.end(await harness.start())
    assert (result.outcome, result.attempts) == ("failed", 3)
    assert "main changed t.x" in result.reason
