"""The workflow of a table's merge queue: it gives the merge slot to one conflicted run after the other.

The queue avoids rebases that a merge of another run would make useless. Correctness does not depend on it: a run that
gets no slot in time continues without one, and the queue takes back a slot that a run does not release.

Runs without conflicts do not enter the queue. If the run with the slot met many conflicts, the queue has a memo that
asks such runs to let it merge first (`activities/publishing/merge_priority.py`).
"""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.merge_queue import PRIORITY_MEMO, SLOT_SIGNAL, MergeTicket
    from sluice.publishing.retries import has_merge_priority

_SLOT_TIMEOUT = timedelta(seconds=60)
"""Maximum time from the latest request of a run with the merge slot until its merge."""
_IDLE_TIMEOUT = timedelta(seconds=30)
"""Time after which the workflow of an empty queue ends."""


@workflow.defn(name="MergeQueue")
class MergeQueue:
    """The merge queue of one table: first come, first served."""

    @workflow.init
    def __init__(self, waiting: list[MergeTicket]) -> None:
        self._waiting = list(waiting)
        self._holder: MergeTicket | None = None
        self._shows_priority = False

    @workflow.run
    async def run(self, waiting: list[MergeTicket]) -> None:
        """Give the slot to the runs in the queue until it has been empty for a while."""
        while await self._has_waiting():
            self._holder = self._waiting.pop(0)
            await self._give_slot()
            self._holder = None
            self._show_priority(False)
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(self._waiting)

    @workflow.signal
    def enqueue(self, ticket: MergeTicket) -> None:
        """Add a run to the queue. A run that waits keeps its place, and a run with the slot gets it for longer."""
        if ticket.is_of_same_run(self._holder):
            self._holder = ticket
            return
        for index, each in enumerate(self._waiting):
            if ticket.is_of_same_run(each):
                self._waiting[index] = ticket
                return
        self._waiting.append(ticket)

    @workflow.signal
    def release(self, ticket: MergeTicket) -> None:
        """Take the slot back from a run, or remove the run from the queue."""
        if ticket.is_of_same_run(self._holder):
            self._holder = None
        self._waiting = [each for each in self._waiting if not ticket.is_of_same_run(each)]

    async def _has_waiting(self) -> bool:
        try:
            await workflow.wait_condition(lambda: bool(self._waiting), timeout=_IDLE_TIMEOUT)
        except asyncio.TimeoutError:
            return bool(self._waiting)
        return True

    async def _give_slot(self) -> None:
        """Give the slot to the holder, and again at each new request, until the holder releases it."""
        while ticket := self._holder:
            self._show_priority(has_merge_priority(ticket.rebases))
            try:
                await self._signal_and_wait(ticket)
            except (FailureError, asyncio.TimeoutError):
                return  # the run has ended, or keeps the slot too long

    async def _signal_and_wait(self, ticket: MergeTicket) -> None:
        run = workflow.get_external_workflow_handle(ticket.workflow_id, run_id=ticket.run_id)
        await run.signal(SLOT_SIGNAL, ticket)
        await workflow.wait_condition(
            lambda: self._holder != ticket,
            timeout=_SLOT_TIMEOUT,
            timeout_summary=f"{ticket.workflow_id} has the merge slot",
        )

    def _show_priority(self, has_priority: bool) -> None:
        if has_priority != self._shows_priority:
            self._shows_priority = has_priority
            workflow.upsert_memo({PRIORITY_MEMO: has_priority})
