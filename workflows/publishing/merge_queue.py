"""The workflow of a table's merge queue: it gives the merge slot to one conflicted run after the other.

The queue avoids rebases that a merge of another run would make useless. Correctness does not depend on it: a run that
gets no slot in time continues without one, and the queue takes back a slot that a run does not release.
"""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.merge_queue import SLOT_SIGNAL, MergeTicket

_SLOT_TIMEOUT = timedelta(seconds=60)
"""Maximum time that a run keeps the merge slot."""
_IDLE_TIMEOUT = timedelta(seconds=30)
"""Time after which the workflow of an empty queue ends."""


@workflow.defn(name="MergeQueue")
class MergeQueue:
    """The merge queue of one table: first come, first served."""

    @workflow.init
    def __init__(self, waiting: list[MergeTicket]) -> None:
        self._waiting = list(waiting)
        self._holder: MergeTicket | None = None

    @workflow.run
    async def run(self, waiting: list[MergeTicket]) -> None:
        """Give the slot to the runs in the queue until it has been empty for a while."""
        while await self._has_waiting():
            self._holder = self._waiting.pop(0)
            await self._give_slot(self._holder)
            self._holder = None
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(self._waiting)

    @workflow.signal
    def enqueue(self, ticket: MergeTicket) -> None:
        """Add a run to the queue; a repeated signal changes nothing."""
        if ticket != self._holder and ticket not in self._waiting:
            self._waiting.append(ticket)

    @workflow.signal
    def release(self, ticket: MergeTicket) -> None:
        """Take the slot back from a run, or remove the run from the queue."""
        if ticket == self._holder:
            self._holder = None
        elif ticket in self._waiting:
            self._waiting.remove(ticket)

    async def _has_waiting(self) -> bool:
        try:
            await workflow.wait_condition(lambda: bool(self._waiting), timeout=_IDLE_TIMEOUT)
        except asyncio.TimeoutError:
            return bool(self._waiting)
        return True

    async def _give_slot(self, ticket: MergeTicket) -> None:
        try:
            run = workflow.get_external_workflow_handle(ticket.workflow_id, run_id=ticket.run_id)
            await run.signal(SLOT_SIGNAL, ticket)
            await workflow.wait_condition(
                lambda: self._holder is None,
                timeout=_SLOT_TIMEOUT,
                timeout_summary=f"{ticket.workflow_id} has the merge slot",
            )
        except (FailureError, asyncio.TimeoutError):
            return  # the run has ended, or keeps the slot too long
