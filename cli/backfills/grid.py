"""Follow a backfill: a grid of its partitions on a terminal; elsewhere one line for each ended partition."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from cli.context import CommandContext
from cli.layout import joined, one_line, print_entry, print_line, visible
from runtime.backfills.backfills import backfill_handle, read_backfill
from runtime.missing_worker import NO_SERVER_NOTE
from runtime.run.find_run import query_status
from sluice.backfills.progress import FAILURES, count_states, partition_states
from sluice.contracts.backfill import BackfillState, BackfillStatus, JointPublish, PartitionState
from sluice.errors import ServiceUnavailable
from sluice.presentation.backfills import shown_state
from sluice.presentation.decisions import describe_state
from sluice.sizes import format_count
from workflows.write_audit_publish import WriteAuditPublish

_POLL = 1.0
_ASK_AGAIN = 10.0
"""Time after which a backfill without an answer is read again, in seconds."""
_ANSWER = 2.0
"""Time that a run has to report its stage, in seconds."""
_MAX_STAGES = 8
"""Maximum number of running partitions shown with their stage, and of failed ones shown with their reason."""
_MAX_ROWS = 20
_ROW = 50
"""Maximum number of partitions in one row of the grid."""
_MARKS: dict[PartitionState, tuple[str, str]] = {
    "waiting": ("·", "dim"), "running": (">", "yellow"), "published": ("#", "green"), "skipped": ("=", "green"),
    "kept out": ("!", "red"), "failed": ("x", "red"), "cancelled": ("-", "magenta"),
}  # fmt: skip
_RUNNING = WorkflowExecutionStatus.RUNNING.name.lower()
_ENDED = ("published", "skipped", "kept out", "failed", "cancelled")


async def follow_backfill(context: CommandContext, pipeline: str) -> tuple[BackfillStatus, str]:
    """Show a backfill until it has ended, or is paused and none of its runs is under way.

    Returns:
        Its last status, and the state of its workflow: `running`, `completed`, `canceled`, `terminated` and so on.
    """
    shown, silence = ShownPartitions(context.console), _Silence(context.console)
    with Live(console=context.console, auto_refresh=False, transient=True) as live:
        while True:
            try:  # if the workflow has ended, the status read after it is final
                state = await asyncio.wait_for(_workflow_state(context, pipeline), _ASK_AGAIN)
                status = await read_backfill(context.client, context.installation_with_id, pipeline)
            except asyncio.TimeoutError:
                silence.print_once(NO_SERVER_NOTE)
                continue
            except ServiceUnavailable as error:
                silence.print_once(str(error))
                await asyncio.sleep(_ASK_AGAIN)
                continue
            silence.end()
            shown.update(status)
            if state != _RUNNING or (status.progress.paused and not status.children):
                return status, state
            if context.console.is_terminal:
                stages = await read_stages(context.client, status)
                live.update(Group(*describe_backfill(status, stages, context.console.width, cuts=True)), refresh=True)
            await asyncio.sleep(_POLL)


class _Silence:
    """The time in which a backfill gives no answer. Each reason is printed once, on a terminal and elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._why = ""

    def print_once(self, why: str) -> None:
        """Print why there is no answer, unless it is printed already."""
        if why != self._why:
            self._why = why
            print_line(self._console, Text(" " * 10), why)

    def end(self) -> None:
        """Print that there is an answer again, if its absence was printed."""
        if self._why:
            self.print_once("a worker answers again")
            self._why = ""


async def _workflow_state(context: CommandContext, pipeline: str) -> str:
    status = (await backfill_handle(context.client, context.installation_with_id, pipeline).describe()).status
    return (status or WorkflowExecutionStatus.RUNNING).name.lower()


class ShownPartitions:
    """The ended partitions that are on the console: each end is printed once."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._states: dict[str, PartitionState] = {}

    def update(self, status: BackfillStatus) -> None:
        """Print the partitions that have ended since the last update."""
        states = partition_states(status.progress)
        for name, state in states.items():
            if state in _ENDED and self._states.get(name) != state:
                _print_end(self._console, status, name, state)
        self._states = states


def _print_end(console: Console, status: BackfillStatus, name: str, state: PartitionState) -> None:
    """Print the state in which a partition ended, with its run and its reason."""
    note = status.progress.notes.get(name)
    label = Text.assemble((f"{shown_state(status, state):10}", _MARKS[state][1]), f"{name}  ")
    print_entry(console, label, note.workflow_id if note else "", note.reason if note else "")


def print_failures(console: Console, status: BackfillStatus) -> None:
    """Print the first partitions that failed or were kept out, each with its run and its reason."""
    failed = [(name, state) for name, state in partition_states(status.progress).items() if state in FAILURES]
    for name, state in failed[:_MAX_STAGES]:
        _print_end(console, status, name, state)
    if len(failed) > _MAX_STAGES:
        print_line(console, Text(" " * 10), f"and {len(failed) - _MAX_STAGES:,} more")


def describe_backfill(
    status: BackfillStatus, stages: dict[str, str], width: int, *, cuts: bool = False
) -> Iterator[Text]:
    """Yield the lines that show a backfill: its grid, the partitions that run, and the totals.

    Args:
        width: width of the grid.
        cuts: True to cut the lines to this width, for a picture that replaces itself.
    """
    progress = status.progress

    def line(text: str, style: str) -> Text:
        return Text(one_line(text, width) if cuts else visible(joined(text)).plain, style=style)

    yield from grid_rows(progress, width)
    for name, stage in stages.items():
        yield line(f"> {name}: {stage}", "yellow")
    if len(status.children) > len(stages):
        yield Text(f"> and {len(status.children) - len(stages)} more", style="yellow")
    yield totals(status)
    if status.together and (joint := describe_joint_publish(status.together)):
        yield line(joint, "dim")
    if progress.paused:
        yield line(f"paused {progress.paused}", "bold yellow")


def totals(status: BackfillStatus) -> Text:
    """Return the number of partitions in each state, with the state's mark in the grid."""
    text = Text(f"{status.name}: {format_count(len(status.progress.partitions), 'partition')}", style="bold")
    counts = count_states(status.progress)
    for state, (mark, style) in _MARKS.items():
        if counts[state]:
            text.append(f"  {mark} {counts[state]:,} {shown_state(status, state)}", style=style)
    return text.append(f"  {status.progress.window} at a time", style="dim")


def describe_joint_publish(joint: JointPublish) -> str:
    """Return the state of the merge of all partitions, in one sentence."""
    if joint.ended is None:
        return f"its partitions are not on main yet, but on the branch {joint.branch}" if joint.branch else ""
    if joint.ended.is_done:
        return f"published together by {joint.ended.workflow_id}" if joint.ended.workflow_id else joint.ended.reason
    kept = f" (they are kept as {joint.quarantine})" if joint.quarantine else ""
    return f"not published: {joint.ended.reason or joint.ended.outcome}{kept}"


def grid_rows(progress: BackfillState, width: int) -> Iterator[Text]:
    """Yield the rows of the grid, one mark for each partition; of a long grid, start at the first unfinished row."""
    states = partition_states(progress)
    rows = list(_rows(progress.partitions, max(1, min(_ROW, width - 14))))
    done = [all(states[name] in ("published", "skipped") for name in names) for _, names in rows]
    first = max(0, min(done.index(False) if False in done else 0, len(rows) - _MAX_ROWS))
    if first:
        yield Text(f"… {format_count(first, 'row')} above", style="dim")
    for label, names in rows[first : first + _MAX_ROWS]:
        row = Text(f"{label:>12} ", style="dim")
        for name in names:
            row.append(*_MARKS[states[name]])
        yield row
    if (left := len(rows) - first - _MAX_ROWS) > 0:
        yield Text(f"… {format_count(left, 'row')} below", style="dim")


def _rows(partitions: Sequence[str], width: int) -> Iterator[tuple[str, list[str]]]:
    """Yield rows of partitions with a label: a year or a month for dates, otherwise the first partition of the row."""
    for label, group in groupby(partitions, key=lambda name: name.rpartition("-")[0] if name[:4].isdigit() else ""):
        names = list(group)
        for start in range(0, len(names), width):
            row = names[start : start + width]
            yield (label if label and start == 0 else row[0])[:12], row


async def read_stages(client: Client, status: BackfillStatus) -> dict[str, str]:
    """Return the stages of the first running partitions, including a wait for approval."""
    first = list(status.children.items())[:_MAX_STAGES]
    stages = await asyncio.gather(*(_stage(client, child) for _, child in first))
    return {name: stage for (name, _), stage in zip(first, stages, strict=True)}


async def _stage(client: Client, child: str) -> str:
    try:
        return await asyncio.wait_for(_ask_stage(client, child), _ANSWER)
    except (asyncio.TimeoutError, RPCError):
        return "running"


async def _ask_stage(client: Client, child: str) -> str:
    """Return the stage of the run that a partition's workflow started."""
    description = await client.get_workflow_handle(child).describe()
    runs = [pending.workflow_id for pending in description.raw_description.pending_children]
    if not runs:
        return "reading its input, or waiting for a run of the same input"
    run = await query_status(client.get_workflow_handle_for(WriteAuditPublish.run, runs[0]))
    return f"{describe_state(run) if run else 'running'}, {runs[0]}"
