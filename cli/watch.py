"""Following a run live: its stages, the progress of Spark, and the verdicts as they are known."""

import asyncio
import contextlib
import time

from rich.console import Console
from rich.status import Status
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError

from cli.report import verdict_line
from runtime.find_run import Handle, query_status, read_result
from sluice.audit.verdicts import CheckResult
from sluice.contracts.progress import Progress
from sluice.contracts.run import RunResult, RunStatus, StageEvent

_POLL = 0.5
_NO_WORKER = 5.0
"""Seconds without an answer after which the missing worker is mentioned."""
_AUDIT_STAGES = ("auditing", "scanning")
"""The stages in which verdicts become known."""


async def watch_run(client: Client, handle: Handle, console: Console) -> RunResult:
    """Show a run on the console until it ends; return its result."""
    shown = ShownStatus(console)
    answered = time.monotonic()
    closed = asyncio.create_task(_wait_until_closed(handle))
    with console.status("starting") as line:
        while True:
            description = await handle.describe()
            status = await _query_briefly(handle)
            if status:
                answered = time.monotonic()
                shown.update(status)
            if description.status != WorkflowExecutionStatus.RUNNING:
                break
            no_worker = time.monotonic() - answered > _NO_WORKER
            await _update_line(line, status, description, no_worker)
            await (asyncio.sleep(_POLL) if closed.done() else asyncio.wait([closed], timeout=_POLL))
    closed.cancel()
    result = await read_result(client, description)
    assert result is not None
    return result


async def _wait_until_closed(handle: Handle) -> None:
    """Return as soon as the run ends, with any outcome, so that following it does not wait for the next poll."""
    with contextlib.suppress(WorkflowFailureError, RPCError):
        await handle.result(follow_runs=False)


async def _query_briefly(handle: Handle) -> RunStatus | None:
    try:
        return await asyncio.wait_for(query_status(handle), _POLL * 4)
    except asyncio.TimeoutError:
        return None


async def _update_line(
    line: Status, status: RunStatus | None, description: WorkflowExecutionDescription, no_worker: bool
) -> None:
    elapsed = time.time() - description.start_time.timestamp()
    progress = (await read_progress(description)) or (status.stage if status else "starting")
    note = "  [yellow](no worker answers: start one with `python worker.py` or `make up`)[/]" if no_worker else ""
    line.update(f"{elapsed:5.0f}s  {progress}{note}")


async def read_progress(description: WorkflowExecutionDescription) -> str:
    """Return the progress of a run's Spark job from its last heartbeat, or "" if none runs."""
    for activity in description.raw_description.pending_activities:
        if activity.HasField("heartbeat_details") and activity.heartbeat_details.payloads:
            payloads = list(activity.heartbeat_details.payloads)
            progress: Progress
            (progress,) = await description.data_converter.decode(payloads[:1], [Progress])
            return progress.text
        if activity.HasField("last_failure") and activity.attempt > 1:
            return f"{activity.activity_type.name}, try {activity.attempt}: {activity.last_failure.message[:120]}"
    return ""


class ShownStatus:
    """What of a run is on the console: each stage, verdict and hint is printed once, in order."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._events: set[tuple[str, str]] = set()
        self._verdicts: set[str] = set()
        self._hinted = False

    def update(self, status: RunStatus) -> None:
        """Print what is new: the verdicts after the audit that gave them, and before the stages that follow it."""
        events = [event for event in status.events if (event.stage, event.at) not in self._events]
        audits = [index for index, event in enumerate(events, 1) if event.stage in _AUDIT_STAGES]
        until = audits[-1] if audits else 0
        self._print_events(events[:until])
        self._print_verdicts(status.result.checks)
        self._print_events(events[until:])
        if status.stage == "waiting for approval" and not self._hinted:
            self._hinted = True
            run = status.result.workflow_id
            self._print("          ", f"python run_workflow.py approve {run}")
            self._print("          ", f"python run_workflow.py reject {run} --reason ...")

    def _print_events(self, events: list[StageEvent]) -> None:
        for event in events:
            self._events.add((event.stage, event.at))
            self._print(f"[dim]{event.at[11:19]}[/]  [bold]{event.stage}[/]", event.note)

    def _print_verdicts(self, checks: list[CheckResult]) -> None:
        for check in checks:
            line = verdict_line(check)
            if line.plain not in self._verdicts:
                self._verdicts.add(line.plain)
                self._console.print(line, soft_wrap=True)

    def _print(self, markup: str, plain: str) -> None:
        self._console.print(markup, end="  ")
        self._console.print(plain, markup=False, highlight=False)
