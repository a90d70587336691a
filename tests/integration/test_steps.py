"""The order of things: every ending, with fakes in place of the outside world and time that skips.

The server is Temporal's time-skipping test server; a day of waiting passes in moments.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import WorkflowUpdateFailedError
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from engine.java import find_java
from sluice.approval import Decision, Ruling
from sluice.orders import (
    AuditPlan,
    Division,
    ForeseeOrder,
    JobReport,
    Publication,
    PublishOrder,
    Rebased,
    TableChange,
    WriteOrder,
    Written,
)
from sluice.run import Policy
from sluice.verdicts import CheckResult
from tests.integration.scene import HEAD, MERGED, NEWER, Scene, World, breaks, fails_for_good, opened
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish


@pytest.fixture(scope="module")
async def skipping(home: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WorkflowEnvironment]:
    """The time-skipping server, from the jars of the set-up."""
    wrapper = tmp_path_factory.mktemp("server") / "test-server"
    java, jars = find_java() / "bin" / "java", home / "jars" / "timeskip" / "*"
    wrapper.write_text(f'#!/bin/sh\nexec "{java}" -cp "{jars}" io.temporal.testserver.TestServer "$@"\n')
    wrapper.chmod(0o755)
    async with await WorkflowEnvironment.start_time_skipping(
        data_converter=pydantic_data_converter, test_server_existing_path=str(wrapper)
    ) as environment:
        yield environment


@pytest.fixture
async def scene(skipping: WorkflowEnvironment) -> AsyncIterator[Scene]:
    scene = Scene(skipping, World())
    async with Worker(
        skipping.client,
        task_queue=scene.queue,
        workflows=[WriteAuditPublish],
        workflow_runner=sandbox(),
        activities=scene.world.activities(),
        max_heartbeat_throttle_interval=timedelta(milliseconds=100),
    ):
        yield scene


async def test_published(scene: Scene) -> None:
    result = await scene.end(await scene.start())
    assert (result.outcome, result.main_after, result.branch) == ("published", "2", None)
    assert scene.world.called == [
        *("open_branch", "write_table", "verify_write", "audit_branch"),
        *("publish_branch", "discard_branch", "record_run", "notify"),
    ]


@pytest.mark.parametrize(("on_failure", "outcome"), [("quarantine", "quarantined"), ("discard", "discarded")])
async def test_no_answer_within_three_days_means_no(scene: Scene, on_failure: str, outcome: str) -> None:
    handle = await scene.start(approval={"timeout": "3d"}, on_failure=on_failure)
    result = await scene.end(handle)
    assert (result.outcome, result.cause) == (outcome, "expired")
    assert result.timings["waiting for approval"] >= 3 * 86400
    assert "publish_branch" not in scene.world.called
    assert scene.world.called.count("notify") == 2


async def test_the_first_decision_counts_and_the_others_are_refused_with_a_reason(scene: Scene) -> None:
    handle = await scene.start(approval={"timeout": "3d"})
    while (await handle.query(WriteAuditPublish.status)).stage != "waiting for approval":
        await asyncio.sleep(0.05)
    for ruling, why in (
        (Ruling(approve=True, by=" "), "needs the name"),
        (Ruling(approve=True, by="ana", audited_hash="cd" * 32), "look again"),
    ):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update(WriteAuditPublish.decide, ruling)
        assert why in str(refused.value.cause)
    await handle.signal(WriteAuditPublish.reject, Decision(by=""))
    ruled = await handle.execute_update(
        WriteAuditPublish.decide, Ruling(approve=True, by="ana", audited_hash=HEAD, reason="fine")
    )
    assert (ruled.by, ruled.reason, ruled.audited_hash) == ("ana", "fine", HEAD)
    result = await scene.end(handle)
    assert result.outcome == "published" and result.approval
    assert [refused.why for refused in result.approval.refused] == ["a decision needs the name of who takes it"]


async def test_a_decision_before_anything_waits_is_refused(scene: Scene) -> None:
    release = asyncio.Event()

    async def slow(_: Any, __: int) -> JobReport:
        await release.wait()
        return JobReport()

    scene.world.instead["write_table"] = slow
    handle = await scene.start(approval={"timeout": "1h"})
    await handle.signal(WriteAuditPublish.approve, Decision(by="eager"))
    with pytest.raises(WorkflowUpdateFailedError):
        await handle.execute_update(WriteAuditPublish.decide, Ruling(approve=True, by="eager"))
    release.set()
    assert (await scene.end(handle)).cause == "expired"


STEPS = ["open_branch", "write_table", "verify_write", "audit_branch", "publish_branch"]
_AFTER_HOPS = {"open_branch": "write_table", "verify_write": "audit_branch"}
"""A cancel during a short hop is known when it is over, and by then the next step has begun."""


@pytest.mark.parametrize("step", STEPS)
async def test_a_cancel_during_each_step(scene: Scene, step: str) -> None:
    """The step is over before the clean-up begins; a merge that happened all the same is believed."""
    entered, ended = asyncio.Event(), asyncio.Event()

    async def until_cancelled(_: Any, __: int) -> Any:
        entered.set()
        try:
            while True:
                await asyncio.sleep(0.05)
                activity.heartbeat()
        finally:
            ended.set()

    async def in_time(order: Any, _: int) -> Any:
        """Activities that do not beat learn of no cancel: they finish, and the cancel is heeded after."""
        entered.set()
        await asyncio.sleep(0.5)
        ended.set()
        best: dict[str, Callable[[], Any]] = {
            "open_branch": lambda: opened(order.origin.branch),
            "verify_write": lambda: Written(head=HEAD, tables={}),
            "audit_branch": lambda: AuditPlan(decided=[]),
            "publish_branch": lambda: MERGED,
        }
        return best[step]()

    async def a_moment(_: Any, __: int) -> Any:
        await asyncio.sleep(0.5)
        return JobReport() if step == "open_branch" else AuditPlan(decided=[])

    cleaned: list[bool] = []

    async def clean(_: Any, __: int) -> None:
        cleaned.append(ended.is_set())

    scene.world.instead[step] = until_cancelled if step == "write_table" else in_time
    if step in _AFTER_HOPS:
        scene.world.instead[_AFTER_HOPS[step]] = a_moment
    scene.world.instead["discard_branch"] = clean
    handle = await scene.start()
    await asyncio.wait_for(entered.wait(), 30)
    await handle.cancel()
    result = await scene.end(handle)
    assert result.outcome == ("published" if step == "publish_branch" else "cancelled")
    assert cleaned == [True]
    assert "publish_branch" not in scene.world.called or step == "publish_branch"


async def test_a_cancel_while_people_decide(scene: Scene) -> None:
    handle = await scene.start(approval={"timeout": "3d"})
    while (await handle.query(WriteAuditPublish.status)).stage != "waiting for approval":
        await asyncio.sleep(0.05)
    await handle.cancel()
    result = await scene.end(handle)
    assert (result.outcome, result.branch) == ("cancelled", None)
    assert scene.world.called[-3:] == ["discard_branch", "record_run", "notify"]


async def test_attempts_that_never_began_do_not_count(scene: Scene) -> None:
    """As when a paused worker still draws work: nobody hears of it until the heartbeat is missed."""

    async def silent_at_first(_: Any, number: int) -> JobReport:
        if number <= 5:
            await asyncio.sleep(1.7)
        return JobReport()

    scene.world.instead["write_table"] = silent_at_first
    result = await scene.end(await scene.start(policy=Policy(heartbeat_timeout=1)))
    assert (result.outcome, result.attempts) == ("published", 6)


async def test_attempts_that_fell_silent_count(scene: Scene) -> None:
    async def falls_silent(_: Any, __: int) -> JobReport:
        activity.heartbeat("begun")
        await asyncio.sleep(1.7)
        return JobReport()

    scene.world.instead["write_table"] = falls_silent
    result = await scene.end(await scene.start(policy=Policy(heartbeat_timeout=1)))
    assert (result.outcome, result.attempts) == ("failed", 3)


async def test_a_cancel_that_shows_as_a_failure(scene: Scene) -> None:
    """As when the worker dies with the activity that was to be cancelled."""
    entered = asyncio.Event()

    async def dies(_: Any, __: int) -> Any:
        entered.set()
        await asyncio.sleep(0.3)
        raise ApplicationError("heartbeat timeout", type="TimeoutError", non_retryable=True)

    scene.world.instead["audit_branch"] = dies
    handle = await scene.start()
    await asyncio.wait_for(entered.wait(), 30)
    await handle.cancel()
    assert (await scene.end(handle)).outcome == "cancelled"


async def test_a_write_that_keeps_failing(scene: Scene) -> None:
    """Each attempt is fenced before the next; what the last one left is kept for a look."""
    branches: list[str] = []

    async def fail(order: WriteOrder, _: int) -> Any:
        branches.append(order.branch)
        raise ApplicationError("it broke", type="JobFailed")

    scene.world.instead["write_table"] = fail
    handle = await scene.start(write={"job": "job.py", "attempts": 3})
    result = await scene.end(handle)
    assert (result.outcome, result.attempts, result.reason) == ("failed", 3, "it broke")
    assert len(set(branches)) == 3
    assert scene.world.called == [
        *(("open_branch", "write_table", "discard_branch") * 2),
        *("open_branch", "write_table", "quarantine_branch", "record_run", "notify"),
    ]
    assert result.branch and result.branch.startswith("quarantine/p/")


async def test_invalid_input_is_not_tried_again_and_leaves_nothing(scene: Scene) -> None:
    scene.world.instead["write_table"] = fails_for_good
    result = await scene.end(await scene.start())
    assert (result.outcome, result.cause, result.attempts, result.branch) == ("failed", "invalid", 1, None)
    assert scene.world.called == ["open_branch", "write_table", "discard_branch", "record_run", "notify"]


async def test_a_bug_leaves_the_branch_for_a_look(scene: Scene) -> None:
    scene.world.instead["audit_branch"] = breaks
    result = await scene.end(await scene.start())
    assert (result.outcome, result.cause, result.reason) == ("failed", "error", "a bug")
    assert scene.world.called[-3:] == ["quarantine_branch", "record_run", "notify"]


async def _refuse_to_take_over(_: Any, __: int) -> Rebased:
    return Rebased(why_not="it overwrites")


async def test_main_moved_so_the_files_are_taken_over_and_audited_again(scene: Scene) -> None:
    async def collide(order: PublishOrder, times: int) -> Publication:
        if times == 1:
            return Publication(merged=False, conflicts=["t.x"])
        assert (order.head, order.branch.name[-2:]) == (NEWER, "a2")
        return MERGED

    scene.world.instead["publish_branch"] = collide
    result = await scene.end(await scene.start())
    assert (result.outcome, result.attempts, result.audited_hash) == ("published", 2, NEWER)
    assert [(each.tables, each.resolved) for each in result.conflicts] == [(["t.x"], "taken over")]
    assert scene.world.called.count("write_table") == 1 and scene.world.called.count("audit_branch") == 2


async def test_a_conflict_is_seen_before_the_audit_and_before_people_are_asked(scene: Scene) -> None:
    async def moved_already(_: Any, __: int) -> Written:
        return Written(head=HEAD, tables={"t.x": TableChange(operation="append")}, conflicts=["t.x"])

    async def moved(order: ForeseeOrder, times: int) -> list[str]:
        return ["t.x"] if times == 1 else []

    scene.world.instead["verify_write"] = moved_already
    scene.world.instead["foresee_conflicts"] = moved
    handle = await scene.start(approval={"timeout": "1h"})
    result = await scene.end(handle)  # nobody answers
    assert (result.cause, result.attempts, len(result.conflicts)) == ("expired", 3, 2)
    acts = [act for act in scene.world.called if act in ("audit_branch", "rebase_branch", "notify", "write_table")]
    assert acts == ["write_table", "rebase_branch", "audit_branch", "rebase_branch", "audit_branch", "notify", "notify"]


async def test_a_take_over_that_breaks_off_leaves_neither_branch(scene: Scene) -> None:
    discarded = []

    async def collide(_: Any, __: int) -> Publication:
        return Publication(merged=False, conflicts=["t.x"])

    async def note(name: str, _: int) -> None:
        discarded.append(name[-2:])

    scene.world.instead |= {"publish_branch": collide, "rebase_branch": breaks, "discard_branch": note}
    result = await scene.end(await scene.start(on_failure="discard"))
    assert result.outcome == "failed" and discarded == ["a2"]
    assert scene.world.called.count("quarantine_branch") == 1


async def test_main_that_always_moves_ends_the_run(scene: Scene) -> None:
    async def always(_: Any, __: int) -> Publication:
        return Publication(merged=False, conflicts=["t.x"])

    scene.world.instead["publish_branch"] = always
    result = await scene.end(await scene.start())
    assert (result.outcome, result.attempts, len(result.conflicts)) == ("failed", 101, 100)


async def test_main_moved_so_the_write_is_done_again(scene: Scene) -> None:
    scene.world.instead["rebase_branch"] = _refuse_to_take_over

    async def collide(_: Any, times: int) -> Publication:
        return MERGED if times > 1 else Publication(merged=False, conflicts=["t.x"])

    scene.world.instead["publish_branch"] = collide
    result = await scene.end(await scene.start())
    assert (result.outcome, result.attempts) == ("published", 2)

    async def always(_: Any, __: int) -> Publication:
        return Publication(merged=False, conflicts=["t.x"])

    scene.world.instead["publish_branch"] = always
    result = await scene.end(await scene.start())
    assert (result.outcome, result.attempts) == ("failed", 3)
    assert "main changed t.x" in result.reason


async def test_a_merge_whose_answer_was_lost_is_believed(scene: Scene) -> None:
    scene.world.instead["publish_branch"] = breaks

    async def it_is_there(_: Any, __: int) -> Publication:
        return MERGED

    scene.world.instead["confirm_publication"] = it_is_there
    result = await scene.end(await scene.start())
    assert (result.outcome, result.main_after, result.branch, result.reason) == ("published", "2", None, "")
    order = [act for act in scene.world.called if act in ("quarantine_branch", "confirm_publication")]
    assert order == ["quarantine_branch", "confirm_publication"]


@pytest.mark.parametrize("act", ["notify", "record_run", "discard_branch"])
async def test_what_fails_after_the_merge_changes_nothing(scene: Scene, act: str) -> None:
    scene.world.instead[act] = breaks
    result = await scene.end(await scene.start())
    assert result.outcome == "published"


PARTED: dict[str, Any] = {
    "tables": {
        "t.x": {"on_bad_rows": "quarantine", "max_bad_rows": 5, "checks": [{"check": "not_null", "column": "a"}]},
    }
}


def _bad_once(verdict: str = "fail") -> Callable[[Any, int], Any]:
    async def audit(_: Any, call: int) -> AuditPlan:
        bad = CheckResult(table="t.x", index=0, check="not_null", columns=["a"], verdict=verdict, failed_rows=2)
        return AuditPlan(decided=[bad if call == 1 else bad.model_copy(update={"verdict": "pass"})])

    return audit


async def test_bad_rows_are_divided_and_the_rest_audited_again(scene: Scene) -> None:
    scene.world.instead["audit_branch"] = _bad_once()
    result = await scene.end(await scene.start(**PARTED))
    assert (result.outcome, result.bad_rows) == ("published", {"t.x": 2})
    assert "2 bad rows of t.x went to t.x__quarantine" in result.reason
    middle = ["verify_write", "audit_branch", "divide_rows", "verify_write", "audit_branch", "publish_branch"]
    assert scene.world.called[2:8] == middle


async def test_above_the_cap_nothing_is_published(scene: Scene) -> None:
    async def too_many(_: Any, __: int) -> Division:
        return Division(bad_rows={"t.x": 9}, above_cap=["t.x"])

    scene.world.instead |= {"audit_branch": _bad_once(), "divide_rows": too_many}
    result = await scene.end(await scene.start(**PARTED))
    assert (result.outcome, result.cause) == ("quarantined", "audit")
    assert "more bad rows than may be set apart: 9 of t.x" in result.reason


async def test_an_attempt_that_breaks_off_in_the_division_is_written_again(scene: Scene) -> None:
    async def breaks_once(_: Any, call: int) -> Division:
        if call == 1:
            raise ApplicationError("Spark was killed", type="JobFailed")
        return Division(bad_rows={"t.x": 2})

    async def always_bad(_: Any, call: int) -> AuditPlan:
        return await _bad_once()(None, 1 if call in (1, 2) else 3)  # type: ignore[no-any-return]

    scene.world.instead |= {"audit_branch": always_bad, "divide_rows": breaks_once}
    result = await scene.end(await scene.start(**PARTED))
    assert (result.outcome, result.attempts) == ("published", 2)
    assert scene.world.called.count("write_table") == 2


async def test_an_error_is_no_bad_row(scene: Scene) -> None:
    scene.world.instead["audit_branch"] = _bad_once("error")
    result = await scene.end(await scene.start(**PARTED))
    assert (result.outcome, "divide_rows" in scene.world.called) == ("quarantined", False)


async def test_sql_in_checks_is_read_inside_the_workflow(scene: Scene) -> None:
    """Its sandbox refuses what a parser imports when it is first used."""
    checks = [
        {"check": "not_null", "column": "a", "where": "b > 1 AND c IN ('x', `d e`) OR length(f) > 2"},
        {"check": "expression_is_true", "expression": "d >= DATE '2024-01-01' - INTERVAL 1 DAY"},
        {"check": "sql", "query": "WITH a AS (SELECT 1) SELECT * FROM t.x JOIN a ON true WHERE y RLIKE 'z'"},
        {"check": "match_regex", "column": "a", "pattern": "^a.*$"},
    ]
    result = await scene.end(await scene.start(tables={"t.x": {"checks": checks}}))
    assert result.outcome == "published"


async def test_what_duckdb_hands_back_goes_to_spark(scene: Scene) -> None:
    async def plan(_: Any, __: int) -> AuditPlan:
        return AuditPlan(decided=[], files={"t.x": [0, 1]}, undecided={"t.x": [2]})

    async def hands_back(order: Any, __: int) -> AuditPlan:
        assert order["undecided"] == {"t.x": [0, 1]}
        return AuditPlan(decided=[], undecided={"t.x": [1]})

    async def by_spark(order: Any, __: int) -> AuditPlan:
        assert order["undecided"] == {"t.x": [2, 1]}
        return AuditPlan(decided=[])

    scene.world.instead |= {"audit_branch": plan, "scan_files": hands_back, "scan_branch": by_spark}
    assert (await scene.end(await scene.start())).outcome == "published"
    assert scene.world.called.count("scan_branch") == 1


async def test_an_error_of_a_check_blocks(scene: Scene) -> None:
    async def unanswered(_: Any, __: int) -> AuditPlan:
        check = CheckResult(table="t.x", check="unique", columns=["a"], verdict="error", message="no answer")
        return AuditPlan(decided=[check])

    scene.world.instead["audit_branch"] = unanswered
    result = await scene.end(await scene.start())
    assert (result.outcome, result.cause) == ("quarantined", "audit")
    assert "unique(a) of t.x: no answer" in result.reason
