"""The workflow that limits the runs of all landing zones of an installation: the oldest batches have the slots.

Landing zones report what they run and what they would start; a report takes the place of the one before. So nothing is
lost that a report does not repeat: not by a crash, not by a zone that vanishes, and not where this workflow is ended by
force and made again. A slot belongs to what runs a batch, and to nobody once that has ended.
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
"""How often it is asked, while batches wait, whether what has a slot still runs."""
_IDLE = timedelta(seconds=60)
"""How long the workflow goes on while nothing runs."""


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
        """Grant slots until nobody has wanted one for a while."""
        while True:
            await self._grant()
            if self._is_full():
                workflow.continue_as_new(self._slots.state)
            if not await self._wait():
                return

    @workflow.signal
    def report(self, zone: ZoneRuns, limit: int) -> None:
        """Learn what a landing zone runs and wants, and how many runs there may be in all."""
        self._slots.report(zone, limit)
        self._has_news = True

    @workflow.query
    def slots(self) -> RunSlotsState:
        """Return what runs, and what waits."""
        return self._slots.state

    async def _grant(self) -> None:
        """Grant the slots that are free; a zone that is not there any more gets none."""
        self._has_news = False
        while granted := self._slots.next(workflow.now().timestamp()):
            try:
                await workflow.get_external_workflow_handle(granted.zone).signal(GRANT_SIGNAL, granted.grant)
            except FailureError as error:
                if is_cancelled(error):
                    raise
                self._slots.zone_ended(granted.zone)

    async def _wait(self) -> bool:
        """Wait for a report, or until it is time to check; return whether there is still something to do."""
        is_idle, is_short = self._slots.is_empty, self._slots.is_short
        until_check = max(self._check_at - workflow.now(), timedelta(0))
        try:
            limit = _IDLE if is_idle else until_check if is_short else None
            await workflow.wait_condition(lambda: self._has_news, timeout=limit)
        except asyncio.TimeoutError:
            if is_idle:
                return self._has_news
        if is_short and self._check_at <= workflow.now():  # also where reports come all the time
            await self._check()
            self._check_at = workflow.now() + _CHECK
        return True

    @staticmethod
    def _is_full() -> bool:
        """Return whether the history of this run of the workflow is long enough."""
        return workflow.info().is_continue_as_new_suggested()

    async def _check(self) -> None:
        """Take slots back from what has ended, and from landing zones that do not answer."""
        ids = WorkflowIds(ids=self._slots.ids_to_check)
        try:
            ended = await self._calls.find_ended_workflows(ids)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            workflow.logger.warning("it is not known what still runs: %s", root_cause(error)[1])
            return
        self._slots.check(ended.ids, workflow.now().timestamp())
