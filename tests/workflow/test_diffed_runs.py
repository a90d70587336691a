"""The state that a diff of a run compares: its branch while it is under way, and then what it published or left."""

import asyncio

import pytest
from temporalio.exceptions import ApplicationError

from runtime.run.diffed_run import NamedState, find_state
from runtime.run.find_run import Handle
from sluice.approval.decisions import Decision
from sluice.contracts.table_diffs import TableKey
from sluice.errors import InvalidPipeline
from tests.harness.workflow import HEAD, MERGED, WorkflowHarness
from workflows.write_audit_publish import WriteAuditPublish

KEYS = {"t.x": TableKey(columns=["id"], source="unique check")}
UNIQUE = {"t.x": {"checks": [{"check": "unique", "column": "id"}]}}


async def _waits(handle: Handle) -> str:
    """Wait until a run waits for approval; return its branch."""
    while True:
        status = await handle.query(WriteAuditPublish.status)
        if status.stage == "waiting for approval":
            assert status.result.branch
            return status.result.branch
        await asyncio.sleep(0.05)


async def test_a_run_that_waits_and_is_published(harness: WorkflowHarness) -> None:
    handle = await harness.start(approval={"timeout": "3d"})
    branch = await _waits(handle)
    assert await find_state(harness.client, handle.id) == NamedState(branch, HEAD, show_rows="all")
    await handle.execute_update(WriteAuditPublish.decide, Decision(approve=True, by="ana"))
    assert (await harness.end(handle)).outcome == "published"
    assert await find_state(harness.client, handle.id) == NamedState(MERGED.main_after, show_rows="all")


async def test_a_run_that_people_reject_leaves_a_quarantine_with_the_keys_of_its_checks(
    harness: WorkflowHarness,
) -> None:
    handle = await harness.start(tables=UNIQUE)
    result = await harness.end(handle)
    assert result.outcome == "quarantined" and result.branch, "no engine answered the check"
    assert await find_state(harness.client, handle.id) == NamedState(result.branch, keys=KEYS, show_rows="all")


async def test_a_run_that_left_nothing_is_refused(harness: WorkflowHarness) -> None:
    async def refuses(_: object, __: int) -> None:
        raise ApplicationError("it is wrong", type="InvalidInput", non_retryable=True)

    harness.fakes.overrides["write_table"] = refuses
    handle = await harness.start(on_failure="discard")
    result = await harness.end(handle)
    assert not result.branch
    with pytest.raises(InvalidPipeline, match=f"{handle.id} ended {result.outcome}, and left no rows to compare"):
        await find_state(harness.client, handle.id)
