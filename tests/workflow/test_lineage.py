"""OpenLineage events next to the steps of a run: the events that it sends, and that no step waits for them."""

import asyncio
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditResult
from sluice.contracts.lineage import EmitLineageInput
from sluice.contracts.run import RunResult
from sluice.contracts.run_request import Policy
from sluice.contracts.table_changes import TableChange
from sluice.contracts.write import ChangedTable, TableVersionRef, WriteResult
from tests.harness.workflow import HEAD, WorkflowHarness, fails_for_good, fails_with_a_bug
from workflows.activity_calls import ActivityCalls
from workflows.lineage import lineage

NEW = TableVersionRef(metadata_location="file:///lake/t/x/metadata/1.metadata.json", snapshot_id=1)


class Receiver:
    """A receiver of events in place of `emit_lineage`.

    Steps wait for no event, and the end of a run drops the events that still wait. If a test counts events,
    `heard_of_write` delays the audit until RUNNING has arrived.
    """

    def __init__(self, harness: WorkflowHarness) -> None:
        self.events: list[EmitLineageInput] = []
        self.heard_of_write = asyncio.Event()
        harness.fakes.overrides |= {
            "can_emit_lineage": self._is_there,
            "emit_lineage": self._take,
            "verify_write": self._written,
        }

    @property
    def types(self) -> list[str]:
        return [event.event for event in self.events]

    async def _is_there(self, _: Any, __: int) -> bool:
        return True

    async def _take(self, event: EmitLineageInput, _: int) -> None:
        self.events.append(event)
        if event.event == "RUNNING":
            self.heard_of_write.set()

    async def audit_afterwards(self, _: Any, __: int) -> AuditResult:
        await self.heard_of_write.wait()
        return AuditResult(decided=[])

    async def _written(self, _: Any, __: int) -> WriteResult:
        changes = {"t.x": TableChange(operation="append", added_rows=2)}
        return WriteResult(head=HEAD, tables=changes, versions={"t.x": ChangedTable(after=NEW)})


async def run(harness: WorkflowHarness, **pipeline: Any) -> RunResult:
    return await harness.end(await harness.start(**pipeline))


async def test_a_published_run(harness: WorkflowHarness) -> None:
    receiver = Receiver(harness)
    harness.fakes.overrides["audit_branch"] = receiver.audit_afterwards
    result = await run(harness)
    assert (result.outcome, receiver.types) == ("published", ["START", "RUNNING", "COMPLETE"])
    assert [event.run_ref.run_id for event in receiver.events] == [result.run_id] * 3
    assert [[table.name for table in event.published] for event in receiver.events] == [[], [], ["t.x"]]
    times = [event.at for event in receiver.events]
    assert times == sorted(times)


async def test_a_run_that_its_audit_keeps_out(harness: WorkflowHarness) -> None:
    receiver = Receiver(harness)

    async def fails(_: Any, __: int) -> AuditResult:
        await receiver.heard_of_write.wait()
        return AuditResult(decided=[CheckResult(table="t.x", index=0, check="row_count", columns=[], verdict="fail")])

    harness.fakes.overrides["audit_branch"] = fails
    result = await run(harness, tables={"t.x": {"checks": [{"check": "row_count", "min": 1}]}})
    assert (result.outcome, receiver.types) == ("quarantined", ["START", "RUNNING", "ABORT"])
    last = receiver.events[-1]
    assert last.published == [] and [each.passed for each in last.checks] == [False]
    assert last.tags["sluice_quarantine"] == result.branch


async def test_a_failed_run(harness: WorkflowHarness) -> None:
    receiver = Receiver(harness)
    harness.fakes.overrides["write_table"] = fails_for_good
    result = await run(harness)
    assert (result.outcome, receiver.types) == ("failed", ["START", "FAIL"])
    assert receiver.events[-1].error == result.reason


async def test_a_run_that_is_not_answered_in_time(harness: WorkflowHarness) -> None:
    receiver = Receiver(harness)
    harness.fakes.overrides["audit_branch"] = receiver.audit_afterwards
    result = await run(harness, approval={"timeout": "3d"})
    assert (result.cause, receiver.types) == ("expired", ["START", "RUNNING", "ABORT"])


async def test_a_cancelled_run(real_time_harness: WorkflowHarness) -> None:
    harness = real_time_harness
    receiver = Receiver(harness)
    entered = asyncio.Event()

    async def slow(_: Any, __: int) -> None:
        entered.set()
        await asyncio.sleep(1)

    harness.fakes.overrides["write_table"] = slow
    handle = await harness.start()
    await entered.wait()
    await handle.cancel()
    result = await harness.end(handle)
    assert (result.outcome, receiver.types) == ("cancelled", ["START", "ABORT"])


async def test_a_second_attempt_sends_no_event_twice(harness: WorkflowHarness) -> None:
    receiver = Receiver(harness)

    async def fails_once(_: Any, call: int) -> AuditResult | WriteResult:
        if call == 1:
            raise ApplicationError("it moved", type="JobFailed")
        return await receiver._written(_, call)

    harness.fakes.overrides |= {"verify_write": fails_once, "audit_branch": receiver.audit_afterwards}
    result = await run(harness)
    assert result.outcome == "published"
    assert receiver.types == ["START", "RUNNING", "COMPLETE"]


async def test_a_receiver_that_cannot_be_asked_for_changes_nothing(harness: WorkflowHarness) -> None:
    Receiver(harness)
    harness.fakes.overrides["can_emit_lineage"] = fails_with_a_bug
    assert (await run(harness)).outcome == "published"
    assert "emit_lineage" not in harness.fakes.calls


async def test_a_receiver_that_fails_changes_nothing(harness: WorkflowHarness) -> None:
    receiver = Receiver(harness)

    async def fails(event: EmitLineageInput, call: int) -> None:
        await receiver._take(event, call)
        await fails_with_a_bug(event, call)

    harness.fakes.overrides |= {"emit_lineage": fails, "audit_branch": receiver.audit_afterwards}
    assert (await run(harness)).outcome == "published"
    assert receiver.types == ["START", "RUNNING", "COMPLETE"]


async def test_no_step_waits_for_a_receiver_that_hangs_and_the_end_does_not_for_long(harness: WorkflowHarness) -> None:
    receiver = Receiver(harness)

    async def hangs(event: EmitLineageInput, _: int) -> None:
        receiver.events.append(event)
        await asyncio.sleep(3600)

    harness.fakes.overrides["emit_lineage"] = hangs
    handle = await harness.start()
    result = await harness.end(handle)
    described = await handle.describe()
    assert result.outcome == "published" and described.close_time
    assert ActivityCalls.emit_lineage.total_timeout is not None
    limit = ActivityCalls.emit_lineage.total_timeout(Policy(), None)
    total = (described.close_time - described.start_time).total_seconds()
    assert total < 3 * limit, "the end waited for more than two"
    assert result.timings["total"] < limit, "the steps waited"
    assert {event.event for event in receiver.events} == {"START", "COMPLETE"}, "one that waits is left out"


async def test_a_mistake_in_the_description_of_an_event_changes_nothing(
    harness: WorkflowHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver(harness)

    def mistaken(event: str, *_: Any, **__: Any) -> EmitLineageInput:
        raise KeyError(event)

    monkeypatch.setattr(lineage, "describe_event", mistaken)
    assert (await run(harness)).outcome == "published"
    assert receiver.events == [] and "can_emit_lineage" in harness.fakes.calls


async def test_without_a_receiver_nothing_is_described(harness: WorkflowHarness) -> None:
    assert (await run(harness)).outcome == "published"
    assert harness.fakes.calls.count("can_emit_lineage") == 1 and "emit_lineage" not in harness.fakes.calls


async def test_a_check_sends_none(harness: WorkflowHarness) -> None:
    """The person who starts such a run follows the run itself."""
    Receiver(harness)
    await harness.end(await harness.start(publish=False))
    assert "can_emit_lineage" not in harness.fakes.calls
