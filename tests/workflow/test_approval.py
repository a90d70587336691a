"""The order of things in an approval: decisions whose verification lasts while the run goes on."""

import asyncio

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from runtime.find_run import Handle
from sluice.approval.decisions import Decision
from sluice.contracts.publish import Publication, PublishBranchInput, VerifyDecisionInput
from tests.harness.workflow import HEAD, MERGED, NEWER, WorkflowHarness
from workflows.write_audit_publish import WriteAuditPublish


async def _waits_for(handle: Handle, audited_hash: str) -> None:
    while True:
        status = await handle.query(WriteAuditPublish.status)
        if (status.stage, status.result.audited_hash) == ("waiting for approval", audited_hash):
            return
        await asyncio.sleep(0.05)


async def test_a_decision_does_not_count_for_a_newer_hash_than_was_verified(harness: WorkflowHarness) -> None:
    """It names no hash: it is for the one that waited when it arrived."""
    verifying, go_on = asyncio.Event(), asyncio.Event()
    verified: list[tuple[str, str]] = []

    async def verify(input: VerifyDecisionInput, call: int) -> str:
        if call == 1:  # the local try, during which the workflow would learn of nothing else
            raise ApplicationError("not now")
        if input.decision.by == "slow":
            verifying.set()
            await go_on.wait()
        verified.append((input.decision.by, input.decision.audited_hash))
        return ""

    async def conflict_once(_: PublishBranchInput, call: int) -> Publication:
        return MERGED if call > 1 else Publication(merged=False, conflicts=["t.x"])

    harness.fakes.overrides |= {"verify_decision": verify, "publish_branch": conflict_once}
    handle = await harness.start(approval={"timeout": "3d"})
    await _waits_for(handle, HEAD)
    slow = asyncio.create_task(handle.execute_update(WriteAuditPublish.decide, Decision(approve=True, by="slow")))
    await asyncio.wait_for(verifying.wait(), 300)
    await handle.execute_update(WriteAuditPublish.decide, Decision(approve=True, by="quick"))
    await _waits_for(handle, NEWER)
    go_on.set()
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await slow
    assert "look again" in str(refused.value.cause)
    await handle.execute_update(WriteAuditPublish.decide, Decision(approve=True, by="ana"))
    result = await harness.end(handle)
    assert verified == [("quick", HEAD), ("slow", HEAD), ("ana", NEWER)]
    assert result.outcome == "published" and result.approval
    assert [(each.by, each.audited_hash) for each in result.approval.decisions] == [("ana", NEWER)]
