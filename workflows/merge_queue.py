"""Turns at a table: runs that main overtook come one after the other, first come, first served.

A turn only spares them from overtaking each other again and again. Nothing rests on it: a run whose turn does not
come goes on without, and one that does not give its turn back loses it after a while.
"""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.merge_queue import SLOT_SIGNAL, MergeTicket

_LEASE = timedelta(seconds=60)
"""How long a turn may last."""
_IDLE = timedelta(seconds=30)
"""How long the queue stays when nobody waits."""


@workflow.defn(name="MergeQueue")
class MergeQueue:
    """The queue at one table."""

    @workflow.init
    def __init__(self, waiting: list[MergeTicket]) -> None:
        self._waiting = list(waiting)
        self._holder: MergeTicket | None = None

    @workflow.run
    async def run(self, waiting: list[MergeTicket]) -> None:
        """Give turns until nobody has asked for one for a while."""
        while await self._somebody_waits():
            self._holder = self._waiting.pop(0)
            await self._give(self._holder)
            self._holder = None
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(self._waiting)

    @workflow.signal
    def ask(self, turn: MergeTicket) -> None:
        """Wait in line; to ask twice is as good as once."""
        if turn != self._holder and turn not in self._waiting:
            self._waiting.append(turn)

    @workflow.signal
    def give_back(self, turn: MergeTicket) -> None:
        """End a turn, or leave the line."""
        if turn == self._holder:
            self._holder = None
        elif turn in self._waiting:
            self._waiting.remove(turn)

    async def _somebody_waits(self) -> bool:
        try:
            await workflow.wait_condition(lambda: bool(self._waiting), timeout=_IDLE)
        except asyncio.TimeoutError:
            return bool(self._waiting)
        return True

    async def _give(self, turn: MergeTicket) -> None:
        try:
            run = workflow.get_external_workflow_handle(turn.workflow_id, run_id=turn.run_id)
            await run.signal(SLOT_SIGNAL, turn)
            await workflow.wait_condition(lambda: self._holder is None, timeout=_LEASE)
        except (FailureError, asyncio.TimeoutError):
            return  # it has ended, or takes too long
