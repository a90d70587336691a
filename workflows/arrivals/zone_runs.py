"""The granted runs of a landing zone: report running and wanted runs, and follow or decline grants."""

from collections.abc import Sequence

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.arrivals.held_batches import HeldBatches
    from sluice.contracts.arrival_runs import RunGrant, WantedRun, ZoneRuns
    from sluice.contracts.arrivals import Batch
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import is_cancelled, root_cause

_REPEAT = 60.0
"""Minimum time between two equal reports, in seconds."""


class GrantedRuns:
    """The grants of one landing zone, and its reports to the workflow that limits the runs of all zones."""

    def __init__(self, batches: HeldBatches, calls: ActivityCalls, answered: int) -> None:
        self._batches, self._calls = batches, calls
        self._grants: list[RunGrant] = []
        self.answered = answered or int(workflow.now().timestamp() * 1000)
        """The number of the latest grant that was followed or declined. A new zone begins above all earlier grants."""
        self._reported = self._report(()).model_copy(update={"running": []})
        self._is_due = self._has_failed = False

    @property
    def are_pending(self) -> bool:
        """True while there are grants to follow."""
        return bool(self._grants)

    def granted(self, grant: RunGrant) -> None:
        """Add a grant."""
        self._grants.append(grant)

    def take(self) -> str | None:
        """Return the next batch with a granted run. The caller starts it before the next call, or not at all."""
        if not self._grants:
            return None
        grant = self._grants.pop(0)
        self.answered = max(self.answered, grant.number)
        return grant.batch

    def has_news(self, wanted: Sequence[Batch]) -> bool:
        """Return True if there is a grant to follow, or something to report.

        Args:
            wanted: the batches whose runs may start now.
        """
        return bool(self._grants) or (self._differs(wanted) and not self._has_failed)

    def report_again(self) -> None:
        """Send the report again if the last one is old or failed: its receiver may have been terminated."""
        self._is_due = workflow.now().timestamp() - self._reported.at >= _REPEAT
        self._has_failed = False

    async def report(self, wanted: Sequence[Batch]) -> None:
        """Report the running batches, and those whose runs may start now, unless that was reported already."""
        if self._has_failed or not self._differs(wanted):
            self._is_due = False
            return
        now, self._is_due = self._report(wanted), False
        try:
            await self._calls.report_arrival_runs(now)
            self._reported = now
        except ActivityError as error:
            if is_cancelled(error):
                raise
            self._has_failed = True  # the next listing tries again
            workflow.logger.warning("the landing zone could not request runs: %s", root_cause(error)[1])

    async def withdraw(self) -> None:
        """Give back the slots of this task queue. The zone continues on another one, where its runs get slots."""
        zone_id, now = workflow.info().workflow_id, workflow.now().timestamp()
        try:
            await self._calls.report_arrival_runs(ZoneRuns(zone=zone_id, at=now, answered=self.answered))
        except ActivityError as error:
            if is_cancelled(error):
                raise
            workflow.logger.warning("the landing zone could not release its slots: %s", root_cause(error)[1])

    def _differs(self, wanted: Sequence[Batch]) -> bool:
        now, before = self._report(wanted), self._reported
        return now.model_copy(update={"at": before.at}) != before or (self._is_due and not now.is_empty)

    def _report(self, wanted: Sequence[Batch]) -> ZoneRuns:
        zone_id = workflow.info().workflow_id
        batches = self._batches.all
        return ZoneRuns(
            zone=zone_id,
            at=workflow.now().timestamp(),
            answered=self.answered,
            running=[self.run_id(each.ref.id, each.tries) for each in batches if each.state == "running"],
            wanted=[
                WantedRun(batch=each.ref.id, since=each.since, run=self.run_id(each.ref.id, each.tries + 1))
                for each in wanted
            ],
        )

    @staticmethod
    def run_id(batch: str, tries: int) -> str:
        """Return the id of the workflow that runs a batch."""
        return f"{workflow.info().workflow_id}-{batch}-{tries}"
