"""The lines of `list`: one for each backfill, and the fate of quarantines."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionDescription, WorkflowExecutionStatus

from cli.context import CommandContext
from cli.layout import make_console
from cli.run import list_runs
from cli.run.status import _print_listed, _print_rollbacks, _print_work, _why_ended
from runtime.run.find_run import ALL_RUNS, Handle, RunLookup
from runtime.run.listed_runs import ListedRuns, Quarantines, find_earlier, find_quarantines, find_rollbacks, list_lines
from runtime.run.start_run import _memo
from sluice.contracts.backfill import BackfillState, BackfillStatus
from sluice.contracts.existing_rows import Restore
from sluice.contracts.quarantine_queries import (
    ListQuarantineInput,
    ListQuarantineResult,
    QuarantineEntry,
    QuarantineSummary,
)
from sluice.contracts.run import RunResult
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.errors import ServiceUnavailable
from sluice.identifiers import backfill_id
from sluice.pipeline.model import Pipeline
from sluice.settings import Settings
from tests.harness.lake_client import LakeClient
from workflows.search_attributes import RELEASES_MEMO, ROLLS_BACK_MEMO, SUMMARY_MEMO

SETTINGS = Settings.of(sluice_installation="My_lake.1")
AT = datetime(2026, 11, 22, 7, 45, tzinfo=timezone.utc)


class Memo(dict[str, Any]):
    async def __call__(self) -> dict[str, Any]:
        return self


def run(number: int, root: str = "", outcome: str = "published", **memo: Any) -> WorkflowExecution:
    at = AT + timedelta(minutes=number)
    fields = {
        "id": f"p-{number}", "run_id": f"r{number}", "root_id": root or f"p-{number}", "root_run_id": "root",
        "start_time": at, "close_time": at + timedelta(seconds=30), "status": WorkflowExecutionStatus.COMPLETED,
        "search_attributes": {"SluiceOutcome": [outcome]}, "memo": Memo(memo),
    }  # fmt: skip
    return cast(WorkflowExecution, SimpleNamespace(**fields))


def _summary(run_id: str) -> QuarantineSummary:
    texts = dict.fromkeys(("branch", "workflow_id", "pipeline", "cause", "reason", "expires", "installation"), "")
    return QuarantineSummary(run_id=run_id, **texts)


class Temporal(LakeClient):
    """A Temporal client that lists runs, newest first, and has the status of a backfill and the kept quarantines."""

    def __init__(self, *runs: WorkflowExecution, is_running: bool = False, kept: Sequence[str] | None = None) -> None:
        super().__init__({"list_quarantine": self._quarantines})
        self._kept = kept
        self.backfill: BackfillStatus | None = None
        self.runs = sorted(runs, key=lambda each: each.start_time, reverse=True)
        self.status = WorkflowExecutionStatus.RUNNING if is_running else WorkflowExecutionStatus.COMPLETED

    def _quarantines(self, _: ListQuarantineInput) -> ListQuarantineResult:
        if self._kept is None:
            raise ServiceUnavailable("no worker")
        return ListQuarantineResult(quarantined=[QuarantineEntry(summary=_summary(each)) for each in self._kept])

    async def list_workflows(self, query: str, limit: int) -> AsyncIterator[WorkflowExecution]:
        wanted = [each for each in self.runs if 'SluiceOutcome = "published"' not in query or "published" in str(each)]
        for each in wanted[:limit]:
            yield each

    def get_workflow_handle_for(self, *_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(result=self._result, describe=self._result)

    async def _result(self, **_: object) -> BackfillStatus:
        if self.backfill is None:
            raise ServiceUnavailable("no worker")
        return self.backfill

    def get_workflow_handle(self, workflow_id: str, run_id: str | None = None, **_: object) -> SimpleNamespace:
        raw = SimpleNamespace(first_run_id="root")
        described = SimpleNamespace(id=workflow_id, run_id="root", raw_info=raw, status=self.status)
        return SimpleNamespace(describe=lambda: asyncio.sleep(0, described))


def lines(temporal: Temporal, limit: int = 20, *, each_run: bool = False) -> list[ListedRuns]:
    return asyncio.run(list_lines(cast(Client, temporal), SETTINGS.installation, limit, ALL_RUNS, each_run=each_run))


def test_the_runs_of_a_backfill_are_one_line() -> None:
    root = backfill_id(SETTINGS.installation.sluice_installation, "rides")
    temporal = Temporal(run(1, root), run(2), run(3, root, "failed"), run(4, f"{root}-of-another-kind"))
    listed = lines(temporal)
    assert [(line.backfill, [each.id for each in line.runs]) for line in listed] == [
        ("rides-of-another-kind", ["p-4"]), ("rides", ["p-3", "p-1"]), ("", ["p-2"]),
    ]  # fmt: skip
    fields = list_runs._backfill_fields(listed[1])
    assert (fields["workflow_id"], fields["duration"]) == ("backfill rides", "2 min")
    assert fields["outcome"] == "ended, 1 failed"
    assert fields["summary"] == "2 runs: 1 failed, 1 published"
    assert [len(line.runs) for line in lines(temporal, each_run=True)] == [1, 1, 1, 1]
    assert [line.backfill for line in lines(temporal, 2)] == ["rides-of-another-kind", "rides"]


def test_a_backfill_that_pauses_has_not_ended() -> None:
    (line,) = lines(Temporal(run(1, backfill_id(SETTINGS.installation.sluice_installation, "rides")), is_running=True))
    assert list_runs._backfill_fields(line)["outcome"] == "running"


def test_the_line_of_a_backfill_counts_partitions_that_never_had_a_run() -> None:
    """A start that is refused has no run, and so the count of runs says nothing of it."""
    counted = Counter({"published": 1, "failed": 1, "waiting": 1})
    line = ListedRuns([run(1)], backfill="rides", partitions=counted)
    fields = list_runs._backfill_fields(line)
    summary = "3 partitions: 1 published, 1 failed, 1 waiting"
    assert (fields["outcome"], fields["summary"]) == ("ended, 1 failed", summary)
    paused = replace(line, is_running=True, is_paused=True)
    assert list_runs._backfill_fields(paused)["outcome"] == "paused, 1 failed"


def test_the_partitions_of_a_listed_backfill_are_read_from_it() -> None:
    root = backfill_id(SETTINGS.installation.sluice_installation, "rides")
    temporal = Temporal(run(1, root))
    progress = BackfillState(partitions=["a", "b"], letters="pf")
    temporal.backfill = BackfillStatus(name="rides", starter="s", pipeline="rides.yml", progress=progress)
    (line,) = lines(temporal)
    assert line.partitions == Counter({"published": 1, "failed": 1})


@pytest.mark.parametrize("root", ["sluice-My_lake.1-schedule-nightly-backfill-orders", "sluice-x-backfill-rides"])
def test_runs_of_others_are_of_no_backfill(root: str) -> None:
    assert [line.backfill for line in lines(Temporal(run(1, root)))] == [""]


def test_a_run_is_earlier_if_its_workflow_id_has_a_later_run_in_a_backfill_or_outside_of_the_list() -> None:
    first, second, other = run(1), run(2), run(3)
    second.id = first.id
    assert asyncio.run(find_earlier(cast(Client, Temporal(first, second, other)), [first, other])) == {"r1"}
    assert asyncio.run(find_earlier(cast(Client, Temporal(first, second, other)), [second, other])) == set()


def quarantines(temporal: Temporal) -> Quarantines:
    stopped = [each for each in temporal.runs if "quarantined" in str(each)]
    return asyncio.run(find_quarantines(cast(Client, temporal), SETTINGS.installation, stopped))


def test_a_quarantine_says_which_run_published_it() -> None:
    stopped = [run(number, outcome="quarantined") for number in (1, 2, 3)]
    known = quarantines(Temporal(*stopped, run(4, **{"sluice.releases": "r1"}), kept=["r2"]))
    assert known == Quarantines(frozenset({"r2"}), {"r1": "p-4"})
    states = []
    for number in (1, 2, 3):
        fields = {"outcome": "quarantined", "kept": f"r{number}" in (known.kept or ())}
        states.append(list_runs._state({**fields, "released_by": known.released_by.get(f"r{number}", "")}))
    assert states == ["quarantined, then published by p-4", "quarantined", "quarantined, no longer kept"]


def test_without_a_worker_runs_are_listed_as_they_ended() -> None:
    assert quarantines(Temporal(run(1, outcome="quarantined"))) == Quarantines()
    assert list_runs._state({"outcome": "quarantined", "kept": None}) == "quarantined"


def rollbacks(*runs: WorkflowExecution) -> dict[str, str]:
    temporal = Temporal(*runs)
    return asyncio.run(find_rollbacks(cast(Client, temporal), temporal.runs))


def test_a_run_says_which_run_rolled_it_back() -> None:
    taken: dict[str, Any] = {"sluice.rolls_back": ["r1", "r2"]}
    assert rollbacks(run(1), run(2), run(3), run(4, **taken)) == {"r1": "p-4", "r2": "p-4"}
    assert list_runs._state({"outcome": "published", "rolled_back_by": "p-4"}) == "published, then rolled back by p-4"
    assert rollbacks() == {}


def test_the_status_of_a_run_says_what_was_rolled_back(capsys: pytest.CaptureFixture[str]) -> None:
    """Earlier, both runs were "published", and nothing else."""
    taken: dict[str, Any] = {ROLLS_BACK_MEMO: ["r1"]}
    temporal = Temporal(run(1), run(2, **taken))
    context = cast(CommandContext, SimpleNamespace(client=temporal, console=make_console()))
    for each in temporal.runs:
        asyncio.run(_print_rollbacks(context, each))
    assert {line.strip() for line in capsys.readouterr().out.splitlines()} == {
        "rollback of  r1",
        "rolled back  by p-2: main no longer has what this run published",
    }


def test_the_status_of_a_run_says_what_it_does_also_without_a_worker(capsys: pytest.CaptureFixture[str]) -> None:
    loads: dict[str, Any] = {SUMMARY_MEMO: "t.rides from 1 file, 3 bytes, for 2018-01"}
    context = cast(CommandContext, SimpleNamespace(console=make_console()))
    asyncio.run(_print_work(context, run(1)))
    asyncio.run(_print_work(context, run(1, **loads)))
    lookup = RunLookup(cast(Handle, None), cast(WorkflowExecutionDescription, run(1, **loads)))
    asyncio.run(_print_listed(context, lookup))
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == [
        "work  t.rides from 1 file, 3 bytes, for 2018-01",
        "p-1  completed since 2026-11-22 07:46 UTC: t.rides from 1 file, 3 bytes, for 2018-01",
        "stage  not known without a worker; the run goes on when one starts",
    ]


@pytest.mark.parametrize(
    ("kept", "released", "why"),
    [
        (["r1"], {}, ""),
        (None, {}, ""),
        ([], {}, "no longer kept: it was discarded, or its time ended"),
        ([], {RELEASES_MEMO: "r1"}, "published by p-2"),
    ],
)
def test_the_status_of_a_quarantined_run_says_why_nothing_is_kept(
    kept: list[str] | None, released: dict[str, Any], why: str
) -> None:
    """Earlier, it offered to release and discard a branch that did not exist."""
    quarantined = run(1, outcome="quarantined")
    temporal = Temporal(quarantined, run(2, **released), kept=kept)
    context = cast(CommandContext, SimpleNamespace(client=temporal, settings=SETTINGS))
    result = RunResult(run_id="r1", workflow_id="p-1", pipeline="p", outcome="quarantined", branch="quarantine/p/d/r1")
    assert asyncio.run(_why_ended(context, result, quarantined)) == why


def test_a_roll_back_that_was_rolled_back_does_not_count() -> None:
    first: dict[str, Any] = {"sluice.rolls_back": ["r1"]}
    second: dict[str, Any] = {"sluice.rolls_back": ["r2"]}
    assert rollbacks(run(1), run(2, **first), run(3, **second)) == {"r2": "p-3"}
    assert rollbacks(run(1), run(2, **first), run(3, "", "failed", **second)) == {"r1": "p-2"}


def test_the_start_of_a_roll_back_names_the_runs_that_it_takes_back() -> None:
    pipeline = Pipeline.model_validate({"name": "back", "write": {"job": "rollback"}, "tables": ["t.x"]})
    restore = Restore(runs=["r1", "r2"], main_head="h", tables={"t.x": "g"})
    request = RunRequest(pipeline=pipeline, input=RunInput(digest="d"), starter="s", restore=restore)
    assert _memo(request)[ROLLS_BACK_MEMO] == ["r1", "r2"]
    assert ROLLS_BACK_MEMO not in _memo(request.model_copy(update={"restore": None}))
