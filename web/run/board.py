"""The runs that the home page shows: those that wait for a person, those under way, and those of the last day."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from temporalio.client import Client, WorkflowExecution

from runtime.run.find_run import RUNNING, RunFilter, describe_run, list_runs
from runtime.run.job_progress import read_progress
from runtime.run.listed_run import ListedRun, listed_run, query_statuses
from sluice.contracts.run import WAITING, RunStatus
from web.cached import Cached
from web.timing import TIMING, PageTiming

_MOST_RUNNING = 200
_MOST_ENDED = 1000
"""Maximum number of runs of the last day that are shown."""
_MOST_PROGRESS = 20
"""Maximum number of runs whose job is asked for its progress."""
_FRESH_ENDED = 30.0
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class RunningRun:
    """A run that has not ended."""

    run: ListedRun
    status: RunStatus | None
    """Status of the run; None if no worker answers."""
    progress: str = ""
    """Progress of its Spark job; empty if none runs."""

    @property
    def is_waiting(self) -> bool:
        """True if the run waits for the decision of a person."""
        return self.status is not None and self.status.stage == WAITING


@dataclass(frozen=True)
class Snapshot:
    """The runs of an installation at one time."""

    waiting: list[RunningRun]
    """Runs that wait for a decision, the earliest deadline first."""
    under_way: list[RunningRun]
    ended: list[ListedRun]
    """Runs that ended within the last day."""
    read_at: datetime

    @property
    def version(self) -> str:
        """Digest of everything that the snapshot shows."""
        running = [
            (each.run.run_id, each.progress, each.status.model_dump_json() if each.status else "")
            for each in (*self.waiting, *self.under_way)
        ]
        ended = [(each.run_id, each.outcome) for each in self.ended]
        return hashlib.sha256(repr((running, ended)).encode()).hexdigest()[:16]


class Board:
    """Reads the runs of the home page from Temporal, once for all readers."""

    def __init__(self, client: Client, timing: PageTiming = TIMING) -> None:
        self._client = client
        self._snapshot = Cached(self._read, timing.runs)
        self._ended = Cached(self._read_ended, _FRESH_ENDED)
        self._running_ids: frozenset[str] = frozenset()

    async def read(self) -> Snapshot:
        """Return the present runs.

        Raises:
            RPCError: Temporal does not answer.
        """
        return await self._snapshot.get()

    def forget(self) -> None:
        """Read the runs again for the next reader, because one of them was decided or cancelled."""
        self._snapshot.forget()

    async def _read(self) -> Snapshot:
        executions = await list_runs(self._client, _MOST_RUNNING, RunFilter(state=RUNNING))
        ids = frozenset(each.run_id for each in executions)
        if ids != self._running_ids:  # a run that is not under way any more has ended
            self._ended.forget()
            self._running_ids = ids
        statuses = await query_statuses(self._client, executions)
        runs = [
            RunningRun(await listed_run(execution), status)
            for execution, status in zip(executions, statuses, strict=True)
        ]
        waiting = [each for each in runs if each.is_waiting]
        return Snapshot(
            waiting=sorted(waiting, key=lambda each: each.status.deadline if each.status else ""),
            under_way=await self._with_progress([each for each in runs if not each.is_waiting]),
            ended=await self._ended.get(),
            read_at=datetime.now(timezone.utc),
        )

    async def _with_progress(self, runs: Sequence[RunningRun]) -> list[RunningRun]:
        first = await asyncio.gather(*(self._progress(each.run) for each in runs[:_MOST_PROGRESS]))
        known = [RunningRun(each.run, each.status, text) for each, text in zip(runs, first, strict=False)]
        return [*known, *runs[_MOST_PROGRESS:]]

    async def _progress(self, run: ListedRun) -> str:
        described = await describe_run(self._client, run.workflow_id, run.run_id)
        return await read_progress(described.description) if described else ""

    async def _read_ended(self) -> list[ListedRun]:
        since = datetime.now(timezone.utc) - _DAY
        ended: list[WorkflowExecution] = await list_runs(self._client, _MOST_ENDED, RunFilter(ended_since=since))
        return [await listed_run(each) for each in ended]
