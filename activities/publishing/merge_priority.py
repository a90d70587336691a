"""Merge priority: a run that met many conflicts claims it, and runs that just begin to merge let it go first.

A run that meets no conflict waits in no queue. Where many of them follow each other, each can merge while another run
is rebased, which then meets its next conflict. Correctness does not depend on the order: a call that fails is logged,
and the run goes on without.
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
"""For how many seconds a run lets others merge first."""
_MOST_WAITING = 20
"""So many runs of a worker wait at a time; the next ones do not: each keeps a thread from other activities."""
_PAUSE = (0.3, 0.7)
"""The seconds between two looks, at least and at most."""
_CLAIM_LIMIT = timedelta(seconds=90)
"""How long a claim runs at most where no worker ends it."""
_RPC_TIMEOUT = timedelta(seconds=3)

_log = logging.getLogger("sluice.activity")
_waiting = threading.BoundedSemaphore(_MOST_WAITING)
_T = TypeVar("_T")


class _NoAnswerError(Exception):
    """Raised when Temporal could not be asked."""


@dataclass(frozen=True)
class MergePriority:
    """The merge priority of runs at tables, claimed and asked for from the thread of an activity.

    Needs Temporal's client, the event loop that it belongs to, the installation, the branch that runs publish to, and
    the task queue of its workflows.
    """

    client: Client
    loop: asyncio.AbstractEventLoop
    installation: str
    target: str
    task_queue: str

    def wait(self, input: PublishBranchInput) -> None:
        """Wait while another run has priority at a table of this run, for 20 seconds at most, and in one try alone.

        Raises:
            CancelledError: the run was cancelled meanwhile: nothing is merged.
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
        """Claim priority for a run that met its next conflict of many; release that of a run that has merged."""
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
            _NoAnswerError: it failed. Whatever the reason, it must not become the end of a publish.
        """
        try:
            future = asyncio.run_coroutine_threadsafe(call, self.loop)
        except RuntimeError as error:  # the worker ends
            call.close()
            raise _NoAnswerError from error
        try:
            return future.result(2 * _RPC_TIMEOUT.total_seconds())
        except Exception as error:
            future.cancel()
            if isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND:
                return None
            _log.warning("merge priority could not be asked for or changed: %s: %s", type(error).__name__, error)
            raise _NoAnswerError from error
