"""The workflow that limits the runs of all landing zones of an installation. The oldest batches get the slots.

Landing zones report the runs that they have and the runs that they want. Each report replaces the previous one, so the
next reports restore the state after a crash, after a zone disappears, or after this workflow is terminated and started
again. A slot belongs to the workflow that runs a batch, and is free when that workflow has ended.
"""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError

with workflow.unsafe.imports_passed_through():
    from sluice.arrivals.run_slots import RunSlots
    from sluice.contracts.arrival_runs import GRANT_SIGNAL, RunSlotsState, WorkflowIds, ZoneRuns
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import is_cancelled, root_cause

_CHECK = timedelta(seconds=60)
"""Interval of checks for ended workflows that have slots, while batches wait."""
_IDLE = timedelta(seconds=60)
"""Time without runs after which the workflow ends."""


@workflow.defn(name="ArrivalRuns")
class ArrivalRuns:
    """The slots for runs of one installation."""

    @workflow.init
    def __init__(self, state: RunSlotsState) -> None:
        self._slots = RunSlots(state)
        self._calls = ActivityCalls()
        self._has_news = True
        self._check_at = workflow.now() + _CHECK

    @workflow.run
    async def run(self, state: RunSlotsState) -> None:
        """Grant slots until there have been no runs and no requests for a while."""
        while True:
            await self._grant()
            if self._is_full():
                workflow.continue_as_new(self._slots.state)
            if not await self._wait():
                return

    @workflow.signal
    def report(self, zone: ZoneRuns, limit: int) -> None:
        """Record the running and wanted runs of a landing zone, and the maximum number of all runs."""
        self._slots.report(zone, limit)
        self._has_news = True

    @workflow.query
    def slots(self) -> RunSlotsState:
        """Return the state of the slots: running and wanted runs, and open grants."""
        return self._slots.state

    async def _grant(self) -> None:
        """Grant the free slots. A zone that no longer exists gets none."""
        self._has_news = False
        while granted := self._slots.next(workflow.now().timestamp()):
            try:
                await workflow.get_external_workflow_handle(granted.zone).signal(GRANT_SIGNAL, granted.grant)
            except FailureError as error:
                if is_cancelled(error):
                    raise
                self._slots.zone_ended(granted.zone)

    async def _wait(self) -> bool:
        """Wait for a report or the next check; return True if the workflow must go on."""
        is_idle, is_short = self._slots.is_empty, self._slots.is_short
        until_check = max(self._check_at - workflow.now(), timedelta(0))
        try:
            limit = _IDLE if is_idle else until_check if is_short else None
            await workflow.wait_condition(lambda: self._has_news, timeout=limit)
        except asyncio.TimeoutError:
            if is_idle:
                return self._has_news
        if is_short and self._check_at <= workflow.now():  # even if reports keep arriving
            await self._check()
            self._check_at = workflow.now() + _CHECK
        return True

    @staticmethod
    def _is_full() -> bool:
        """Return True if the history of this run of the workflow is so long that it should continue as new."""
        return workflow.info().is_continue_as_new_suggested()

    async def _check(self) -> None:
        """Free the slots of workflows that have ended, and of landing zones that do not answer."""
        ids = WorkflowIds(ids=self._slots.ids_to_check)
        try:
            ended = await self._calls.find_ended_workflows(ids)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            workflow.logger.warning("the check for ended workflows failed: %s", root_cause(error)[1])
            return
        self._slots.check(ended.ids, workflow.now().timestamp())
