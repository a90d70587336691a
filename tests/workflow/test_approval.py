"""The order of steps in an approval: the run goes on while decisions are verified."""

import asyncio

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from runtime.run.find_run import Handle
from sluice.approval.decisions import Decision
from sluice.approval.required import RequiredApproval
from sluice.contracts.publish import Publication, PublishBranchInput, RequireApprovalInput, VerifyDecisionInput
from tests.harness.waiting import in_time
from tests.harness.workflow import HEAD, MERGED, NEWER, WorkflowHarness
from workflows.write_audit_publish import WriteAuditPublish


async def _waits_for(handle: Handle, audited_hash: str) -> None:
    while True:
        status = await handle.query(WriteAuditPublish.status)
        if (status.stage, status.result.audited_hash) == ("waiting for approval", audited_hash):
            return
        await asyncio.sleep(0.05)


async def test_a_decision_does_not_count_for_a_newer_hash_than_was_verified(harness: WorkflowHarness) -> None:
    """The decision names no hash, so it is about the hash that waited when it arrived."""
    verifying, go_on = asyncio.Event(), asyncio.Event()
    verified: list[tuple[str, str]] = []

    async def verify(input: VerifyDecisionInput, call: int) -> str:
        if call == 1:  # longer than the local try, during which the workflow gets no events
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
    await in_time(verifying.wait())
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


async def _demand(harness: WorkflowHarness, required: RequiredApproval) -> Handle:
    async def demand(_: RequireApprovalInput, __: int) -> RequiredApproval:
        return required

    harness.fakes.overrides["require_approval"] = demand
    handle = await harness.start()  # its pipeline requires no approval
    await _waits_for(handle, HEAD)
    return handle


async def test_a_run_waits_for_what_a_worker_demands_although_its_pipeline_asks_for_nothing(
    harness: WorkflowHarness,
) -> None:
    published: list[PublishBranchInput] = []

    async def publish(input: PublishBranchInput, _: int) -> Publication:
        published.append(input)
        return MERGED

    harness.fakes.overrides["publish_branch"] = publish
    handle = await _demand(harness, RequiredApproval(required=2, starter="ana", why="the worker demands it"))
    for by, why in (("ANA", "four eyes"), ("ben", ""), ("ben", "decided already"), ("cleo", "")):
        decided = handle.execute_update(WriteAuditPublish.decide, Decision(approve=True, by=by))
        if why:
            with pytest.raises(WorkflowUpdateFailedError) as refused:
                await decided
            assert why in str(refused.value.cause)
        else:
            await decided
    result = await harness.end(handle)
    assert result.outcome == "published" and result.approval
    assert (result.approval.required, result.approval.why) == (2, "the worker demands it")
    (input,) = published
    assert [each.by for each in input.approval.decisions] == ["ben", "cleo"]
    assert {each.audit_digest for each in input.approval.decisions} == {input.approval.audit_digest} != {""}


async def test_a_decision_about_a_report_that_changed_does_not_count(harness: WorkflowHarness) -> None:
    handle = await _demand(harness, RequiredApproval(required=1, signed=True))
    digest = (await handle.query(WriteAuditPublish.status)).audit_digest
    yes = Decision(approve=True, by="ana", audited_hash=HEAD, audit_digest=digest)
    for fields, why in (
        ({"audit_digest": "0" * 64}, "the audit report changed since it was shown: look again"),
        ({"audited_hash": NEWER}, "look again"),
        ({"audit_digest": ""}, "names the hash and the report and signs them"),
        ({"audited_hash": ""}, "names the hash and the report and signs them"),
    ):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update(WriteAuditPublish.decide, yes.model_copy(update=fields))
        assert why in str(refused.value.cause)
    await handle.signal(WriteAuditPublish.approve, Decision(by="ana"))  # as Temporal's own tools send it
    await handle.execute_update(WriteAuditPublish.decide, yes)
    result = await harness.end(handle)
    assert result.outcome == "published" and result.approval
    assert [each.why for each in result.approval.refused] == [
        "approvers have keys, so a decision names the hash and the report and signs them: use `approve`"
    ]
