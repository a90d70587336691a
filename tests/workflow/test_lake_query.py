"""Queries of the command line about the lake, answered by real activities on a catalog in memory."""

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment

from activities.lake.query_audit_results import QueryAuditResultsActivity
from activities.publishing.plan_publish import PlanPublishActivity
from activities.publishing.plan_rollback import PlanRollbackActivity
from activities.quarantine.describe_quarantine import DescribeQuarantineActivity
from activities.quarantine.list_quarantine import ListQuarantineActivity
from activities.quarantine.plan_release import PlanReleaseActivity
from cli.context import CommandContext, Interruption
from cli.layout import make_console
from cli.run.follow import start_and_follow
from devstack.temporal_cli import find_temporal_cli
from engine.queries.runner import QueryRunner
from lakehouse.audit.report_store import ReportStore
from lakehouse.audit.results_table import AuditResultsTable
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.input.manifests import InputManifests
from lakehouse.quarantine.quarantined_branches import create_quarantine
from runtime.installation.reached_installation import serving_installations
from runtime.publishing.publish_plan import plan_publish
from runtime.run.run_request import read_request
from runtime.run.start_run import StartOptions
from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import RESULTS, LakeQueryInput, PlanReleaseInput, QueryAuditResultsInput
from sluice.contracts.quarantine import VerifiedWrite
from sluice.contracts.quarantine_queries import DescribeQuarantineInput, ListQuarantineInput
from sluice.contracts.rollback import PlanRollbackInput
from sluice.contracts.run_request import RunInput
from sluice.errors import InvalidInput, InvalidPipeline, ServiceUnavailable
from sluice.pipeline.model import Pipeline
from sluice.pipeline.table import Table
from sluice.publishing.commit_properties import BASE, EXPIRES, INSTALLATION, PIPELINE, RUN_ID, VERIFIED, WORKFLOW_ID
from sluice.settings import Settings
from tests.harness.command_line import run_command
from tests.harness.memory_catalog import CAPABILITIES, MemoryCatalog
from tests.harness.waiting import LIMIT, until
from worker import make_worker
from workflows.lake.lake_query import LakeQuery


@dataclass
class Lake:
    client: Client
    settings: Settings
    catalog: MemoryCatalog
    results: AuditResultsTable

    async def ask(self, query: LakeQueryInput) -> Any:
        return await query_lake(self.client, self.settings.installation, query, RESULTS[type(query)])


@pytest.fixture(scope="module")
async def server(home: Path) -> AsyncIterator[Client]:
    """Temporal's development server: these tests need real time."""
    cli = str(find_temporal_cli(home))
    async with await WorkflowEnvironment.start_local(
        data_converter=pydantic_data_converter,
        dev_server_existing_path=cli,
        dev_server_startup_timeout=timedelta(seconds=LIMIT),
    ) as environment:
        yield environment.client


@pytest.fixture
async def lake(server: Client, tmp_path: Path) -> AsyncIterator[Lake]:
    catalog, location = MemoryCatalog(), tmp_path.as_uri()
    main = catalog.initialize_main()
    catalog.create_branch("wap/x/a1", main)
    verified = VerifiedWrite(head=main, attempt=1, tables={"a.b": 1})
    properties = {
        **{RUN_ID: "run-1", WORKFLOW_ID: "w-1", PIPELINE: "cities", BASE: main, INSTALLATION: "here"},
        **{EXPIRES: "2100-01-01T00:00:00+00:00", VERIFIED: verified.model_dump_json()},
    }
    create_quarantine(catalog, "quarantine/cities/2026-01-01/run-1", main, "wap/x/a1", properties)
    results = AuditResultsTable(catalog, location, {})
    loaded_files = LoadedFiles(catalog, InputManifests(location, {}), tmp_path / "home")
    settings = Settings.of(sluice_task_queue=uuid.uuid4().hex, sluice_installation="here")
    queries = QueryRunner("1GB", tmp_path / "queries")
    async with make_worker(
        server,
        settings,
        settings.installation.sluice_task_queue,
        [
            ListQuarantineActivity(catalog, {}).list_quarantine,
            DescribeQuarantineActivity(catalog, {}, ReportStore(location, {})).describe_quarantine,
            PlanPublishActivity(catalog, {}, loaded_files).plan_publish,
            PlanReleaseActivity(catalog, "here").plan_release,
            PlanRollbackActivity(catalog).plan_rollback,
            QueryAuditResultsActivity(results, queries).query_audit_results,
        ],
        [LakeQuery],
    ):
        yield Lake(server, settings, catalog, results)
    await queries.close()


async def test_a_quarantine_is_listed_described_and_planned_to_be_released(lake: Lake) -> None:
    (entry,) = (await lake.ask(ListQuarantineInput(sizes=True))).quarantined
    assert (entry.summary.run_id, entry.summary.pipeline, entry.bytes) == ("run-1", "cities", 0)
    described = await lake.ask(DescribeQuarantineInput(run="run-1"))
    assert (described.summary, described.tables, described.checks) == (entry.summary, {}, [])
    plan = await lake.ask(PlanReleaseInput(run="cities", statements=["DELETE FROM a.b"]))
    assert plan.resume.branch == entry.summary.branch and plan.resume.statements == ["DELETE FROM a.b"]


def loads(*tables: str, **options: bool) -> Pipeline:
    return Pipeline.model_validate(
        {"name": "p", "write": {"job": "j.py"}, "tables": {name: {} for name in tables}, "publish": options}
    )


async def test_a_start_asks_what_its_publish_guarantees_and_is_refused_before_there_is_a_run(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.catalog.capabilities = replace(CAPABILITIES, many_tables=False, guarantee="one by one")
    context = CommandContext(lake.client, lake.settings, make_console(), False, Interruption())
    several = loads("a.b", "a.c")
    with pytest.raises(InvalidPipeline, match=r"cannot publish 2 tables at once \(a.b, a.c\).*allow_partial: true"):
        await start_and_follow(context, several, RunInput(digest="d1"), StartOptions(), detach=True)
    with pytest.raises(RPCError, match="not found"):
        await lake.client.get_workflow_handle("p-d1").describe()
    allowed = loads("a.b", "a.c", allow_partial=True)
    assert not await start_and_follow(context, allowed, RunInput(digest="d2"), StartOptions(), detach=True)
    started = await lake.client.get_workflow_handle("p-d2").describe()
    request = await read_request(lake.client, "p-d2", started.run_id)
    await lake.client.get_workflow_handle("p-d2").terminate()
    assert request and request.guarantee == "one by one"
    assert "Guarantee: one by one: readers may see some tables before the others" in capsys.readouterr().out


async def test_a_quarantine_table_counts_and_one_table_needs_no_worker(lake: Lake) -> None:
    lake.catalog.capabilities = replace(CAPABILITIES, guarantee="checked")
    table = {"on_bad_rows": "quarantine", "max_bad_rows": 1}
    both = loads("a.b").model_copy(update={"tables": {"a.b": Table.model_validate(table)}})
    assert (await plan_publish(lake.client, lake.settings.installation, both)).guarantee == "checked"
    nowhere = Settings.of(sluice_task_queue="nobody")
    assert (await plan_publish(lake.client, nowhere.installation, loads("a.b"))).guarantee == "atomic"


async def test_a_start_without_a_worker_says_that_the_guarantee_is_not_known(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = Settings.of(sluice_task_queue="nobody", sluice_worker_wait=0.2)
    with pytest.raises(ServiceUnavailable, match="no worker takes work"):
        await plan_publish(lake.client, nowhere.installation, loads("a.b", "a.c"))
    context = CommandContext(lake.client, nowhere, make_console(), False, Interruption())
    digest = RunInput(digest="d3")
    assert not await start_and_follow(context, loads("a.b", "a.c"), digest, StartOptions(), detach=True)
    await lake.client.get_workflow_handle("p-d3").terminate()
    printed = capsys.readouterr().err
    assert "hint: the guarantee of the publish is not known yet: no worker takes work" in printed
    assert "hint: p-d3 waits: no worker takes work from the task queue 'nobody'" in printed


async def test_workers_say_of_which_installation_they_are(lake: Lake) -> None:
    await lake.ask(ListQuarantineInput())
    assert await serving_installations(lake.client, lake.settings.installation.sluice_task_queue) == {"here"}
    assert await serving_installations(lake.client, "nobody") == set()


@pytest.mark.parametrize(("installation", "code"), [("here", 0), ("another", 7)])
async def test_a_command_of_a_folder_talks_to_its_own_installation(
    lake: Lake, tmp_path: Path, installation: str, code: int
) -> None:
    """After `make down`, another stack may use the port of this folder's stack."""
    lake.results.record("run-1", [{"run_id": "run-1", "pipeline": "cities"}], again=False)
    address = lake.client.service_client.config.target_host
    (tmp_path / "stack.json").write_text(json.dumps({"environment": {"TEMPORAL_ADDRESS": address}}))
    (tmp_path / "installation").write_text(f"{installation}\n")
    environment = {
        **os.environ,
        "SLUICE_HOME": str(tmp_path),
        "SLUICE_TASK_QUEUE": lake.settings.installation.sluice_task_queue,
    }
    asked = ("results", "SELECT pipeline FROM results", "--json")
    ended = await asyncio.to_thread(run_command, tmp_path, environment, *asked)
    assert ended.code == code, ended
    if code:
        assert "is down, and the stack of installation here listens at" in ended.err
    else:
        assert (ended.json, ended.err) == ({"rows": [{"pipeline": "cities"}]}, "")


async def test_audit_results_are_queried(lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="no run has ended yet"):
        await lake.ask(QueryAuditResultsInput(sql="SELECT 1"))
    lake.results.record("run-1", [{"run_id": "run-1", "pipeline": "cities"}], again=False)
    answer = await lake.ask(QueryAuditResultsInput(sql="SELECT pipeline, failed_rows FROM results"))
    assert (answer.columns, answer.rows) == (["pipeline", "failed_rows"], [["cities", None]])


async def test_what_an_activity_refuses_is_the_error_of_the_domain(lake: Lake) -> None:
    for query in (
        ListQuarantineInput(run="nobody"),
        ListQuarantineInput(run=""),
        PlanReleaseInput(run="nobody"),
        PlanRollbackInput(run="r"),
    ):
        with pytest.raises(
            InvalidPipeline, match=r"nothing of '(nobody)?' is quarantined|main contains no published run 'r'"
        ):
            await lake.ask(query)


async def test_a_missing_worker_is_one_message_within_seconds(lake: Lake) -> None:
    settings = Settings.of(sluice_task_queue="nobody-polls-this", sluice_worker_wait=1.0)
    with pytest.raises(ServiceUnavailable, match="no worker takes work from the task queue 'nobody-polls-this'"):
        await query_lake(lake.client, settings.installation, ListQuarantineInput(), RESULTS[ListQuarantineInput])

    async def is_terminated() -> bool:
        listed = lake.client.list_workflows("TaskQueue = 'nobody-polls-this'")
        return [each.status.name async for each in listed if each.status] == ["TERMINATED"]

    await until(is_terminated)  # Temporal's list may be behind
