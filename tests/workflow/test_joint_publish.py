"""Backfills that publish all partitions by one merge: the time of the merge, their waits, and deleted branches."""

import asyncio
from collections.abc import AsyncIterator
from threading import Event
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.worker import Replayer

from sluice.backfills.ending import joint_exit_code, partitions_exit_code
from sluice.backfills.progress import count_states
from sluice.contracts.backfill import (
    AddPartitions,
    BackfillBranch,
    BackfillChange,
    BackfillStatus,
    CollectBackfillInput,
    JointPublish,
    OpenBackfillInput,
)
from sluice.contracts.existing_rows import Resume
from sluice.contracts.lake_queries import PlanReleaseInput, ReleasePlan
from sluice.contracts.publish import DiscardBranchInput
from sluice.contracts.quarantine_queries import QuarantineSummary
from tests.harness.backfill_workflow import (
    AT_ONCE,
    HELD,
    SINCE,
    SLOW_TO_CANCEL,
    STARTS,
    Backfills,
    cancel_and_terminate,
    pipeline,
)
from tests.harness.waiting import until
from workflows.backfills.backfill import Backfill
from workflows.backfills.joint_publish import ALL
from workflows.sandbox import sandbox

BRANCH, QUARANTINE = "sluice/backfill/here/p", "quarantine/p/2026-01-31/r"


class Branches:
    """A fake catalog that counts the opened, collected and discarded branches."""

    def __init__(self) -> None:
        self.opened = self.collected = self.discarded = 0
        self.problem = ""
        self.requests: list[str] = []
        self.is_empty = False
        self.hold = False
        """True if `collect_backfill` waits for `go_on`."""
        self.began, self.go_on = Event(), Event()

    @activity.defn(name="open_backfill")
    def open_backfill(self, input: OpenBackfillInput) -> BackfillBranch:
        self.opened += 1
        self.requests.append(input.request)
        self._raise("open")
        return BackfillBranch(name=BRANCH, catalog_id="catalog")

    @activity.defn(name="collect_backfill")
    def collect_backfill(self, input: CollectBackfillInput) -> BackfillBranch:
        self.collected += 1
        self._raise("collect")
        if self.hold:
            self.began.set()
            assert self.go_on.wait(60)
        assert (input.branch, input.catalog_id) == (BRANCH, "catalog")
        return BackfillBranch(name="" if self.is_empty else QUARANTINE, catalog_id="catalog")

    @activity.defn(name="plan_release")
    def plan_release(self, input: PlanReleaseInput) -> ReleasePlan:
        summary = QuarantineSummary(
            branch=QUARANTINE, run_id="r", workflow_id="w", pipeline="p", cause="", reason="", expires="",
            installation="here", verified=True,
        )  # fmt: skip
        return ReleasePlan(summary=summary, resume=Resume(branch=input.run, run_id="r", base="b", head="h"))

    @activity.defn(name="discard_branch")
    def discard_branch(self, input: DiscardBranchInput) -> None:
        assert (input.branch, input.catalog_id) == (BRANCH, "catalog")
        self.discarded += 1

    def _raise(self, step: str) -> None:
        if self.problem == f"{step}: changed":
            raise ApplicationError("a file was replaced", type="InputChanged", non_retryable=True)
        if self.problem == step:
            raise ApplicationError(f"{step} is refused", non_retryable=True)


@pytest.fixture
def branches() -> Branches:
    return Branches()


@pytest.fixture
async def backfills(client: Any, branches: Branches) -> AsyncIterator[Backfills]:
    backfills = Backfills(client)
    activities: list[Any] = [
        branches.open_backfill,
        branches.collect_backfill,
        branches.plan_release,
        branches.discard_branch,
    ]
    async with backfills.worker(*activities):
        yield backfills


async def start(backfills: Backfills, count: int, text: str = HELD, **more: Any) -> Any:
    return await backfills.start(count, text, together=JointPublish(), **more)


def joint(status: BackfillStatus) -> JointPublish:
    assert status.together
    return status.together


async def test_all_are_published_once_each_is_collected(backfills: Backfills, branches: Branches) -> None:
    handle = await start(backfills, 2, window=2)
    await backfills.wait(lambda status: len(status.children) == 2)
    await backfills.end("p0")
    assert branches.collected == 0
    await backfills.end("p1", "discarded", "already_published")
    await backfills.wait(lambda status: list(status.children) == [ALL])
    await backfills.end(ALL)
    ended = await handle.result()
    assert joint(ended).ended and joint(ended).quarantine == QUARANTINE
    assert (joint_exit_code(ended.together), branches.opened, branches.collected, branches.discarded) == (0, 1, 1, 0)
    assert STARTS[backfills.queue] == ["p0", "p1", ALL]


async def test_it_waits_for_a_partition_that_is_missing(backfills: Backfills, branches: Branches) -> None:
    handle = await start(backfills, 2, window=2)
    await backfills.wait(lambda status: len(status.children) == 2)
    await backfills.end("p0", "quarantined", "audit")
    await backfills.end("p1")
    status = await backfills.wait(lambda status: bool(status.progress.paused))
    assert "1 of 2 partitions are missing" in status.progress.paused
    await backfills.change("resume")
    status = await backfills.wait(lambda status: bool(status.progress.paused))
    assert branches.collected == 0, "a resume repairs nothing"
    await backfills.change("retry")
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    await backfills.end("p0")
    await backfills.wait(lambda status: list(status.children) == [ALL])
    await backfills.end(ALL, "quarantined", "audit")
    ended = await handle.result()
    assert (partitions_exit_code(ended.progress), joint_exit_code(ended.together)) == (0, 3)


async def test_what_was_collected_from_replaced_files_is_deleted(backfills: Backfills, branches: Branches) -> None:
    """Another start would load the new content beside the rows on the branch."""
    branches.problem = "collect: changed"
    handle = await start(backfills, 1)
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    await backfills.end("p0")
    ended = joint(await handle.result())
    assert ended.ended and (ended.ended.outcome, ended.ended.cause) == ("failed", "input_changed")
    assert ended.ended.reason == "a file was replaced" and ended.branch == ""
    assert branches.discarded, "an activity may be repeated"


async def test_a_cancel_deletes_the_branch(backfills: Backfills, branches: Branches) -> None:
    handle = await start(backfills, 3, window=1)
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    await backfills.end("p0")
    await backfills.child("p1")
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert branches.collected == 0 and branches.discarded


async def test_a_cancel_while_all_are_published_keeps_what_was_put_together(
    backfills: Backfills, branches: Branches
) -> None:
    handle = await start(backfills, 1)
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    await backfills.end("p0")
    await backfills.wait(lambda status: list(status.children) == [ALL])
    await backfills.child(ALL)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    status = await backfills.status()
    ended = joint(status).ended
    assert ended and ended.outcome == "cancelled" and joint_exit_code(status.together) == 5
    assert branches.discarded == 0


async def test_a_cancel_while_all_are_put_together_is_followed(backfills: Backfills, branches: Branches) -> None:
    """The activity completes in spite of the cancel. Without a check for it, everything would be published."""
    branches.hold = True
    handle = await start(backfills, 1)
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    await backfills.end("p0")
    assert await asyncio.to_thread(branches.began.wait, 60)
    await handle.cancel()
    await asyncio.sleep(1)
    branches.go_on.set()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert (STARTS[backfills.queue], branches.discarded) == (["p0"], 0)
    replayer = Replayer(workflows=[Backfill], workflow_runner=sandbox(), data_converter=backfills.client.data_converter)
    await replayer.replay_workflow(await handle.fetch_history())


async def test_partitions_that_main_has_need_no_merge(backfills: Backfills, branches: Branches) -> None:
    branches.is_empty = True
    handle = await start(backfills, 1)
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    await backfills.end("p0", "discarded", "already_published")
    ended = await handle.result()
    assert joint_exit_code(ended.together) == 0 and branches.discarded


@pytest.mark.parametrize(("step", "code", "states"), [("open", 2, "cancelled"), ("collect", 6, "published")])
async def test_a_refusal_of_the_catalog_ends_it_with_its_reason(
    backfills: Backfills, branches: Branches, step: str, code: int, states: Any
) -> None:
    branches.problem = step
    handle = await start(backfills, 2, AT_ONCE)
    ended = await handle.result()
    outcome = joint(ended).ended
    assert outcome and outcome.reason == f"{step} is refused" and joint_exit_code(ended.together) == code
    assert count_states(ended.progress) == {states: 2}


async def test_the_branch_goes_along_when_it_continues_as_new(backfills: Backfills, branches: Branches) -> None:
    handle = await start(backfills, 5, AT_ONCE, starts_per_run=2, window=2)
    ended = await handle.result()
    assert count_states(ended.progress) == {"published": 5} and joint_exit_code(ended.together) == 0
    assert (branches.opened, branches.collected) == (1, 1)
    assert STARTS[backfills.queue].count(ALL) == 1


async def test_it_waits_for_a_partition_that_is_missing_also_when_it_has_started_many(
    backfills: Backfills, branches: Branches
) -> None:
    """Its history is then long enough to continue as new, but no partition is left to continue with."""
    handle = await start(backfills, 1, starts_per_run=1)
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    await backfills.end("p0", "failed", "error")
    await backfills.wait(lambda status: bool(status.progress.paused))
    await backfills.change("retry")
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    await backfills.end("p0")
    await backfills.wait(lambda status: list(status.children) == [ALL])
    await backfills.end(ALL)
    assert joint_exit_code((await handle.result()).together) == 0


async def test_a_pause_holds_the_merge_of_all(backfills: Backfills, branches: Branches) -> None:
    handle = await start(backfills, 1)
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    await backfills.change("pause")
    await backfills.end("p0")
    await asyncio.sleep(1)
    assert (branches.collected, (await backfills.status()).children) == (0, {})
    await backfills.change("resume")
    await backfills.wait(lambda status: list(status.children) == [ALL])
    await backfills.end(ALL)
    await handle.result()


async def test_the_start_of_the_merge_that_is_ended_by_force_is_begun_again(
    backfills: Backfills, branches: Branches
) -> None:
    handle = await start(backfills, 1)
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    await backfills.end("p0")
    await backfills.wait(lambda status: list(status.children) == [ALL])
    child = await backfills.child(ALL)
    await child.query("__stack_trace")
    await child.terminate("killed")
    await until(lambda: STARTS[backfills.queue].count(ALL) == 2)
    await backfills.end(ALL)
    assert joint_exit_code((await handle.result()).together) == 0
    _, first, again = SINCE[backfills.queue]
    assert first == again and branches.collected == 1


async def test_the_start_of_the_merge_that_is_ended_by_force_after_a_cancel_is_not_begun_again(
    backfills: Backfills, branches: Branches
) -> None:
    """It would publish everything after somebody had cancelled the backfill."""
    handle = await start(backfills, 1, SLOW_TO_CANCEL)
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    await backfills.end("p0")
    await backfills.wait(lambda status: list(status.children) == [ALL])
    child = await backfills.child(ALL)
    await cancel_and_terminate(handle, child)
    assert STARTS[backfills.queue].count(ALL) == 1


async def test_no_partitions_are_added_to_what_is_published_together(backfills: Backfills, branches: Branches) -> None:
    """The partitions requested at the start identify its branch."""
    handle = await start(backfills, 1)
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    child = await backfills.child("p0")
    added = AddPartitions(pipeline=pipeline(HELD), partitions=["p0", "p1"], is_together=True)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update(Backfill.add, added)
    assert "cannot take more partitions. Wait for its end, or cancel it by `backfill cancel " in str(
        refused.value.cause
    )
    await handle.execute_update(Backfill.change, BackfillChange(action="pause", by="ana"))
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update(Backfill.add, added)
    assert "It is paused: let it go on by `backfill resume " in str(refused.value.cause)
    await handle.execute_update(Backfill.add, added.model_copy(update={"partitions": ["p0"]}))
    await handle.terminate()
    await child.terminate()


@pytest.mark.parametrize(("again", "requests"), [(False, 1), (True, 2)])
async def test_the_same_request_has_the_same_branch_unless_it_publishes_again(
    backfills: Backfills, branches: Branches, again: bool, requests: int
) -> None:
    """With `again`, the leftover content of a branch would be loaded onto it a second time."""
    for _ in range(2):
        await (await start(backfills, 2, AT_ONCE, again=again)).result()
    assert len(set(branches.requests)) == requests
    await (await start(backfills, 3, AT_ONCE, again=again)).result()
    assert len(set(branches.requests)) == requests + 1
