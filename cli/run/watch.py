"""Follow a run live: print its stages, the progress of Spark, and the verdicts as they become known."""

import asyncio
import contextlib
import time
from dataclasses import dataclass

from rich.console import Console
from rich.status import Status
from rich.text import Text
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError

from cli.layout import one_line, print_line
from cli.program import program
from cli.run.verdicts import describe_verdict, print_verdicts
from runtime.missing_worker import NO_SERVER_NOTE, START_A_WORKER, cannot_continue, end_run
from runtime.run.find_run import Handle, query_status, read_result
from runtime.run.job_progress import read_progress
from runtime.stuck_workflow import why_stuck
from sluice.checks.verdicts import CheckResult
from sluice.contracts.run import WAITING, RunResult, RunStatus, StageEvent
from sluice.presentation.decisions import describe_state, describe_wait
from sluice.presentation.waivers import WAIVED, how_to_waive, waiver_lines

_POLL = 0.5
_ASK_AGAIN = 10.0
"""Time after which Temporal is asked again for the state of a run, in seconds."""
_NO_WORKER = 5.0
"""Time without an answer after which the missing worker is mentioned, in seconds."""
_NO_ANSWER_NOTE = f"no worker answers: {START_A_WORKER}; the run goes on when there is one"
_AUDIT_STAGES = ("auditing", "scanning")
"""Stages in which verdicts become known."""
_SPINNER = 2
"""Width of the spinner before its text, in characters."""


@dataclass(frozen=True)
class FollowedRun:
    """A run that was followed until it ended."""

    result: RunResult
    verdicts_shown: bool
    """True if each of its verdicts was printed."""


async def watch_run(client: Client, handle: Handle, console: Console) -> FollowedRun:
    """Show a run on the console until it ends; return its result."""
    shown = ShownStatus(console)
    answered, why = time.monotonic(), ""
    closed = asyncio.create_task(_wait_until_closed(handle))
    with console.status("starting") as line:
        while True:
            description = await describe_patiently(handle, shown)
            status = await _query_briefly(handle)
            if status:
                answered, why = time.monotonic(), ""
                shown.update(status)
            if description.status != WorkflowExecutionStatus.RUNNING:
                break
            no_worker = time.monotonic() - answered > _NO_WORKER
            if no_worker:
                why = why or await why_stuck(handle, description)
            note = absence_note(handle.id, why) if no_worker else ""
            shown.print_absence(note)
            await _update_line(line, console.width, status, description, note)
            await (asyncio.sleep(_POLL) if closed.done() else asyncio.wait([closed], timeout=_POLL))
    closed.cancel()
    result = await read_result(client, description)
    assert result is not None
    return FollowedRun(result, shown.has_shown(result.checks))


async def describe_patiently(handle: Handle, shown: "ShownStatus") -> WorkflowExecutionDescription:
    """Return the description of a run. While Temporal does not answer, print that once, and ask again."""
    while True:
        try:
            return await asyncio.wait_for(handle.describe(), _ASK_AGAIN)
        except asyncio.TimeoutError:
            shown.print_absence(NO_SERVER_NOTE)


async def _wait_until_closed(handle: Handle) -> None:
    """Return when the run ends, with any outcome, so that a follower need not wait for the next poll."""
    with contextlib.suppress(WorkflowFailureError, RPCError):
        await handle.result(follow_runs=False)


def absence_note(run: str, why: str) -> str:
    """Return the note about a run without an answer, and with the reason if a worker has it."""
    return str(cannot_continue(run, why, end_run(run))) if why else _NO_ANSWER_NOTE


async def _query_briefly(handle: Handle) -> RunStatus | None:
    try:
        return await asyncio.wait_for(query_status(handle), _POLL * 4)
    except asyncio.TimeoutError:
        return None


async def _update_line(
    line: Status, width: int, status: RunStatus | None, description: WorkflowExecutionDescription, absence: str
) -> None:
    elapsed = time.time() - description.start_time.timestamp()
    progress = (await read_progress(description)) or (describe_state(status) if status else "starting")
    note = f"{absence.partition(';')[0]}; last: " if absence else ""
    text = one_line(f"{note}{progress}", width - _SPINNER - 8)  # a wrapped line would disturb the lines above it
    line.update(Text(f"{elapsed:5.0f}s  {text}", style="yellow" if absence else ""))


class ShownStatus:
    """The stages, verdicts and hints of a run that are on the console: each is printed once, in order."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._events: set[tuple[str, str]] = set()
        self._verdicts: set[str] = set()
        self._waivers: set[str] = set()
        self._decisions = 0
        self._hinted, self._absence = False, ""

    def update(self, status: RunStatus) -> None:
        """Print the news: verdicts after the audit that gave them, and before the stages that follow it."""
        events = [event for event in status.events if (event.stage, event.at) not in self._events]
        audits = [index for index, event in enumerate(events, 1) if event.stage in _AUDIT_STAGES]
        waits = [index for index, event in enumerate(events, 1) if event.stage == WAITING]
        audited = audits[-1] if audits else 0
        waited = max(waits[-1] if waits else 0, audited)
        self._print_events(events[:audited])
        self._print_verdicts(status.result.checks)
        self._print_waivers(status.result)
        self._print_events(events[audited:waited])
        self._print_decisions(status)
        self._print_events(events[waited:])
        if status.stage == WAITING and not self._hinted:
            self._hinted = True
            run = status.result.workflow_id
            self._print_note(how_to_waive(status.result, program()) or f"{program()} approve {run}")
            self._print_note(f"{program()} reject {run} --reason ...")

    def print_absence(self, note: str) -> None:
        """Print a note when no worker answers or can continue the run, and another when one answers again."""
        if note != self._absence:
            self._absence = note
            self._print_note(note or "a worker answers again")

    def has_shown(self, checks: list[CheckResult]) -> bool:
        """Return True if each of these verdicts was printed."""
        return all(_verdict(check) in self._verdicts for check in checks)

    def _print_events(self, events: list[StageEvent]) -> None:
        for event in events:
            self._events.add((event.stage, event.at))
            label = Text.assemble((event.at[11:19], "dim"), "  ")
            print_line(self._console, label, Text.assemble((event.stage, "bold"), f"  {event.note}".rstrip()))

    def _print_verdicts(self, checks: list[CheckResult]) -> None:
        known_since = [check for check in checks if _verdict(check) not in self._verdicts]
        self._verdicts |= set(map(_verdict, known_since))
        print_verdicts(self._console, known_since)

    def _print_waivers(self, result: RunResult) -> None:
        for line in waiver_lines(result):
            if line not in self._waivers:
                self._waivers.add(line)
                self._print_note(f"{WAIVED} {line}")

    def _print_decisions(self, status: RunStatus) -> None:
        """Print each new decision, and the number that is missing. A new attempt begins without decisions."""
        decisions = status.result.approval.decisions if status.result.approval else []
        for number, decision in enumerate(decisions[self._decisions :], self._decisions + 1):
            wait = f" ({describe_wait(_when_decided(status, number))})" if decision.approve else ""
            self._print_note(f"{'approved' if decision.approve else 'rejected'} by {decision.by}{wait}")
        self._decisions = len(decisions)

    def _print_note(self, text: str) -> None:
        print_line(self._console, Text(" " * 10), text)


def _verdict(check: CheckResult) -> str:
    return f"{check.verdict} {describe_verdict(check)}"


def _when_decided(status: RunStatus, decisions: int) -> RunStatus:
    """Return the status as it was after the first `decisions` decisions."""
    record = status.result.approval
    if record is None:
        return status
    earlier = record.model_copy(update={"decisions": record.decisions[:decisions]})
    return status.model_copy(update={"result": status.result.model_copy(update={"approval": earlier})})
