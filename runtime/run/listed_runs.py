"""The lines of `list`: runs, one line for the runs of a backfill, and the state of quarantines."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError

from runtime.run.find_run import ALL_RUNS, RunFilter, list_runs
from runtime.short_workflow import query_lake
from sluice.contracts.quarantine_queries import ListQuarantineInput, ListQuarantineResult
from sluice.errors import SluiceError
from sluice.identifiers import backfill_id
from sluice.setting_groups import InstallationSettings
from workflows.search_attributes import RELEASES_MEMO, ROLLS_BACK_MEMO

_MOST_READ = 1000
"""Maximum number of runs that are read to fill a list with lines."""
_IDS_AT_ONCE = 100
"""Number of workflow ids in one query of Temporal."""
_ANSWER_WITHIN = 3.0
"""Time that a worker has to list the quarantines, in seconds; after that the list has no state of quarantines."""


@dataclass(frozen=True)
class ListedRuns:
    """A line of the list: one run, or the runs of one backfill."""

    runs: list[WorkflowExecution]
    """Runs, newest first."""
    is_running: bool = False
    """True while the backfill runs or is paused."""
    backfill: str = ""
    """The pipeline of the backfill; empty for a run outside a backfill."""
    partitions: Counter[str] | None = None
    """Partitions of the backfill by state, with those that had no run; None if they are not known."""
    is_paused: bool = False


@dataclass(frozen=True)
class Quarantines:
    """The quarantines of listed runs: kept, or published by another run."""

    kept: frozenset[str] | None = None
    """Ids of the runs whose quarantine is kept; None if they are not known."""
    released_by: dict[str, str] = field(default_factory=dict)
    """Workflow ids of the runs that published a quarantine, by the run id of the quarantined run."""


async def list_lines(
    client: Client, settings: InstallationSettings, limit: int, wanted: RunFilter, *, each_run: bool
) -> list[ListedRuns]:
    """Return the newest lines of the list.

    Args:
        each_run: True to return one line for each run of a backfill.
    """
    if each_run:
        return [ListedRuns([run]) for run in await list_runs(client, limit, wanted)]
    prefix = backfill_id(settings.sluice_installation, "")
    lines: dict[tuple[str, str], ListedRuns] = {}
    async for run in client.list_workflows(wanted.query, limit=_MOST_READ):
        root = run.root_id or ""
        is_of_backfill = root.startswith(prefix)
        key = (root, run.root_run_id or "") if is_of_backfill else (run.id, run.run_id)
        if key in lines:
            lines[key].runs.append(run)
        elif len(lines) < limit:  # older runs of a listed backfill may still follow
            lines[key] = ListedRuns([run], backfill=root.removeprefix(prefix) if is_of_backfill else "")
    states = [_with_state(client, settings, line, wanted) for line in lines.values()]
    return await asyncio.gather(*states)


async def _with_state(
    client: Client, settings: InstallationSettings, line: ListedRuns, wanted: RunFilter
) -> ListedRuns:
    """Return the line of a backfill with its state, which is that of its workflow if the runs are of the latest one."""
    if not line.backfill:
        return line
    root = line.runs[0]
    try:
        latest = await client.get_workflow_handle(root.root_id or "").describe()
    except RPCError:
        return line
    is_same = root.root_run_id in (latest.run_id, latest.raw_info.first_run_id)
    line = replace(line, is_running=is_same and latest.status == WorkflowExecutionStatus.RUNNING)
    if wanted != ALL_RUNS:  # with a filter, the line counts the runs that match
        return line
    from runtime.backfills import list_backfills  # noqa: PLC0415  # a list without backfills needs none

    if is_same:
        counted = await list_backfills.count_partitions(client, settings, latest, line.backfill)
    else:
        counted = await list_backfills.count_of_earlier(client, root.root_id or "", root.root_run_id or "")
    return replace(line, partitions=counted[0], is_paused=counted[1]) if counted else line


async def find_quarantines(
    client: Client, settings: InstallationSettings, runs: Sequence[WorkflowExecution]
) -> Quarantines:
    """Return the state of the quarantines of some runs, as far as a worker and Temporal answer."""
    if not runs:
        return Quarantines()
    query = query_lake(client, settings, ListQuarantineInput(), ListQuarantineResult)
    try:
        listed = await asyncio.wait_for(query, _ANSWER_WITHIN)
    except (SluiceError, asyncio.TimeoutError):
        return Quarantines()
    kept = frozenset(each.summary.run_id for each in listed.quarantined)
    ended = {run.run_id for run in runs} - kept
    if not ended:
        return Quarantines(kept)
    released: dict[str, str] = {}
    published = RunFilter(state="published", since=min(run.start_time for run in runs))
    for run in await list_runs(client, _MOST_READ, published):
        of = str(await _memo(run, RELEASES_MEMO) or "")
        if of in ended:
            released[of] = run.id
    return Quarantines(kept, released)


async def find_earlier(client: Client, runs: Sequence[WorkflowExecution]) -> set[str]:
    """Return the run ids of those runs whose workflow id names a later run."""
    ids = sorted({run.id for run in runs})
    latest: dict[str, str] = {}
    for first in range(0, len(ids), _IDS_AT_ONCE):
        same_input = RunFilter(workflow_ids=tuple(ids[first : first + _IDS_AT_ONCE]))
        for run in await list_runs(client, _MOST_READ, same_input):  # newest first
            latest.setdefault(run.id, run.run_id)
    return {run.run_id for run in runs if latest.get(run.id, run.run_id) != run.run_id}


async def find_rollbacks(client: Client, runs: Sequence[WorkflowExecution]) -> dict[str, str]:
    """Return the workflow ids of the roll-backs of some runs, by the run id of the run that was rolled back.

    A roll-back that was rolled back itself does not count.
    """
    if not runs:
        return {}
    published = RunFilter(state="published", since=min(run.start_time for run in runs))
    by: dict[str, str] = {}
    for run in await list_runs(client, _MOST_READ, published):  # newest first, so its own roll-back is known
        if run.run_id not in by:
            named = await _memo(run, ROLLS_BACK_MEMO)
            by |= {str(each): run.id for each in (named if isinstance(named, list) else []) if str(each) not in by}
    return by


async def _memo(run: WorkflowExecution, name: str) -> object:
    """Return a field of a run's memo; None without it, or if it is encrypted."""
    try:
        return (await run.memo()).get(name)
    except Exception:  # each codec has its own errors; the list is shown without the encrypted parts
        return None
