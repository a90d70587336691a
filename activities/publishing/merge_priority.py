"""Merge priority: a run with many conflicts claims it, and runs that are about to merge wait for that run.

A run without conflicts does not wait in the merge queue. If many such runs follow each other, each can merge while
another run is being rebased, and so cause its next conflict. Correctness does not depend on the order: if a call fails,
the activity logs it, and the run goes on without priority.
"""

import asyncio
import logging
import random
import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.exceptions import CancelledError
from temporalio.service import RPCError, RPCStatusCode

from sluice.contracts.merge_queue import CLAIM_SIGNAL, RELEASE_SIGNAL, priority_id
from sluice.contracts.publish import Publication, PublishBranchInput
from sluice.publishing.retries import may_claim_priority, waits_for_priority

_LONGEST_WAIT = 20.0
"""Maximum time that a run lets others merge first, in seconds."""
_MOST_WAITING = 20
"""Maximum number of runs of a worker that wait at the same time. Further runs do not wait.

Each waiting run blocks a thread that other activities could use.
"""
_PAUSE = (0.3, 0.7)
"""Minimum and maximum time between two checks of a claim, in seconds."""
_CLAIM_LIMIT = timedelta(seconds=90)
"""Maximum duration of a claim that no worker ends."""
_RPC_TIMEOUT = timedelta(seconds=3)

_log = logging.getLogger("sluice.activity")
_waiting = threading.BoundedSemaphore(_MOST_WAITING)
_T = TypeVar("_T")


class _NoAnswerError(Exception):
    """Raised when a call of Temporal failed."""


@dataclass(frozen=True)
class MergePriority:
    """The merge priority of runs at tables, for use in the thread of an activity.

    Needs Temporal's client, the client's event loop, the installation, the branch that runs publish to, and the task
    queue of its workflows.
    """

    client: Client
    loop: asyncio.AbstractEventLoop
    installation: str
    target: str
    task_queue: str

    def wait(self, input: PublishBranchInput) -> None:
        """Wait while another run has priority at a table of this run, for 20 seconds at most.

        Only the first try of the activity waits.

        Raises:
            CancelledError: the run was cancelled meanwhile, so nothing is merged.
        """
        info = activity.info()
        if not waits_for_priority(input.rebases) or info.attempt > 1 or not _waiting.acquire(blocking=False):
            return
        try:
            limit = info.start_to_close_timeout
            longest = min(_LONGEST_WAIT, limit.total_seconds() / 3) if limit else _LONGEST_WAIT
            give_up = time.monotonic() + longest
            for table in input.tables:
                while time.monotonic() < give_up and self._call(self._is_claimed(table)):
                    time.sleep(random.uniform(*_PAUSE))
                    if activity.is_cancelled():
                        raise CancelledError("cancelled while another run merged first")
        except _NoAnswerError:
            return
        finally:
            _waiting.release()

    def update(self, input: PublishBranchInput, publication: Publication) -> None:
        """Claim priority for a run that met another of many conflicts, or release the priority of a merged run."""
        if not may_claim_priority(input.rebases):
            return
        try:
            for table in publication.conflicts:
                self._call(self._claim(table, input.run_ref.workflow_id))
            for table in (*input.tables, *input.watched_tables) if publication.merged else ():
                self._call(self._release(table, input.run_ref.workflow_id))
        except _NoAnswerError:
            return

    async def _is_claimed(self, table: str) -> bool:
        claim = self.client.get_workflow_handle(self._id(table))
        return (await claim.describe(rpc_timeout=_RPC_TIMEOUT)).status == WorkflowExecutionStatus.RUNNING

    async def _claim(self, table: str, workflow_id: str) -> None:
        await self.client.start_workflow(
            "MergePriority",
            workflow_id,
            id=self._id(table),
            task_queue=self.task_queue,
            start_signal=CLAIM_SIGNAL,
            start_signal_args=[workflow_id],
            execution_timeout=_CLAIM_LIMIT,
            static_summary=f"{workflow_id} merges into {table} first"[:200],
            rpc_timeout=_RPC_TIMEOUT,
        )

    async def _release(self, table: str, workflow_id: str) -> None:
        claim = self.client.get_workflow_handle(self._id(table))
        await claim.signal(RELEASE_SIGNAL, workflow_id, rpc_timeout=_RPC_TIMEOUT)

    def _id(self, table: str) -> str:
        return priority_id(self.installation, self.target, table)

    def _call(self, call: Coroutine[Any, Any, _T]) -> _T | None:
        """Run a call of Temporal to its end; return None if there is no such workflow.

        Raises:
            _NoAnswerError: the call failed. No such failure may end a publish.
        """
        try:
            future = asyncio.run_coroutine_threadsafe(call, self.loop)
        except RuntimeError as error:  # the worker is shutting down
            call.close()
            raise _NoAnswerError from error
        try:
            return future.result(2 * _RPC_TIMEOUT.total_seconds())
        except Exception as error:
            future.cancel()
            if isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND:
                return None
            _log.warning("merge priority could not be read or changed: %s: %s", type(error).__name__, error)
            raise _NoAnswerError from error
