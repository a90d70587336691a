"""Merge priority: runs without a merge slot wait while the run with the slot of a table has priority.

A run without conflicts does not wait in the merge queue. If many such runs follow each other, each can merge while
another run is being rebased, and so cause its next conflict. The queue's workflow says in a memo that its run met many
conflicts. Correctness does not depend on the order: if a call fails, the activity logs it, and the run merges.
"""

import asyncio
import logging
import random
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.exceptions import CancelledError
from temporalio.service import RPCError, RPCStatusCode

from sluice.contracts.merge_queue import PRIORITY_MEMO, queue_id

_SLOTS = threading.BoundedSemaphore(20)
"""Slots of the runs of a worker that wait at the same time. Further runs do not wait.

Each waiting run blocks a thread that other activities could use.
"""
_PAUSE = (0.3, 0.7)
"""Minimum and maximum time between two queries of Temporal, in seconds."""

_log = logging.getLogger("sluice.activity")


@dataclass(frozen=True)
class MergePriority:
    """The merge priority of runs at tables, for use in the thread of an activity.

    Needs Temporal's client, the client's event loop, the installation, and the branch that runs publish to.
    """

    client: Client
    loop: asyncio.AbstractEventLoop
    installation: str
    target: str
    longest_wait: float = 20.0
    """Maximum time that a run lets others merge first, in seconds."""
    rpc_timeout: float = 3.0
    """Maximum time of one question to Temporal, in seconds."""
    slots: threading.BoundedSemaphore = _SLOTS
    """Slots of waiting runs, by default those of the worker."""

    def wait(self, tables: Iterable[str]) -> None:
        """Wait while another run has priority at one of the tables, for `longest_wait` at most.

        Only the first try of the activity waits.

        Raises:
            CancelledError: the run was cancelled meanwhile, so nothing is merged.
        """
        info = activity.info()
        if info.attempt > 1 or not self.slots.acquire(blocking=False):
            return
        try:
            limit = info.start_to_close_timeout
            longest = min(self.longest_wait, limit.total_seconds() / 3) if limit else self.longest_wait
            give_up = time.monotonic() + longest
            for table in tables:
                while not activity.is_cancelled() and time.monotonic() < give_up and self._must_wait(table):
                    time.sleep(random.uniform(*_PAUSE))
                if activity.is_cancelled():
                    raise CancelledError("cancelled while another run merged first")
        finally:
            self.slots.release()

    def _must_wait(self, table: str) -> bool:
        """Return True if another run has priority at a table; False if Temporal does not answer that."""
        question = self._read_priority(table)
        try:
            future = asyncio.run_coroutine_threadsafe(question, self.loop)
        except RuntimeError:  # the worker is shutting down
            question.close()
            return False
        try:
            return future.result(2 * self.rpc_timeout)
        except Exception as error:
            future.cancel()
            _log.warning("merge priority could not be read: %s: %s", type(error).__name__, error)
            return False

    async def _read_priority(self, table: str) -> bool:
        queue = self.client.get_workflow_handle(queue_id(self.installation, self.target, table))
        try:
            described = await queue.describe(rpc_timeout=timedelta(seconds=self.rpc_timeout))
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                return False
            raise
        if described.status != WorkflowExecutionStatus.RUNNING:
            return False
        return bool((await described.memo()).get(PRIORITY_MEMO))
