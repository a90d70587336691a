"""Commands that delete or publish: they show what they affect, ask, and accept only a name of one thing."""

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode
from typer.testing import CliRunner, Result

from activities.quarantine.describe_quarantine import DescribeQuarantineActivity
from activities.quarantine.list_quarantine import ListQuarantineActivity
from activities.quarantine.manage_quarantine import ManageQuarantineActivity
from activities.quarantine.plan_release import PlanReleaseActivity
from cli import app as command_line
from cli import confirming
from cli.backfills import cancel
from cli.quarantine import requeue
from lakehouse.audit.report_store import ReportStore
from lakehouse.quarantine.quarantined_branches import (
    CREATED,
    create_quarantine,
    find_quarantined_branch,
    list_quarantined_branches,
)
from sluice.contracts.backfill import BackfillState, BackfillStatus
from sluice.contracts.lake_queries import PlanRequeueInput, QueryRows, QueryTablesInput, RequeuePlan
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.quarantine import VerifiedWrite
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.pipeline.file import parse_pipeline
from sluice.publishing.commit_properties import (
    BASE,
    EXPIRES,
    INSTALLATION,
    PIPELINE,
    REASON,
    RUN_ID,
    VERIFIED,
    WORKFLOW_ID,
)
from tests.harness.lake_client import LakeClient, reach
from tests.harness.memory_catalog import MemoryCatalog

TEXT = """\
name: cities
write: {source: {path: in.csv}}
tables: {geo.cities: {on_bad_rows: quarantine, max_bad_rows: 10, checks: [not_null: name]}}
"""
REQUEUED = parse_pipeline(TEXT, "p.yml")
OLD, NEW = "run-old", "run-new"
START = datetime(2026, 3, 1, tzinfo=timezone.utc)


class NoWorkflows:
    def release_of(self, branch: object) -> str:
        return ""


@pytest.fixture(autouse=True)
def reached(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The Temporal that commands reach. Tests set its client."""
    return reach(monkeypatch, None)


@pytest.fixture
def catalog(reached: SimpleNamespace, tmp_path: Path) -> MemoryCatalog:
    """Two quarantines of one pipeline, which commands reach: the old one is kept longer than the new one."""
    catalog = MemoryCatalog()
    main = catalog.initialize_main()
    catalog.create_branch("wap/x/a1", main)
    for run, day, until in ((NEW, "2026-03-02", "2026-03-16"), (OLD, "2026-01-01", "2026-06-01")):
        properties = {
            **{RUN_ID: run, WORKFLOW_ID: f"cities-{run}", PIPELINE: "cities", BASE: main, INSTALLATION: "here"},
            **{EXPIRES: f"{until}T00:00:00+00:00", CREATED: f"{day}T08:00:00+00:00", REASON: "bad rows"},
            VERIFIED: VerifiedWrite(head=main, attempt=1, tables={"geo.cities": 3}).model_dump_json(),
        }
        create_quarantine(catalog, f"quarantine/cities/{day}/{run}", main, "wap/x/a1", properties)
    reports = ReportStore(tmp_path.as_uri(), {})
    answers: dict[str, Callable[..., Any]] = {
        "list_quarantine": ListQuarantineActivity(catalog, {}).list_quarantine,
        "plan_release": PlanReleaseActivity(catalog, "here").plan_release,
        "describe_quarantine": DescribeQuarantineActivity(catalog, {}, reports).describe_quarantine,
        "query_tables": lambda _: QueryRows(columns=["name"], rows=[]),  # there is no quarantine table
        "ManageQuarantine": ManageQuarantineActivity(catalog, NoWorkflows(), "here").manage_quarantine,  # type: ignore[arg-type]
    }
    request = RunRequest(pipeline=REQUEUED, input=RunInput(digest="d"), starter="ana")
    reached.client = LakeClient(answers, request)
    return catalog


def command(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(command_line.app, list(arguments), input=typed)


def kept(catalog: MemoryCatalog) -> set[str]:
    return {each.run_id for each in list_quarantined_branches(catalog)}


def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirming, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))


# One name, one quarantine


@pytest.mark.parametrize(
    "words",
    [("discard", "cities"), ("keep", "cities", "--for", "60d"), ("release", "cities"),
     ("repair", "cities", "--sql", "DELETE FROM geo.cities")],
)  # fmt: skip
def test_a_pipeline_with_several_quarantines_is_refused_with_a_list(
    words: tuple[str, ...], catalog: MemoryCatalog
) -> None:
    """An earlier version chose the one that is kept longest: `keep OLD --for 60d; discard PIPELINE` deleted OLD."""
    before = {each.branch: each.head for each in list_quarantined_branches(catalog)}
    done = command("quarantine", *words, "--yes")
    assert done.exit_code == 2 and "'cities' names 2 quarantines" in done.stderr
    assert done.stderr.index(f"\n  {NEW}  ") < done.stderr.index(f"\n  {OLD}  ")
    assert before == {each.branch: each.head for each in list_quarantined_branches(catalog)}


@pytest.mark.parametrize("words", [("repair", "citis", "--sql", "DELETE FROM geo.cities"), ("discard", "citis")])
def test_a_misspelled_pipeline_gets_a_suggestion(words: tuple[str, ...], catalog: MemoryCatalog) -> None:
    done = command("quarantine", *words)
    assert done.exit_code == 2 and "nothing of 'citis' is quarantined (did you mean 'cities'?): " in done.stderr
    assert len(kept(catalog)) == 2


def test_only_the_one_that_is_named_is_discarded_and_then_the_pipeline_names_the_other(catalog: MemoryCatalog) -> None:
    assert command("quarantine", "discard", NEW, "--yes").exit_code == 0 and kept(catalog) == {OLD}
    assert command("quarantine", "discard", "cities", "--yes").exit_code == 0 and not kept(catalog)


def test_a_quarantine_is_read_by_its_pipeline_as_the_newest(catalog: MemoryCatalog) -> None:
    assert find_quarantined_branch(catalog, "cities").run_id == NEW
    shown = command("quarantine", "show", "cities", "--json")
    assert json.loads(shown.stdout)["run_id"] == NEW
    listed = json.loads(command("quarantine", "list", "--json").stdout)["quarantined"]
    assert [(each["run_id"], each["created"][:10]) for each in listed] == [(NEW, "2026-03-02"), (OLD, "2026-01-01")]


def test_a_quarantine_that_does_not_say_when_it_was_made_is_of_the_day_in_its_name(catalog: MemoryCatalog) -> None:
    branch = find_quarantined_branch(catalog, OLD)
    properties = {key: value for key, value in branch.properties.items() if key != CREATED}
    catalog.commit_tables(branch.branch, branch.head, "x", properties=properties)
    assert find_quarantined_branch(catalog, OLD).created == "2026-01-01"


# Shown and asked


def test_without_a_terminal_what_it_takes_is_shown_and_nothing_is_done(
    catalog: MemoryCatalog,
) -> None:
    for words in (["discard", OLD], ["keep", OLD, "--for", "1h"], ["release", OLD], ["discard", OLD, "--json"]):
        done = command("quarantine", *words)
        assert done.exit_code == 2 and "the command cannot ask. Add --yes" in done.stderr
        shown = done.stdout + done.stderr
        for part in (f"quarantine/cities/2026-01-01/{OLD}", "2026-01-01 08:00 UTC", "geo.cities: +3 rows", "bad rows"):
            assert part in shown, (words, part)
    assert kept(catalog) == {OLD, NEW}


def test_on_a_terminal_the_answer_counts(catalog: MemoryCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_terminal(monkeypatch)
    for typed in ("n\n", "\n", ""):
        done = command("quarantine", "discard", OLD, typed=typed)
        assert done.exit_code == 2 and "nothing was changed" in done.stderr and OLD in kept(catalog)
    assert command("quarantine", "discard", OLD, typed="y\n").exit_code == 0 and kept(catalog) == {NEW}


def test_a_quarantine_that_changed_since_it_was_shown_stays(catalog: MemoryCatalog, reached: SimpleNamespace) -> None:
    def keep_meanwhile() -> None:
        branch = find_quarantined_branch(catalog, OLD)
        catalog.commit_tables(branch.branch, branch.head, "kept", properties={**branch.properties, EXPIRES: "2027"})

    reached.client.after("list_quarantine", keep_meanwhile)
    for words in (["discard", OLD], ["keep", OLD, "--for", "1h"]):
        done = command("quarantine", *words, "--yes")
        assert done.exit_code == 2 and "changed since it was shown" in done.stderr
    assert find_quarantined_branch(catalog, OLD).properties[EXPIRES] == "2027"


def test_a_quarantine_that_appears_meanwhile_is_not_the_one_that_is_discarded(
    catalog: MemoryCatalog, reached: SimpleNamespace
) -> None:
    catalog.delete_branch(find_quarantined_branch(catalog, NEW).branch)

    def another_appears() -> None:
        properties = {**find_quarantined_branch(catalog, OLD).properties, RUN_ID: "run-3", CREATED: "2026-04-01"}
        create_quarantine(catalog, "quarantine/cities/2026-04-01/run-3", catalog.head("main"), "wap/x/a1", properties)

    reached.client.after("list_quarantine", another_appears)
    assert command("quarantine", "discard", "cities", "--yes").exit_code == 0
    assert kept(catalog) == {"run-3"}


# Runs


class Runs:
    """A Temporal client with runs of one pipeline."""

    def __init__(self, **running: bool) -> None:
        self.running, self.cancelled = running, list[str]()

    def get_workflow_handle(self, workflow_id: str, *, run_id: str | None = None, **_: object) -> Any:
        async def describe() -> Any:
            if workflow_id not in self.running:
                raise RPCError("not found", RPCStatusCode.NOT_FOUND, b"")
            status = "RUNNING" if self.running[workflow_id] else "COMPLETED"
            return SimpleNamespace(
                raw_description=DescribeWorkflowExecutionResponse(),
                **{"run_id": f"of-{workflow_id}", "status": WorkflowExecutionStatus[status], "start_time": START},
                workflow_type="WriteAuditPublish",
            )

        async def cancelled() -> None:
            self.cancelled.append(workflow_id)

        async def no_answer(_: object, **__: object) -> None:
            raise RPCError("no worker", RPCStatusCode.UNAVAILABLE, b"")

        return SimpleNamespace(id=workflow_id, run_id=run_id, describe=describe, cancel=cancelled, query=no_answer)

    async def list_workflows(self, query: str, limit: int) -> Any:
        for number, (workflow_id, running) in enumerate(self.running.items()):
            if running or "Running" not in query:
                start = START.replace(day=number + 1)
                yield SimpleNamespace(id=workflow_id, run_id=f"of-{workflow_id}", start_time=start)


A, B = "cities-0123456789ab", "cities-ba9876543210"


def test_a_pipeline_with_several_runs_under_way_is_not_cancelled(reached: SimpleNamespace) -> None:
    reached.client = runs = Runs(**{A: True, B: True})
    done = command("cancel", "cities", "--yes")
    assert done.exit_code == 2 and "names 2 runs that are under way" in done.stderr and not runs.cancelled
    assert done.stderr.index(f"\n  {B}  ") < done.stderr.index(f"\n  {A}  ")
    assert command("cancel", A, "--yes").exit_code == 0 and runs.cancelled == [A]


@pytest.mark.parametrize(("named", "meant"), [("citis", "cities"), (A[:-1] + "c", A)])
def test_a_misspelled_run_gets_a_suggestion(named: str, meant: str, reached: SimpleNamespace) -> None:
    reached.client = runs = Runs(**{A: True, B: True})
    done = command("cancel", named, "--yes")
    assert f"there is no run {named!r} (did you mean {meant!r}?): `list` shows all runs" in done.stderr
    assert done.exit_code == 2 and not runs.cancelled


def test_a_pipeline_names_its_run_that_is_under_way_and_not_a_later_one_that_ended(reached: SimpleNamespace) -> None:
    reached.client = runs = Runs(**{A: True, B: False})
    assert command("cancel", "cities", "--yes").exit_code == 0 and runs.cancelled == [A]
    reached.client = Runs(**{A: False})
    ended = command("cancel", "cities", "--yes")
    assert ended.exit_code == 2 and "has ended: there is nothing to cancel" in ended.stderr


def test_a_cancel_asks(reached: SimpleNamespace) -> None:
    reached.client = runs = Runs(**{A: True})
    done = command("cancel", A)
    assert done.exit_code == 2 and "Add --yes" in done.stderr and not runs.cancelled
    assert A in done.stdout and "2026-03-01 00:00 UTC" in done.stdout


# Backfills


def test_a_backfill_that_began_while_the_command_asked_is_not_cancelled(
    reached: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command showed what an ended backfill left; the runs and branches of a new one were not shown."""
    backfill = SimpleNamespace(status="COMPLETED")

    def handle(*_: object, **__: object) -> Any:
        async def describe() -> Any:
            info = SimpleNamespace(first_run_id="r")
            raw = SimpleNamespace(workflow_execution_info=info)
            status = WorkflowExecutionStatus[backfill.status]
            return SimpleNamespace(status=status, raw_description=raw, id="b", run_id="r")

        async def result() -> BackfillStatus:
            progress = BackfillState(partitions=["x"])
            return BackfillStatus(pipeline="cities", name="cities", starter="ana", progress=progress)

        return SimpleNamespace(id="b", describe=describe, result=result)

    async def list_workflows(query: str) -> Any:
        raise AssertionError("the command is about to cancel the runs of the new backfill")
        yield

    def start_another(*_: object, **__: object) -> None:
        backfill.status = "RUNNING"

    reached.installation = "here"
    reached.client = SimpleNamespace(get_workflow_handle_for=handle, list_workflows=list_workflows)
    monkeypatch.setattr(cancel, "confirm", start_another)
    ended = command("backfill", "cancel", "cities", "--yes")
    assert ended.exit_code == 2 and "a backfill of cities began meanwhile: nothing was cancelled" in ended.stderr


# Requeues


def test_a_requeue_moves_the_rows_of_the_runs_that_were_shown(
    reached: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file, planned = tmp_path / "p.yml", list[PlanRequeueInput]()
    file.write_text(TEXT)

    def plan(query: PlanRequeueInput) -> RequeuePlan:
        planned.append(query)
        return RequeuePlan(pipeline=REQUEUED, input=RunInput(digest="d"), runs=["r1"], files_of_runs=["r2"])

    def rows(query: QueryTablesInput) -> QueryRows:
        if "EXCLUDE" in query.sql:
            return QueryRows(columns=["id", "city", "new city"], rows=[[7, None, "Rom"], [8, "Ulm", "Ulm"]])
        return QueryRows(columns=["run", "rows"], rows=[["r2", 2], ["r1", 5]])

    reached.client = LakeClient({"plan_requeue": plan, "query_tables": rows})
    started: list[LoadOrder] = []

    async def start(*given: Any, **_: object) -> int:
        started.append(given[-1].order)
        return 0

    monkeypatch.setattr(requeue, "start_and_follow", start)
    refused = command("requeue", str(file), "--where", "id > 1")
    assert refused.exit_code == 2 and "Add --yes" in refused.stderr
    assert "geo.cities__quarantine: 7 rows of 2 runs; the requeue moves those where id > 1" in refused.stdout
    assert [line.split() for line in refused.stdout.splitlines()[-2:]] == [["7", "null", "->", "Rom"], ["8", "Ulm"]]
    assert command("requeue", str(file), "--yes").exit_code == 0
    assert planned[-1].selection.runs == ["r1", "r2"]
    assert command("requeue", str(file), "--yes", "--over-younger").exit_code == 0
    order = LoadOrder(runs=["r1"], files_of_runs=["r2"])
    assert started == [order, order.model_copy(update={"over_younger": True})]
