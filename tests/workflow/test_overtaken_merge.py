"""A publish is paused between its last check and its merge, and the run continues without it: one merge of one run.

The activities on branches are the real ones, on a catalog in memory and tables in a folder; the write and the audit are
fakes. Main changes a table that a check reads while the first try is paused, so that the second try meets a conflict
that the first did not: the merge of the first would still succeed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from activities.approval.require_approval import ApprovalPolicy
from activities.publishing.confirm_publication import ConfirmPublicationActivity
from activities.publishing.publish_branch import PublishBranchActivity
from activities.publishing.rebase_branch import RebaseBranchActivity
from activities.quarantine.quarantine_branch import QuarantineBranchActivity
from activities.run.discard_branch import DiscardBranchActivity
from activities.run.open_branch import OpenBranchActivity
from activities.run.verify_write import VerifyWriteActivity
from runtime.run.find_run import Handle
from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditResult
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.contracts.run_request import Policy
from sluice.contracts.write import JobReport, WriteTableInput
from sluice.publishing.commit_properties import RUN_ID
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.waiting import LIMIT
from tests.harness.workflow import WorkflowHarness

_READS = {"checks": [{"check": "relationships", "column": "id", "to": "t.other", "field": "id"}]}
_PIPELINE: dict[str, Any] = {"write": {"job": "job.py", "on_conflict": "rebase"}, "tables": {"t.x": _READS}}


@dataclass
class PausingCatalog(MemoryCatalog):
    """A catalog whose first merge waits between the caller's checks and the request."""

    paused: Event = field(default_factory=Event)
    go_on: Event = field(default_factory=Event)
    over: Event = field(default_factory=Event)

    def publish(
        self, branch: BranchRef, head: str, author: str, message: str, properties: Mapping[str, str]
    ) -> Publication:
        """Merge. The first call waits until the test resumes it."""
        if self.paused.is_set():
            return super().publish(branch, head, author, message, properties)
        self.paused.set()
        assert self.go_on.wait(LIMIT)
        try:
            return super().publish(branch, head, author, message, properties)
        finally:
            self.over.set()

    async def resume(self) -> None:
        """Resume the paused merge; wait until it was done or refused."""
        self.go_on.set()
        assert await asyncio.to_thread(self.over.wait, LIMIT)


@pytest.fixture
def catalog() -> PausingCatalog:
    return PausingCatalog()


@pytest.fixture
def lake(catalog: PausingCatalog, tmp_path: Path) -> MemoryLake:
    catalog.initialize_main()
    lake = MemoryLake(catalog, tmp_path)
    lake.append("main", "t.x", [0])
    lake.append("main", "t.other", [1, 2])
    return lake


def _use_real_activities(harness: WorkflowHarness, lake: MemoryLake) -> None:
    catalog = lake.catalog
    policy = ApprovalPolicy(catalog)

    async def write(input: WriteTableInput, _: int) -> JobReport:
        await asyncio.to_thread(lake.append, input.branch, "t.x", [1, 2], input.run_ref)
        return JobReport()

    async def passes(_: Any, __: int) -> AuditResult:
        verdict = CheckResult(table="t.x", index=0, check="relationships", columns=["id"], verdict="pass")
        return AuditResult(decided=[verdict])

    real: dict[str, Callable[[Any], Any]] = {
        "open_branch": OpenBranchActivity(catalog, {}, "here", lake.loaded_files).open_branch,
        "verify_write": VerifyWriteActivity(catalog, {}).verify_write,
        "publish_branch": PublishBranchActivity(catalog, policy, loaded_files=lake.loaded_files).publish_branch,
        "confirm_publication": ConfirmPublicationActivity(catalog).confirm_publication,
        "discard_branch": DiscardBranchActivity(catalog).discard_branch,
        "rebase_branch": RebaseBranchActivity(catalog, {}, "here", lake.loaded_files).rebase_branch,
        "quarantine_branch": QuarantineBranchActivity(catalog, "here").quarantine_branch,
    }
    harness.fakes.overrides |= {name: _in_thread(function) for name, function in real.items()}
    harness.fakes.overrides |= {"write_table": write, "audit_branch": passes}


def _in_thread(function: Callable[[Any], Any]) -> Callable[[Any, int], Awaitable[Any]]:
    async def run(input: Any, _: int) -> Any:
        return await asyncio.to_thread(function, input)

    return run


def _first_do(harness: WorkflowHarness, name: str, step: Callable[[], Awaitable[None]]) -> None:
    """Run a step before the first execution of an activity."""
    plain = harness.fakes.overrides[name]

    async def run(input: Any, number: int) -> Any:
        if number == 1:
            await step()
        return await plain(input, number)

    harness.fakes.overrides[name] = run


async def _start_and_pause(harness: WorkflowHarness, lake: MemoryLake, catalog: PausingCatalog) -> Handle:
    policy = Policy(activity_timeout=2, step_timeout=600)
    handle = await harness.start(policy, **_PIPELINE)
    assert await asyncio.to_thread(catalog.paused.wait, LIMIT)
    lake.append("main", "t.other", [3])
    return handle


def _merges(catalog: MemoryCatalog, run_id: str) -> int:
    return sum(commit.properties.get(RUN_ID) == run_id for commit in catalog.history("main"))


PAUSES = {
    "before the fence": "discard_branch",
    "before the look": "confirm_publication",
    "before the rebase": "rebase_branch",
}


@pytest.mark.parametrize("pause", PAUSES)
async def test_a_paused_merge_goes_on(
    pause: str, harness: WorkflowHarness, lake: MemoryLake, catalog: PausingCatalog
) -> None:
    """The run either publishes by this merge and adds nothing, or deletes the branch before the merge is requested."""
    _use_real_activities(harness, lake)
    _first_do(harness, PAUSES[pause], catalog.resume)
    result = await harness.end(await _start_and_pause(harness, lake, catalog))
    overtaken = pause == "before the fence"
    assert (result.outcome, result.attempts) == ("published", 1 if overtaken else 2)
    assert ("main changed t.other right before the merge" in result.reason) == overtaken
    assert [each.tables for each in result.conflicts] == ([] if overtaken else [["t.other"]])
    assert lake.ids("t.x") == [0, 1, 2] and _merges(catalog, result.run_id) == 1
    assert result.main_after == next(
        each.hash for each in catalog.history("main") if each.properties.get(RUN_ID) == result.run_id
    )
    assert [each.name for each in catalog.list_branches()] == ["main"]


async def test_a_merge_that_stays_paused_until_the_run_is_published_changes_nothing(
    harness: WorkflowHarness, lake: MemoryLake, catalog: PausingCatalog
) -> None:
    _use_real_activities(harness, lake)
    result = await harness.end(await _start_and_pause(harness, lake, catalog))
    assert (result.outcome, result.attempts) == ("published", 2)
    head = catalog.head("main")
    await catalog.resume()
    assert catalog.head("main") == head and lake.ids("t.x") == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("pause", PAUSES)
async def test_the_run_is_cancelled_while_a_merge_is_paused(
    pause: str, real_time_harness: WorkflowHarness, lake: MemoryLake, catalog: PausingCatalog
) -> None:
    """Its outcome agrees with main, whenever the cancel arrives."""
    harness = real_time_harness
    _use_real_activities(harness, lake)
    started: list[Handle] = []

    async def cancel_and_resume() -> None:
        await started[0].cancel()
        await catalog.resume()

    _first_do(harness, PAUSES[pause], cancel_and_resume)
    started.append(await _start_and_pause(harness, lake, catalog))
    result = await harness.end(started[0])
    is_published = pause == "before the fence"
    assert result.outcome == ("published" if is_published else "cancelled")
    assert lake.ids("t.x") == ([0, 1, 2] if is_published else [0])
    assert _merges(catalog, result.run_id) == int(is_published)
    assert [each.name for each in catalog.list_branches()] == ["main"]


async def test_rows_of_another_attempt_are_never_added_to_those_of_a_published_one(
    harness: WorkflowHarness, lake: MemoryLake, catalog: PausingCatalog
) -> None:
    """The last defence: if the search for the run's publication failed, the same files would be refused."""
    _use_real_activities(harness, lake)
    _first_do(harness, "discard_branch", catalog.resume)

    async def sees_nothing(_: Any, __: int) -> Publication:
        return Publication(merged=False)

    harness.fakes.overrides["confirm_publication"] = sees_nothing
    result = await harness.end(await _start_and_pause(harness, lake, catalog))
    assert (result.outcome, result.cause) == ("failed", "error")
    assert "more than once" in result.reason and lake.ids("t.x") == [0, 1, 2]
