"""The runs that the home page shows: those that wait for a person, those under way, and those of the last day."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property

from temporalio.client import Client, WorkflowExecution

from runtime.run.find_run import RUNNING, RunFilter, describe_run, list_runs
from runtime.run.job_progress import read_progress
from runtime.run.listed_run import ListedRun, listed_run
from sluice.contracts.run import WAITING, RunStatus
from web.cached import Cached
from web.run.ended_runs import EndedRuns
from web.run.statuses import Statuses
from web.timing import TIMING, PageTiming

_MOST_RUNNING = 200
MOST_ENDED = 1000
"""Maximum number of runs of the last day that are shown."""
MOST_LATEST = 500
"""Maximum number of runs that are read to find pipelines."""
_FRESH_ENDED = 30.0
_DAY = timedelta(days=1)
_AT_ONCE = 8
"""Maximum number of runs that Temporal describes at the same time."""


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

    @cached_property
    def version(self) -> str:
        """Digest of everything that the snapshot shows."""
        return _digest(self._shown)

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """Digest of the runs of each workflow id."""
        by_workflow: dict[str, list[object]] = {}
        for workflow_id, *shown in self._shown:
            by_workflow.setdefault(workflow_id, []).append(shown)
        return {workflow_id: _digest(shown) for workflow_id, shown in by_workflow.items()}

    @property
    def _shown(self) -> list[tuple[str, ...]]:
        """The workflow id of each run, and what the snapshot shows of it."""
        running = [
            (each.run.workflow_id, each.run.run_id, each.progress, each.status.model_dump_json() if each.status else "")
            for each in (*self.waiting, *self.under_way)
        ]
        return [*running, *((each.workflow_id, each.run_id, each.outcome or "") for each in self.ended)]


def _digest(shown: object) -> str:
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]


class Board:
    """Reads the runs of the home page from Temporal, once for all readers."""

    def __init__(self, client: Client, statuses: Statuses, timing: PageTiming = TIMING) -> None:
        self._client, self._statuses, self._timing = client, statuses, timing
        self._snapshot = Cached(self._read, timing.runs)
        self._ended = Cached(EndedRuns(client, MOST_ENDED, within=_DAY).read, _FRESH_ENDED)
        self._latest = Cached(EndedRuns(client, MOST_LATEST).read, timing.runs)
        self._running_ids: frozenset[str] = frozenset()
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def read(self) -> Snapshot:
        """Return the present runs.

        Raises:
            RPCError: Temporal does not answer.
        """
        return await self._snapshot.get()

    async def latest(self) -> list[ListedRun]:
        """Return the runs under way and those that ended last, the newest start first.

        Raises:
            RPCError: Temporal does not answer.
        """
        under_way, ended = await asyncio.gather(self._list_running(), self._latest.get())
        by_id = {each.run_id: each for each in [await listed_run(each) for each in under_way]}
        by_id |= {each.run_id: each for each in ended}
        return sorted(by_id.values(), key=lambda each: each.started, reverse=True)

    def forget(self) -> None:
        """Read the runs again for the next reader, because one of them was decided or cancelled."""
        self._snapshot.forget()

    async def _read(self) -> Snapshot:
        executions = await self._list_running()
        ids = frozenset(each.run_id for each in executions)
        if ids != self._running_ids:  # a run that is not under way any more has ended
            self._ended.forget()
            self._running_ids = ids
        runs = await asyncio.gather(*(self._running(each) for each in executions))
        waiting = [each for each in runs if each.is_waiting]
        return Snapshot(
            waiting=sorted(waiting, key=lambda each: each.status.deadline if each.status else ""),
            under_way=[each for each in runs if not each.is_waiting],
            ended=await self._ended.get(),
            read_at=datetime.now(timezone.utc),
        )

    async def _list_running(self) -> list[WorkflowExecution]:
        return await list_runs(self._client, _MOST_RUNNING, RunFilter(state=RUNNING))

    async def _running(self, execution: WorkflowExecution) -> RunningRun:
        run = await listed_run(execution)
        async with self._room:
            described = await describe_run(self._client, run.workflow_id, run.run_id)
        if described is None:
            return RunningRun(run, None)
        status = await self._statuses.read(described, self._timing.stages)
        return RunningRun(run, status, await read_progress(described.description))
