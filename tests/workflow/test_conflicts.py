"""The order of steps when main changes during a run: rebase or rewrite."""

import asyncio
import json
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory
from temporalio.exceptions import ApplicationError

from runtime.run.find_run import Handle
from sluice.approval.decisions import Decision
from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditResult
from sluice.contracts.existing_rows import RebaseResult
from sluice.contracts.merge_queue import SLOT_SIGNAL, MergeTicket
from sluice.contracts.publish import (
    ConfirmPublicationInput,
    DiscardBranchInput,
    FindConflictsInput,
    Publication,
    PublishBranchInput,
)
from sluice.contracts.table_changes import TableChange
from sluice.contracts.write import WriteResult
from tests.harness.workflow import HEAD, MERGED, NEWER, WorkflowHarness, fails_with_a_bug
from workflows.write_audit_publish import WriteAuditPublish


async def _refuse_to_take_over(_: Any, __: int) -> RebaseResult:
    return RebaseResult(why_not="it overwrites", compacted=["t.x"])


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


async def test_conflicts_end_before_the_history_is_full(
    harness: WorkflowHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def collide(_: Any, times: int) -> Publication:
        if times == 2:
            monkeypatch.setattr("sluice.publishing.retries.MAX_HISTORY_BYTES", 1)
        return Publication(merged=False, conflicts=["t.x"])

    harness.fakes.overrides["publish_branch"] = collide
    result = await harness.end(await harness.start())
    assert (result.outcome, result.attempts) == ("failed", 2)
    assert result.reason == "main changed t.x again, and the history of the run is too large for another attempt"
    assert "quarantine_branch" in harness.fakes.calls


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

    async def note(order: DiscardBranchInput, _: int) -> None:
        discarded.append(order.branch[-2:])

    harness.fakes.overrides |= {"publish_branch": collide, "rebase_branch": fails_with_a_bug, "discard_branch": note}
    result = await harness.end(await harness.start(on_failure="discard"))
    assert result.outcome == "failed" and discarded == ["a1", "a2"]
    assert harness.fakes.calls.count("quarantine_branch") == 1


_CONFLICT_STEPS = ("publish_branch", "discard_branch", "confirm_publication", "rebase_branch")


@pytest.mark.parametrize("requested", [True, False])
async def test_the_attempt_is_fenced_and_the_run_looked_for_before_it_is_rebased(
    requested: bool, harness: WorkflowHarness
) -> None:
    """If a merge may have been requested, the run waits between fence and search for a merge still in progress."""
    started: list[Handle] = []
    timers: list[int] = []

    async def collide(_: Any, times: int) -> Publication:
        return MERGED if times > 1 else Publication(merged=False, conflicts=["t.x"], merge_requested=requested)

    async def count_timers() -> None:
        events = (await started[0].fetch_history()).events
        timers.append(sum(event.event_type == EventType.EVENT_TYPE_TIMER_FIRED for event in events))

    async def fence(order: DiscardBranchInput, _: int) -> None:
        assert order.catalog_id == "c"
        await count_timers()

    async def look(order: ConfirmPublicationInput, _: int) -> Publication:
        assert (order.run_id, order.since, order.head) == (started[0].result_run_id, "b", HEAD)
        await count_timers()
        return Publication(merged=False)

    harness.fakes.overrides |= {"publish_branch": collide, "discard_branch": fence, "confirm_publication": look}
    started.append(await harness.start())
    assert (await harness.end(started[0])).outcome == "published"
    steps = [name for name in harness.fakes.calls if name in _CONFLICT_STEPS]
    assert steps == [*_CONFLICT_STEPS, "publish_branch", "discard_branch"]
    assert timers[:2] == [0, int(requested)]


async def test_a_merge_that_overtook_the_conflict_is_what_is_published(harness: WorkflowHarness) -> None:
    async def collide(_: Any, __: int) -> Publication:
        return Publication(merged=False, conflicts=["t.x"])

    async def it_is_there(_: Any, __: int) -> Publication:
        return MERGED

    harness.fakes.overrides |= {"publish_branch": collide, "confirm_publication": it_is_there}
    result = await harness.end(await harness.start())
    assert (result.outcome, result.attempts, result.main_after) == ("published", 1, MERGED.main_after)
    assert "rebase_branch" not in harness.fakes.calls


async def test_a_failed_attempt_is_looked_for_too(harness: WorkflowHarness) -> None:
    """A reset of the run, or an older backup of Temporal's database, may hide that an attempt was published."""

    async def fails(_: Any, __: int) -> Any:
        raise ApplicationError("it broke", type="JobFailed")

    async def it_is_there(_: Any, __: int) -> Publication:
        return MERGED

    harness.fakes.overrides |= {"write_table": fails, "confirm_publication": it_is_there}
    result = await harness.end(await harness.start())
    assert (result.outcome, result.attempts) == ("published", 1)


async def test_a_table_that_moved_in_the_moment_of_the_merge_is_named(harness: WorkflowHarness) -> None:
    async def overtaken(_: Any, __: int) -> Publication:
        return MERGED.model_copy(update={"overtaken": ["t.other"]})

    harness.fakes.overrides["publish_branch"] = overtaken
    result = await harness.end(await harness.start())
    assert result.outcome == "published" and "main changed t.other right before the merge" in result.reason


class Queue:
    """Fake of the merge queue, which gives the slot at once and records the requests."""

    def __init__(self, harness: WorkflowHarness) -> None:
        self.harness = harness
        self.requests: list[int] = []
        self.released = 0
        harness.fakes.overrides["acquire_merge_slot"] = self._acquire
        harness.fakes.overrides["release_merge_slot"] = self._release

    async def _acquire(self, ticket: MergeTicket, _: int) -> None:
        self.requests.append(ticket.rebases)
        run = self.harness.client.get_workflow_handle(ticket.workflow_id)
        await run.signal(SLOT_SIGNAL, ticket)

    async def _release(self, _: MergeTicket, __: int) -> None:
        self.released += 1


async def test_a_run_keeps_the_merge_slot_from_its_second_conflict_on(harness: WorkflowHarness) -> None:
    queue = Queue(harness)

    async def collide(input: PublishBranchInput, times: int) -> Publication:
        assert (input.tables, input.has_merge_slot) == (["t.x"], times > 2)
        return MERGED if times == 4 else Publication(merged=False, conflicts=["t.x"])

    harness.fakes.overrides["publish_branch"] = collide
    assert (await harness.end(await harness.start())).outcome == "published"
    assert (queue.requests, queue.released) == ([1, 2], 1)


async def test_a_run_that_waits_for_people_releases_the_merge_slot(harness: WorkflowHarness) -> None:
    queue = Queue(harness)

    async def collide(input: PublishBranchInput, times: int) -> Publication:
        assert not input.has_merge_slot and queue.released == max(0, times - 2)
        return MERGED if times == 3 else Publication(merged=False, conflicts=["t.x"])

    harness.fakes.overrides["publish_branch"] = collide
    handle = await harness.start(approval={"timeout": "1h"})
    for times in (1, 2, 3):
        while harness.fakes.calls.count("find_conflicts") < times or (
            (await handle.query(WriteAuditPublish.status)).stage != "waiting for approval"
        ):
            await asyncio.sleep(0.05)
        await handle.signal(WriteAuditPublish.approve, Decision(by="ana"))
    assert (await harness.end(handle)).outcome == "published"


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
    assert [each.why for each in result.conflicts] == ["it overwrites; main compacted t.x"]

    async def always(_: Any, __: int) -> Publication:
        return Publication(merged=False, conflicts=["t.x"])

    harness.fakes.overrides["publish_branch"] = always
    result = await harness.end(await harness.start())
    assert (result.outcome, result.attempts) == ("failed", 3)
    assert "main changed t.x" in result.reason


def _workflow_tasks(history: WorkflowHistory) -> list[list[str]]:
    """Return the local activities that each workflow task recorded, in order."""
    tasks: list[list[str]] = []
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            tasks.append([])
        elif event.event_type == EventType.EVENT_TYPE_MARKER_RECORDED:
            data = event.marker_recorded_event_attributes.details["data"].payloads[0].data
            tasks[-1].append(json.loads(data)["activity_type"])
    return tasks


async def test_a_conflict_is_in_the_history_before_its_branch_is_deleted(harness: WorkflowHarness) -> None:
    """A worker that is killed after the deletion must not leave the next one to find conflicts of a missing branch."""

    async def moved(_: Any, times: int) -> list[str]:
        return ["t.x"] if times == 1 else []

    harness.fakes.overrides["find_conflicts"] = moved
    handle = await harness.start(approval={"timeout": "1h"})
    await harness.end(handle)
    tasks = _workflow_tasks(await handle.fetch_history())
    (look,) = [number for number, names in enumerate(tasks) if "find_conflicts" in names][:1]
    (deletion,) = [number for number, names in enumerate(tasks) if "discard_branch" in names][:1]
    assert look < deletion, tasks


async def test_a_verdict_is_in_the_history_before_its_branch_is_deleted(harness: WorkflowHarness) -> None:
    async def collide(_: Any, __: int) -> Publication:
        return Publication(merged=False, conflicts=["t.x"])

    async def fails_after_a_rebase(_: Any, times: int) -> AuditResult:
        verdict = CheckResult(
            table="t.x", index=0, check="row_count", columns=[], verdict="fail" if times > 1 else "pass"
        )
        return AuditResult(decided=[verdict])

    harness.fakes.overrides |= {"publish_branch": collide, "audit_branch": fails_after_a_rebase}
    handle = await harness.start(on_failure="discard", tables={"t.x": {"checks": [{"check": "row_count", "min": 1}]}})
    result = await harness.end(handle)
    assert (result.outcome, result.cause) == ("discarded", "audit")
    tasks = _workflow_tasks(await handle.fetch_history())
    verdict = max(number for number, names in enumerate(tasks) if "audit_branch" in names)
    deletion = max(number for number, names in enumerate(tasks) if "discard_branch" in names)
    assert verdict < deletion, tasks
