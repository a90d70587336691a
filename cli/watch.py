"""Following a run live: stages, Spark's progress and verdicts, as they come."""

import asyncio
import contextlib
import time

from rich.console import Console
from rich.status import Status
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError

from cli.screens import verdict_line
from engine.process.progress import Progress
from runtime.find_run import Handle, result_of, status_of
from sluice.contracts.run import RunResult, RunStatus

_POLL = 0.5
_LONELY = 5.0
"""Seconds without an answer after which the missing worker is mentioned."""


async def follow(client: Client, handle: Handle, console: Console) -> RunResult:
    """Show a run on the console until it ends; return its result."""
    shown = _Shown(console)
    answered = time.monotonic()
    closed = asyncio.create_task(_closed(handle))
    with console.status("starting") as line:
        while True:
            description = await handle.describe()
            status = await _asked(handle)
            if status:
                answered = time.monotonic()
                shown.show(status)
            if description.status != WorkflowExecutionStatus.RUNNING:
                break
            lonely = time.monotonic() - answered > _LONELY
            await _say(line, status, description, lonely)
            await (asyncio.sleep(_POLL) if closed.done() else asyncio.wait([closed], timeout=_POLL))
    closed.cancel()
    result = await result_of(client, description)
    assert result is not None
    return result


async def _closed(handle: Handle) -> None:
    """Return when the run ends, however it does, so that nobody waits for the next look."""
    with contextlib.suppress(WorkflowFailureError, RPCError):
        await handle.result(follow_runs=False)


async def _asked(handle: Handle) -> RunStatus | None:
    try:
        return await asyncio.wait_for(status_of(handle), _POLL * 4)
    except asyncio.TimeoutError:
        return None


async def _say(line: Status, status: RunStatus | None, description: WorkflowExecutionDescription, lonely: bool) -> None:
    elapsed = time.time() - description.start_time.timestamp()
    doing = (await progress_of(description)) or (status.stage if status else "starting")
    note = "  [yellow](no worker answers: start one with `python worker.py` or `make up`)[/]" if lonely else ""
    line.update(f"{elapsed:5.0f}s  {doing}{note}")


async def progress_of(description: WorkflowExecutionDescription) -> str:
    """Return how far the Spark job of a run is, from its last sign of life, or "" where none runs."""
    for activity in description.raw_description.pending_activities:
        if activity.HasField("heartbeat_details") and activity.heartbeat_details.payloads:
            payloads = list(activity.heartbeat_details.payloads)
            (progress,) = await description.data_converter.decode(payloads[:1], [Progress])
            text: str = progress.text
            return text
        if activity.HasField("last_failure") and activity.attempt > 1:
            return f"{activity.activity_type.name}, try {activity.attempt}: {activity.last_failure.message[:120]}"
    return ""


class _Shown:
    """What of a run is on the console already."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._events: set[tuple[str, str]] = set()
        self._checks = 0

    def show(self, status: RunStatus) -> None:
        """Print what is new."""
        for event in status.events:
            if (event.stage, event.at) not in self._events:
                self._events.add((event.stage, event.at))
                self._print(f"[dim]{event.at[11:19]}[/]  [bold]{event.stage}[/]", event.note)
        checks = status.result.checks
        if len(checks) < self._checks:
            self._checks = 0  # another attempt began
        for check in checks[self._checks :]:
            self._console.print(verdict_line(check), soft_wrap=True)
        self._checks = len(checks)
        if status.stage == "waiting for approval" and self._once("approve"):
            run = status.result.workflow_id
            self._print("          ", f"python run_workflow.py approve {run}")
            self._print("          ", f"python run_workflow.py reject {run} --reason ...")

    def _once(self, what: str) -> bool:
        new = (what, "") not in self._events
        self._events.add((what, ""))
        return new

    def _print(self, markup: str, plain: str) -> None:
        self._console.print(markup, end="  ")
        self._console.print(plain, markup=False, highlight=False)
