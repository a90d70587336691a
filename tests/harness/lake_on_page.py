"""The page and commands on a lake in memory: real activities answer, and the started runs are kept."""

import asyncio
import html
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import WorkflowExecutionStatus
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode
from typer.testing import CliRunner, Result

from activities.publishing.plan_publish import PlanPublishActivity
from activities.publishing.plan_rollback import PlanRollbackActivity
from activities.quarantine.list_quarantine import ListQuarantineActivity
from activities.quarantine.manage_quarantine import ManageQuarantineActivity
from activities.quarantine.plan_release import PlanReleaseActivity
from cli import app as command_line
from sluice.contracts.arrivals import ZONE_MEMO
from sluice.contracts.quarantine import ManageQuarantineInput
from sluice.contracts.quarantine_queries import ListQuarantineInput, QuarantineSummary
from sluice.contracts.run import RunResult
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.pipeline.model import Pipeline
from tests.harness.asgi import Answer, Browser
from tests.harness.lake_client import LakeClient, polled_by
from tests.harness.memory_lake import MemoryLake
from tests.harness.page import browser
from tests.harness.quarantined_run import HERE, FakeWorkflows, LakeRun

PIPELINE = Pipeline.model_validate({"name": "p", "write": {"job": "job.py"}, "tables": {"t.x": {}, "t.y": {}}})


@dataclass
class StartedRun:
    """A run that a page or a command started."""

    workflow_id: str
    run_id: str
    request: RunRequest
    is_running: bool = True
    outcome: str = "failed"
    """Outcome of the run if it has ended."""

    @property
    def path(self) -> str:
        return f"/runs/{self.workflow_id}/{self.run_id}"


class _Running(FakeWorkflows):
    def __init__(self, client: "StartingClient") -> None:
        super().__init__()
        self._started = client.started

    def is_running(self, workflow_id: str, run_id: str | None = None) -> bool:
        return any(each.is_running for each in self._started if each.workflow_id == workflow_id)


class StartingClient(LakeClient):
    """A client of Temporal in memory that starts runs, one at a time for each workflow id."""

    namespace = "default"

    def __init__(self, lake: MemoryLake) -> None:
        catalog = lake.catalog
        self.started: list[StartedRun] = []
        self.managed: list[ManageQuarantineInput] = []
        self.zones: list[str] = []
        """Pipelines with a deployed landing zone."""
        managing = ManageQuarantineActivity(catalog, _Running(self), HERE).manage_quarantine

        def manage(given: ManageQuarantineInput) -> str:
            self.managed.append(given)
            return managing(given)

        super().__init__(
            {
                "list_quarantine": ListQuarantineActivity(catalog, {}).list_quarantine,
                "plan_release": PlanReleaseActivity(catalog, HERE).plan_release,
                "plan_rollback": PlanRollbackActivity(catalog, {}).plan_rollback,
                "plan_publish": PlanPublishActivity(catalog, {}, lake.loaded_files).plan_publish,
                "ManageQuarantine": manage,
            },
            RunRequest(pipeline=PIPELINE, input=RunInput(digest="d"), starter="ana"),
        )
        self.operator_service = SimpleNamespace(list_search_attributes=self._no_attributes)
        self.workflow_service = polled_by("1@host")

    async def _no_attributes(self, *_: object, **__: object) -> None:
        raise RPCError("no search attributes", RPCStatusCode.UNIMPLEMENTED, b"")

    async def start_workflow(self, run: Any, argument: Any, **options: Any) -> SimpleNamespace:
        if not isinstance(argument, RunRequest):
            return await super().start_workflow(run, argument)
        workflow_id = options["id"]
        if (latest := self.latest(workflow_id)) and latest.is_running:
            raise WorkflowAlreadyStartedError(workflow_id, "WriteAuditPublish", run_id=latest.run_id)
        started = StartedRun(workflow_id, f"started-{len(self.started)}", argument)
        self.started.append(started)
        return SimpleNamespace(id=workflow_id, run_id=None, first_execution_run_id=started.run_id)

    def latest(self, workflow_id: str, run_id: str | None = None) -> StartedRun | None:
        """Return a run by its ids, or the latest run of a workflow id."""
        runs = [each for each in self.started if each.workflow_id == workflow_id and run_id in (None, each.run_id)]
        return runs[-1] if runs else None

    async def list_workflows(self, *_: object, **__: object) -> AsyncIterator[SimpleNamespace]:
        """List the landing zones."""
        for name in self.zones:
            yield SimpleNamespace(memo=_memo({ZONE_MEMO: {"name": name, "installation": HERE}}))

    def get_workflow_handle(self, workflow_id: str, run_id: str | None = None, **_: object) -> SimpleNamespace:
        """Return the handle of a started run. Every other run id is that of a run that wrote to the lake."""
        started = self.latest(workflow_id, run_id)

        async def describe() -> SimpleNamespace:
            if started is None and (run_id is None or run_id == "unknown"):
                raise RPCError("not found", RPCStatusCode.NOT_FOUND, b"")
            is_running = started is not None and started.is_running
            now = datetime.now(timezone.utc)
            return SimpleNamespace(
                id=workflow_id,
                run_id=started.run_id if started else run_id,
                status=WorkflowExecutionStatus.RUNNING if is_running else WorkflowExecutionStatus.COMPLETED,
                workflow_type="WriteAuditPublish",
                start_time=now,
                close_time=None if is_running else now,
                search_attributes={},
                memo=_memo({}),
                raw_description=DescribeWorkflowExecutionResponse(),
                history_length=5,
            )

        async def result(**_: object) -> RunResult:
            assert started is not None
            fields = {"run_id": started.run_id, "workflow_id": workflow_id, "pipeline": "p", "branch": "b"}
            return RunResult.model_validate({**fields, "outcome": started.outcome})

        async def no_answer(*_: object, **__: object) -> None:
            raise RPCError("no worker", RPCStatusCode.UNAVAILABLE, b"")

        kept = LakeClient({}, started.request if started else self._request).get_workflow_handle(workflow_id)
        return SimpleNamespace(
            id=workflow_id, run_id=run_id, describe=describe, result=result, query=no_answer,
            fetch_history_events=kept.fetch_history_events,
        )  # fmt: skip

    def get_workflow_handle_for(self, _: object, workflow_id: str, run_id: str) -> SimpleNamespace:
        """Return the handle of a run that a start attaches to."""
        return self.get_workflow_handle(workflow_id, run_id)


def _memo(values: dict[str, Any]) -> Callable[[], Awaitable[dict[str, Any]]]:
    async def memo() -> dict[str, Any]:
        return values

    return memo


class LakeOnPage:
    """A lake in memory, with the page of a person and the command line."""

    def __init__(self, lake: MemoryLake) -> None:
        self.lake, self.client = lake, StartingClient(lake)

    def page(self, person: str = "ana", installation: str = HERE) -> Browser:
        return browser(self.client, person, sluice_installation=installation)

    @property
    def started(self) -> list[StartedRun]:
        return self.client.started

    def quarantined(self) -> list[QuarantineSummary]:
        """Return the quarantines of the lake."""
        listed = self.client.answers["list_quarantine"](ListQuarantineInput())
        return [each.summary for each in listed.quarantined]

    def run(self, *tables: str) -> LakeRun:
        return LakeRun(self.lake, tables or ("t.x",))

    async def command(self, *words: str) -> Result:
        """Run a command that needs no answers."""
        return await asyncio.to_thread(CliRunner().invoke, command_line.app, [*words, "--yes"])


def form(answer: Answer, action: str) -> dict[str, str]:
    """Return the hidden fields of the first form that leads to an address."""
    text = re.split(rf'method="post" action="[^"]*{action}"', answer.text)[1].partition("</form>")[0]
    return {
        name: html.unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', text)
    }


def button(answer: Answer, action: str) -> str:
    """Return the button of the first form that leads to an address."""
    text = re.split(rf'method="post" action="[^"]*{action}"', answer.text)[1]
    return str(re.findall(r"<button[^>]*>", text)[0])


def notice(answer: Answer) -> str:
    """Return the message at the top of a page."""
    return html.unescape(re.findall(r'<p class="notice" role="alert">(.*?) <a ', answer.text)[0])
