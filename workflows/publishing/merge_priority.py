"""The workflow that runs while a run has merge priority at a table: others let it merge first.

The activities in `activities/publishing/merge_priority.py` start it, and find out whether it runs. It ends by itself,
so that a lost run delays no other.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.merge_queue import CLAIM_SIGNAL, RELEASE_SIGNAL

_CLAIM_TIME = timedelta(seconds=20)
"""How long a claim holds: enough for a rebase, its audit and the merge."""
_LONGEST = timedelta(seconds=60)
"""How long claims of one run hold that follow each other."""


@workflow.defn(name="MergePriority")
class MergePriority:
    """The merge priority of one run at one table, for a while."""

    @workflow.init
    def __init__(self, workflow_id: str) -> None:
        self._holder, self._is_released = workflow_id, False
        self._end = workflow.now() + _CLAIM_TIME
        self._latest_end = workflow.now() + _LONGEST

    @workflow.run
    async def run(self, workflow_id: str) -> None:
        """Wait until the run has merged, or has not claimed its priority again in time."""
        while not self._is_released and (left := min(self._end, self._latest_end) - workflow.now()) > timedelta():
            with suppress(asyncio.TimeoutError):  # it may have claimed it again meanwhile
                await workflow.wait_condition(
                    lambda: self._is_released, timeout=left, timeout_summary=f"{workflow_id} merges first"[:200]
                )

    @workflow.signal(name=CLAIM_SIGNAL)
    def claim(self, workflow_id: str) -> None:
        """Learn that a run met its next conflict: if it has the priority, it keeps it for some more seconds."""
        if workflow_id == self._holder:
            self._end = workflow.now() + _CLAIM_TIME

    @workflow.signal(name=RELEASE_SIGNAL)
    def release(self, workflow_id: str) -> None:
        """Learn that a run has merged."""
        self._is_released = self._is_released or workflow_id == self._holder
