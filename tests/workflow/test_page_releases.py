"""Releases, repairs and discards on the page that run in Temporal: two clicks do it once."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from activities.errors import ErrorMapping
from activities.quarantine.list_quarantine import ListQuarantineActivity
from activities.quarantine.manage_quarantine import ManageQuarantineActivity
from activities.quarantine.plan_release import PlanReleaseActivity
from activities.run.running_workflows import RunningWorkflows
from lakehouse.quarantine.quarantined_branches import list_quarantined_branches
from runtime.run.find_run import describe_run, read_result
from runtime.run.run_request import read_request
from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditResult
from sluice.contracts.existing_rows import ExistingRowsResult, ResumeBranchInput
from sluice.contracts.quarantine import QuarantineBranchInput
from sluice.contracts.run import RunResult
from sluice.identifiers import spark_queue
from tests.harness.asgi import Answer, Browser
from tests.harness.lake_on_page import button, form, notice
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.page import browser
from tests.harness.quarantined_run import HERE, LakeRun
from tests.harness.waiting import LIMIT, in_time, until
from tests.harness.workflow import FakeActivities, WorkflowHarness, brought
from workflows.lake.lake_query import LakeQuery
from workflows.quarantine.manage_quarantine import ManageQuarantine
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish

CONFLICT = 409
CHECKS = {"t.x": {"checks": [{"check": "unique", "column": "id"}]}}


class QuarantinedLake:
    """A lake in memory with the rows of a run that Temporal knows."""

    def __init__(self, harness: WorkflowHarness, folder: Path) -> None:
        self.harness, self.catalog = harness, MemoryCatalog()
        self.lake = MemoryLake(self.catalog, folder)

    def page(self, person: str = "ana") -> Browser:
        queue = self.harness.queue
        client, wait = self.harness.client, LIMIT
        return browser(client, person, sluice_task_queue=queue, sluice_worker_wait=wait, sluice_installation=HERE)

    async def quarantine(self) -> str:
        """Run a pipeline whose audit fails; return the id of the run."""

        async def fail_once(_: Any, call: int) -> AuditResult:
            verdict = CheckResult(table="t.x", index=0, check="unique", columns=["id"], verdict="pass")
            failed = verdict.model_copy(update={"verdict": "fail", "failed_rows": 1})
            return AuditResult(decided=[failed if call == 1 else verdict])

        async def keep(given: QuarantineBranchInput, _: int) -> str:
            return given.name

        self.harness.fakes.overrides |= {"audit_branch": fail_once, "quarantine_branch": keep}
        handle = await self.harness.start(tables=CHECKS)
        run_id = handle.first_execution_run_id or ""
        assert (await self.end(handle.id, run_id)).outcome == "quarantined"
        run = LakeRun(self.lake, run_id=run_id)
        run.ref = run.ref.model_copy(update={"workflow_id": handle.id})
        await asyncio.to_thread(run.quarantined, 1, 2)
        return run_id

    async def end(self, workflow_id: str, run_id: str) -> RunResult:
        """Wait for the end of a run without skipping time."""

        async def has_ended() -> bool:
            run = await describe_run(self.harness.client, workflow_id, run_id)
            return run is not None and run.ended

        await until(has_ended)
        run = await describe_run(self.harness.client, workflow_id, run_id)
        result = await read_result(self.harness.client, run.description) if run else None
        assert result is not None
        return result


@pytest.fixture
async def shown(own_time_skipping: WorkflowEnvironment, tmp_path: Path) -> AsyncIterator[QuarantinedLake]:
    """A lake whose worker answers the page, and whose runs are those of the workflow harness."""
    harness = WorkflowHarness(own_time_skipping.client, FakeActivities())
    shown = QuarantinedLake(harness, tmp_path)
    running = RunningWorkflows(harness.client, asyncio.get_running_loop())
    activities: list[Callable[..., Any]] = [
        *harness.fakes.activities(),
        ListQuarantineActivity(shown.catalog, {}).list_quarantine,
        PlanReleaseActivity(shown.catalog, HERE).plan_release,
        ManageQuarantineActivity(shown.catalog, running, HERE).manage_quarantine,
    ]
    async with AsyncExitStack() as stack:
        stack.enter_context(own_time_skipping.auto_time_skipping_disabled())
        threads = stack.enter_context(ThreadPoolExecutor(4))
        for queue in (harness.queue, spark_queue(harness.queue)):
            worker = Worker(
                harness.client,
                task_queue=queue,
                workflows=[WriteAuditPublish, LakeQuery, ManageQuarantine],
                workflow_runner=sandbox(),
                interceptors=[ErrorMapping()],
                activities=activities,
                activity_executor=threads,
            )
            await stack.enter_async_context(worker)
        yield shown


async def submit(page: Browser, action: str, given: Answer, **fields: str) -> Answer:
    return await page.post_form(f"/quarantine/{action}", {**form(given, action), **fields})


async def test_a_release_runs_once_in_the_name_of_the_person(shown: QuarantinedLake) -> None:
    run_id = await shown.quarantine()
    resuming, go_on = asyncio.Event(), asyncio.Event()

    async def resume(given: ResumeBranchInput, _: int) -> ExistingRowsResult:
        resuming.set()
        await go_on.wait()
        return brought(given)

    shown.harness.fakes.overrides["resume_branch"] = resume
    page = shown.page()
    old = await page.get("/quarantine")
    other = shown.page("ben")
    of_other = await other.get("/quarantine")
    first, second = await asyncio.gather(submit(page, "release", old), submit(other, "release", of_other))
    assert (first.status, second.status) == (303, 303), (first.text, second.text)
    assert first.headers["location"] == second.headers["location"]
    await in_time(resuming.wait())
    for action, fields, why in (
        ("repair", {"sql": "DELETE FROM t.x WHERE id = 1"}, "it repairs other rows, or in another way"),
        ("discard", {}, "is not discarded while"),
    ):
        refused = await submit(page, action, old, **fields)
        assert refused.status == CONFLICT and why in notice(refused), refused.text
        assert "disabled" in button(refused, action)
    go_on.set()
    _, _, workflow_id, started = first.headers["location"].split("/")
    assert (await shown.end(workflow_id, started)).outcome == "published"
    request = await read_request(shown.harness.client, workflow_id, started)
    assert request and request.resume and request.resume.run_id == run_id
    assert request.starter.partition("@")[0] in ("ana", "ben")
    late = await submit(page, "release", old)
    assert late.status == CONFLICT and "started and ended since this page was opened" in notice(late)
    assert shown.harness.fakes.calls.count("resume_branch") == 1


async def test_a_repair_runs_its_statements(shown: QuarantinedLake) -> None:
    await shown.quarantine()
    page = shown.page()
    answer = await submit(page, "repair", await page.get("/quarantine"), sql="DELETE FROM t.x WHERE id = 1; ")
    assert answer.status == 303, answer.text
    _, _, workflow_id, started = answer.headers["location"].split("/")
    assert (await shown.end(workflow_id, started)).outcome == "published"
    request = await read_request(shown.harness.client, workflow_id, started)
    assert request and request.resume and request.resume.statements == ["DELETE FROM t.x WHERE id = 1"]


async def test_two_clicks_discard_once(shown: QuarantinedLake) -> None:
    await shown.quarantine()
    page = shown.page()
    old = await page.get("/quarantine")
    answers = await asyncio.gather(*(submit(page, "discard", old) for _ in range(2)))
    assert 303 in {each.status for each in answers} and not list_quarantined_branches(shown.catalog)
    assert (await submit(page, "discard", old)).status == CONFLICT
