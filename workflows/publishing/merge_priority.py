"""The workflow that runs while a run has merge priority at a table, so that others let this run merge first.

The code in `activities/publishing/merge_priority.py` starts this workflow, and checks if it is running. It ends by
itself, so a lost run does not delay others.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.merge_queue import CLAIM_SIGNAL, RELEASE_SIGNAL

_CLAIM_TIME = timedelta(seconds=20)
"""Duration of a claim, which is enough for a rebase, its audit and the merge."""
_LONGEST = timedelta(seconds=60)
"""Maximum duration of consecutive claims of one run."""


@workflow.defn(name="MergePriority")
class MergePriority:
    """The merge priority of one run at one table, for a limited time."""

    @workflow.init
    def __init__(self, workflow_id: str) -> None:
        self._holder, self._is_released = workflow_id, False
        self._end = workflow.now() + _CLAIM_TIME
        self._latest_end = workflow.now() + _LONGEST

    @workflow.run
    async def run(self, workflow_id: str) -> None:
        """Wait until the run has merged, or its claim has ended."""
        while not self._is_released and (left := min(self._end, self._latest_end) - workflow.now()) > timedelta():
            with suppress(asyncio.TimeoutError):  # the run may have claimed priority again meanwhile
                await workflow.wait_condition(
                    lambda: self._is_released, timeout=left, timeout_summary=f"{workflow_id} merges first"[:200]
                )

    @workflow.signal(name=CLAIM_SIGNAL)
    def claim(self, workflow_id: str) -> None:
        """Extend the claim of a run that met another conflict. A signal of another run has no effect."""
        if workflow_id == self._holder:
            self._end = workflow.now() + _CLAIM_TIME

    @workflow.signal(name=RELEASE_SIGNAL)
    def release(self, workflow_id: str) -> None:
        """End the claim of a run that has merged."""
        self._is_released = self._is_released or workflow_id == self._holder
