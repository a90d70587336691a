"""What a landing zone may start: it reports what it runs and wants, and follows or declines what is granted."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.arrivals.held_batches import HeldBatches
    from sluice.contracts.arrival_runs import RunGrant, WantedRun, ZoneRuns
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import is_cancelled, root_cause

_REPEAT = 60.0
"""The fewest seconds between two reports of the same."""


class GrantedRuns:
    """The grants of one landing zone, and its reports to what limits the runs of all of them."""

    def __init__(self, batches: HeldBatches, calls: ActivityCalls, answered: int) -> None:
        self._batches, self._calls = batches, calls
        self._grants: list[RunGrant] = []
        self.answered = answered or int(workflow.now().timestamp() * 1000)
        """The number of the latest grant that was followed or declined: at first of those before there was a zone."""
        self._reported = self._report(0).model_copy(update={"running": []})
        self._is_due = self._has_failed = False

    @property
    def are_pending(self) -> bool:
        """Whether there are grants to follow."""
        return bool(self._grants)

    def granted(self, grant: RunGrant) -> None:
        """Take a grant."""
        self._grants.append(grant)

    def take(self) -> str | None:
        """Return a batch whose run is granted; it is started before the next one is taken, or not at all."""
        if not self._grants:
            return None
        grant = self._grants.pop(0)
        self.answered = max(self.answered, grant.number)
        return grant.batch

    def has_news(self, room: int) -> bool:
        """Return whether there is a grant to follow, or something to report."""
        return bool(self._grants) or (self._differs(room) and not self._has_failed)

    def report_again(self) -> None:
        """Have a report repeated that is old, or was not sent: what it goes to may have been ended by force."""
        self._is_due = workflow.now().timestamp() - self._reported.at >= _REPEAT
        self._has_failed = False

    async def report(self, room: int) -> None:
        """Report what runs, and the oldest batches for which there is room, if that is not known already."""
        if self._has_failed or not self._differs(room):
            self._is_due = False
            return
        now, self._is_due = self._report(room), False
        try:
            await self._calls.report_arrival_runs(now)
            self._reported = now
        except ActivityError as error:
            if is_cancelled(error):
                raise
            self._has_failed = True  # the next look tries again
            workflow.logger.warning("no run can be asked for: %s", root_cause(error)[1])

    async def withdraw(self) -> None:
        """Give back the slots here: the zone continues on another task queue, and its runs have slots there."""
        zone_id, now = workflow.info().workflow_id, workflow.now().timestamp()
        try:
            await self._calls.report_arrival_runs(ZoneRuns(zone=zone_id, at=now, answered=self.answered))
        except ActivityError as error:
            if is_cancelled(error):
                raise
            workflow.logger.warning("slots could not be given back: %s", root_cause(error)[1])

    def _differs(self, room: int) -> bool:
        now, before = self._report(room), self._reported
        return now.model_copy(update={"at": before.at}) != before or (self._is_due and not now.is_empty)

    def _report(self, room: int) -> ZoneRuns:
        zone_id = workflow.info().workflow_id
        batches = self._batches.all
        waiting = [
            WantedRun(batch=each.ref.id, since=each.since, run=self.run_id(each.ref.id, each.tries + 1))
            for each in batches
            if each.state == "waiting"
        ]
        return ZoneRuns(
            zone=zone_id,
            at=workflow.now().timestamp(),
            answered=self.answered,
            running=[self.run_id(each.ref.id, each.tries) for each in batches if each.state == "running"],
            wanted=waiting[: max(0, room)],
        )

    @staticmethod
    def run_id(batch: str, tries: int) -> str:
        """Return the workflow id of what runs a batch."""
        return f"{workflow.info().workflow_id}-{batch}-{tries}"
