"""Decisions about all waiting runs of a backfill, each about the hash that was shown; and the list of backfills."""

import asyncio
import io
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from rich.console import Console
from temporalio import workflow
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from cli.backfills import decisions as backfill_decisions
from cli.backfills.decisions import DecisionRequest, check_reason, decide_backfill, find_waiting_runs
from cli.backfills.list_backfills import print_backfills
from cli.context import CommandContext, Interruption
from runtime.backfills.backfills import backfill_handle, start_backfill
from sluice.approval.decisions import ApprovalRecord, Decision
from sluice.approval.waivers import WaivableCheck
from sluice.contracts.backfill import BackfillInput, BackfillState
from sluice.contracts.run import RunResult, RunStatus
from sluice.contracts.starting import RUN_ENDED_SIGNAL, EndedRun, PipelineText, StartPipelineInput
from sluice.contracts.table_changes import TableChange
from sluice.errors import InvalidPipeline
from sluice.settings import read_settings
from tests.harness.terminal import Terminal, type_in
from tests.harness.waiting import until
from workflows.backfills.backfill import Backfill
from workflows.sandbox import sandbox

HASHES = {"p0": "a" * 64, "p1": "b" * 64, "p2": "c" * 64, "p3": "d" * 64}
MOVED = "e" * 64
NEEDS_WAIVER = "p3"


@workflow.defn(name="WriteAuditPublish", sandboxed=False)
class FakeRun:
    """A fake run that waits for one decision about its hash, which `move` changes."""

    @workflow.init
    def __init__(self, partition: str) -> None:
        self._partition, self._hash, self._decision = partition, HASHES[partition], ""

    @workflow.run
    async def run(self, partition: str) -> str:
        await workflow.wait_condition(lambda: bool(self._decision))
        return self._decision

    @workflow.signal
    def move(self) -> None:
        self._hash = MOVED

    @workflow.update
    def decide(self, decision: Decision) -> Decision:
        if decision.audited_hash != self._hash:
            raise ApplicationError("it is for another hash", type="Refused", non_retryable=True)
        self._decision = "published" if decision.approve else "discarded"
        return decision

    @workflow.query
    def status(self) -> RunStatus:
        to_waive = [WaivableCheck(table="t.p", index=0, check="unique(id)", fingerprint="f")]
        waive = to_waive if self._partition == NEEDS_WAIVER else []
        result = RunResult(
            run_id=workflow.info().run_id, workflow_id=workflow.info().workflow_id, pipeline="p",
            branch="wap/x", audited_hash=self._hash, approval=ApprovalRecord(required=1, to_waive=waive),
            tables={"t.p": TableChange(operation="append", added_rows=7)},
        )  # fmt: skip
        return RunStatus(stage="waiting for approval", events=[], result=result)


@workflow.defn(name="StartPipeline", sandboxed=False)
class FakeStart:
    """A fake start that starts the fake run of a partition and reports its end."""

    @workflow.run
    async def run(self, input: StartPipelineInput) -> EndedRun:
        outcome = await workflow.execute_child_workflow(
            "WriteAuditPublish", input.key, id=f"{workflow.info().workflow_id}-run", result_type=str
        )
        cause = None if outcome == "published" else "rejected"
        child = workflow.info().workflow_id
        ended = EndedRun(key=input.key, outcome=outcome, cause=cause, started_by=child)
        await workflow.get_external_workflow_handle(input.report_to).signal(RUN_ENDED_SIGNAL, ended)
        return ended


class Waiting:
    """A backfill whose partitions all wait for an approval, and the output of commands about it."""

    def __init__(self, client: Client, stack: dict[str, str]) -> None:
        installation = uuid.uuid4().hex[:8]
        variables = {**stack, "SLUICE_INSTALLATION": installation, "SLUICE_TASK_QUEUE": f"decisions-{installation}"}
        self.out = io.StringIO()
        self.client, self.settings = client, read_settings(variables)

    def context(self, *, as_json: bool = False) -> CommandContext:
        console = Console(file=self.out, width=200)
        return CommandContext(self.client, self.settings, console, as_json, Interruption())

    async def start(self) -> None:
        given = BackfillInput(
            pipeline=PipelineText(name="p.yml", text="", folder="/"), name="p", starter="tester",
            progress=BackfillState(partitions=list(HASHES), window=10),
        )  # fmt: skip
        await start_backfill(self.client, self.settings.installation, given)

        async def all_wait() -> bool:
            return len(await self.all_waiting()) == len(HASHES)

        await until(all_wait, lambda: "they do not wait")

    async def all_waiting(self) -> list[backfill_decisions.WaitingRun]:
        return await find_waiting_runs(self.context(), "p")

    async def decide(self, *named: str, approve: bool = True, is_dry_run: bool = False) -> int:
        request = DecisionRequest(approve, by="ana", reason="looked at it", named=named, is_dry_run=is_dry_run)
        return await decide_backfill(self.context(), "p", request)


@pytest.fixture
async def waiting(client: Client, stack: dict[str, str]) -> AsyncIterator[Waiting]:
    waiting = Waiting(client, stack)
    workflows = [Backfill, FakeStart, FakeRun]
    queue = waiting.settings.installation.sluice_task_queue
    async with Worker(client, task_queue=queue, workflows=workflows, workflow_runner=sandbox()):
        await waiting.start()
        yield waiting


async def test_each_is_approved_by_the_hash_that_was_shown_and_no_other(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = {each.partition: each for each in await waiting.all_waiting()}

    def move() -> None:
        asyncio.get_running_loop().create_task(runs["p1"].handle.signal("move"))

    original = backfill_decisions._send

    async def send_late(run: Any, decision: Decision) -> Any:
        while run.partition == "p1" and (await run.handle.query("status"))["result"]["audited_hash"] != MOVED:
            await asyncio.sleep(0.05)
        return await original(run, decision)

    type_in(monkeypatch, Terminal("y\n", move))
    monkeypatch.setattr(backfill_decisions, "_send", send_late)
    assert await waiting.decide() == 2
    assert "Approve 3 reports above? [y/N]" in capsys.readouterr().err
    printed = waiting.out.getvalue()
    assert all(hash[:12] in printed for name, hash in HASHES.items() if name != NEEDS_WAIVER)
    assert "7 rows added" in printed and "t.p" in printed
    assert f"Not decided: p1, {runs['p1'].handle.id}: it is for another hash" in printed
    assert "needs a waiver of unique(id) of t.p: decide about this run separately, by `approve " in printed
    assert "Approved 2 runs of p." in printed
    handles = [waiting.client.get_workflow_handle(runs[name].handle.id) for name in ("p0", "p2")]
    assert [await each.result() for each in handles] == ["published"] * 2
    assert {each.partition for each in await waiting.all_waiting()} == {"p1", "p3"}


async def test_all_are_rejected_and_then_the_list_has_their_states(
    waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidPipeline, match="name the reports that you saw by --hash"):
        await waiting.decide(approve=False)
    with pytest.raises(InvalidPipeline, match="no run waits with the report"):
        await waiting.decide(HASHES["p0"], MOVED, approve=False)
    assert await waiting.decide(approve=False, is_dry_run=True) == 0
    assert len(await waiting.all_waiting()) == 4, "nobody was asked, and nothing was decided"
    names = [each.report for each in await waiting.all_waiting()]
    assert all(name in waiting.out.getvalue() for name in names)
    assert await waiting.decide(*names, approve=False) == 0
    await backfill_handle(waiting.client, waiting.settings.installation, "p").result()
    listed: dict[str, Any] = {}

    async def is_completed() -> bool:
        capsys.readouterr()
        await print_backfills(waiting.context(as_json=True), 20)
        listed.update(json.loads(capsys.readouterr().out)["backfills"][0])
        return bool(listed["state"] == "completed")

    await until(is_completed, lambda: listed)
    assert (listed["pipeline"], listed["state"], listed["counts"]) == ("p", "completed", {"kept out": 4})
    await print_backfills(waiting.context(), 20)
    assert "4 kept out" in waiting.out.getvalue()


def test_nobody_is_asked_only_with_a_reason() -> None:
    with pytest.raises(InvalidPipeline, match="so it needs --reason"):
        check_reason(DecisionRequest(approve=True, reason="  ", named=["a" * 12]))
    check_reason(DecisionRequest(approve=True))
