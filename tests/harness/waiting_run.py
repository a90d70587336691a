"""A run that waits for approval on Temporal, with fake activities, and the pages on which people decide about it."""

import html
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowExecutionStatus

from runtime.run.find_run import Handle
from sluice.approval.decisions import Decision
from sluice.approval.required import RequiredApproval
from sluice.contracts.publish import RequireApprovalInput
from sluice.contracts.run import RunResult, RunStatus
from tests.harness.asgi import Answer, Browser
from tests.harness.page import browser
from tests.harness.waiting import until
from tests.harness.workflow import HEAD, WorkflowHarness
from workflows.write_audit_publish import WriteAuditPublish


class WaitingRun:
    """A run that waits for approval, and the pages of people."""

    def __init__(self, harness: WorkflowHarness, handle: Handle) -> None:
        self.harness, self.handle = harness, handle
        self.path = f"/runs/{handle.id}/{handle.first_execution_run_id}"

    def page(self, person: str = "ana", key: Path | str = "") -> Browser:
        return browser(self.harness.client, person, sluice_approval_key_file=str(key))

    async def status(self) -> RunStatus:
        return await self.handle.query(WriteAuditPublish.status)

    async def decisions(self) -> list[Decision]:
        record = (await self.status()).result.approval
        return record.decisions if record else []

    async def waits(self, audited_hash: str = HEAD) -> None:
        async def is_waiting() -> bool:
            status = await self.status()
            return (status.stage, status.result.audited_hash) == ("waiting for approval", audited_hash)

        await until(is_waiting)

    async def end(self) -> RunResult:
        """Wait for the end without skipping time."""

        async def has_ended() -> bool:
            return (await self.handle.describe()).status != WorkflowExecutionStatus.RUNNING

        await until(has_ended)
        return await self.harness.end(self.handle)

    async def submit(self, page: Browser, form: dict[str, str], decision: str = "approve", **fields: Any) -> Answer:
        return await page.post_form(f"{self.path}/decision", {**form, "decision": decision, **fields})


def form_of(answer: Answer) -> dict[str, str]:
    """Return the hidden fields of the form that approves."""
    form = answer.text.split("/decision")[1]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form.partition("</form>")[0]))


def notice(answer: Answer) -> str:
    """Return the message at the top of a page."""
    return html.unescape(re.findall(r'<p class="notice" role="alert">(.*?) <a ', answer.text)[0])


def in_days(days: int) -> str:
    """Return a date from today on, as a form sends it."""
    return (datetime.now(timezone.utc) + timedelta(days=days)).date().isoformat()


async def started(harness: WorkflowHarness, required: RequiredApproval | None = None, **pipeline: Any) -> WaitingRun:
    """Start a run that waits for an approval."""

    if required:

        async def demand(_: RequireApprovalInput, __: int) -> RequiredApproval:
            return required

        harness.fakes.overrides["require_approval"] = demand
    handle = await harness.start(approval={"timeout": "3d"}, **pipeline)
    run = WaitingRun(harness, handle)
    await run.waits()
    return run
