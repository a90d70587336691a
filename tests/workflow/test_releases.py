"""The order of steps in a release: the fate of the quarantine in each ending."""

import asyncio
from typing import Any

import pytest

from sluice.approval.decisions import Decision
from sluice.contracts.existing_rows import Resume
from sluice.contracts.publish import DiscardBranchInput, Publication, PublishBranchInput
from sluice.contracts.quarantine import DiscardQuarantineInput, QuarantineBranchInput
from sluice.publishing.commit_properties import RELEASED_RUN, VERIFIED
from tests.harness.workflow import HEAD, MERGED, WorkflowHarness, brought, fails_for_good, fails_with_a_bug
from workflows.write_audit_publish import WriteAuditPublish

KEPT = "quarantine/p/2026-01-31/r"
RESUME = Resume(branch=KEPT, run_id="r", base="b", head=HEAD)


def _noted(harness: WorkflowHarness) -> list[str]:
    """Return a list that collects the names of all branches that the run deletes."""
    deleted: list[str] = []

    async def note(given: DiscardBranchInput, _: int) -> None:
        deleted.append(given.branch)

    async def note_quarantine(given: DiscardQuarantineInput, _: int) -> str:
        deleted.append(f"{given.branch}@{given.head}")
        return ""

    harness.fakes.overrides |= {"discard_branch": note, "discard_quarantine": note_quarantine}
    return deleted


async def test_the_quarantine_is_deleted_after_the_publication_at_the_released_hash(harness: WorkflowHarness) -> None:
    deleted = _noted(harness)

    async def publish(given: PublishBranchInput, _: int) -> Publication:
        assert given.commit.properties[RELEASED_RUN] == "r" and not deleted
        return MERGED

    harness.fakes.overrides["publish_branch"] = publish
    result = await harness.end(await harness.start(resume=RESUME))
    assert result.outcome == "published"
    assert deleted[-1] == f"{KEPT}@{HEAD}" and len(deleted) == 2


async def test_a_quarantine_that_was_changed_is_named_in_the_result(harness: WorkflowHarness) -> None:
    async def changed(_: Any, __: int) -> str:
        return f"{KEPT} was changed meanwhile, so it was not deleted"

    harness.fakes.overrides["discard_quarantine"] = changed
    result = await harness.end(await harness.start(resume=RESUME))
    reason = f"published; {KEPT} was changed meanwhile, so it was not deleted"
    assert (result.outcome, result.reason) == ("published", reason)


@pytest.mark.parametrize("why", ["rejected", "expired", "cancelled", "refused", "failed", "overtaken"])
@pytest.mark.parametrize("on_failure", ["quarantine", "discard"])
async def test_a_release_that_does_not_publish_touches_no_quarantine(
    harness: WorkflowHarness, why: str, on_failure: str
) -> None:
    deleted = _noted(harness)

    async def overtaken(_: Any, __: int) -> Publication:
        return Publication(merged=False, conflicts=["t.x"])

    async def refuse_the_second_time(given: Any, times: int) -> Any:
        return await fails_for_good(given, times) if times > 1 else brought(given)

    overrides: dict[str, dict[str, Any]] = {
        "refused": {"resume_branch": fails_for_good},
        "failed": {"audit_branch": fails_with_a_bug},
        "overtaken": {"publish_branch": overtaken, "resume_branch": refuse_the_second_time},
    }
    harness.fakes.overrides |= overrides.get(why, {})
    more: dict[str, Any] = {"approval": {"timeout": "1h"}} if why in ("rejected", "expired", "cancelled") else {}
    handle = await harness.start(resume=RESUME, on_failure=on_failure, **more)
    if why in ("rejected", "cancelled"):
        while (await handle.query(WriteAuditPublish.status)).stage != "waiting for approval":
            await asyncio.sleep(0.05)
        if why == "cancelled":
            await handle.cancel()
        else:
            await handle.signal(WriteAuditPublish.reject, Decision(by="ana"))
    result = await harness.end(handle)
    assert result.outcome in ("discarded", "cancelled", "failed") and result.branch is None
    assert all(name.startswith("wap/p/") for name in deleted)
    assert not {"quarantine_branch", "discard_quarantine", "manage_quarantine"} & {*harness.fakes.calls}


@pytest.mark.parametrize(("step", "verified"), [("verify_write", False), ("audit_branch", True)])
async def test_a_quarantine_says_whether_its_write_was_verified(
    harness: WorkflowHarness, step: str, verified: bool
) -> None:
    kept: list[QuarantineBranchInput] = []

    async def note(given: QuarantineBranchInput, _: int) -> str:
        kept.append(given)
        return given.name

    harness.fakes.overrides |= {step: fails_with_a_bug, "quarantine_branch": note}
    result = await harness.end(await harness.start())
    assert result.outcome == "failed" and (VERIFIED in kept[0].properties) is verified
    assert kept[0].head == (HEAD if verified else "")


async def test_a_repair_that_fails_names_its_statement_and_what_it_leaves(harness: WorkflowHarness) -> None:
    deleted = _noted(harness)
    harness.fakes.overrides["write_table"] = fails_for_good
    repair = RESUME.model_copy(update={"statements": ["UPDATE t.x SET nme = 1"]})
    result = await harness.end(await harness.start(resume=repair))
    assert result.outcome == "failed" and KEPT not in " ".join(deleted)
    assert result.reason == (
        f"statement 1 (UPDATE t.x SET nme = 1): it is wrong; the quarantine {KEPT} is untouched: repair it again"
    )
