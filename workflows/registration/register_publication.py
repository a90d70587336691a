"""The workflow of a registration: one target is told of one publication, or brought to one table of main.

It begins after the merge and changes no run's outcome. Its id names the target and what is registered, so that
requests for one table of one target follow each other: a request that comes meanwhile means one more look at main.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.registration import (
        ENDED_SIGNAL,
        FailedRegistration,
        RegisterInput,
        Registration,
        RegistrationState,
        WaitingRun,
    )
    from sluice.redaction import redacted
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import is_cancelled, is_retryable, root_cause

_FIRST_DELAY, _MAX_DELAY = 1.0, 600.0
"""Seconds between tries: each delay is twice the one before."""
_MAX_WAITING = 200
"""So many runs are told how it ended; the others' reports say `pending`."""
_MAX_REASON = 1000


@workflow.defn(name="RegisterPublication")
class RegisterPublication:
    """The registrations of one table at one target, or of one publication."""

    @workflow.init
    def __init__(self, input: RegisterInput) -> None:
        self._input = input
        self._calls = ActivityCalls()
        self._requests = 0
        self._waiting = [(0, run) for run in input.waiting]
        """Which request each run made."""
        self._state: RegistrationState = "pending"
        self._reason = ""

    @workflow.run
    async def run(self, input: RegisterInput) -> Registration:
        """Register until no request came while the last one was served; return how it ended."""
        served, deadline = -1, input.deadline
        while served != self._requests:
            self._state = "pending"
            served = await self._serve(deadline or workflow.now().timestamp() + input.patience)
            await self._report(served)
            deadline = 0.0
        return self._registration()

    @workflow.signal
    def register(self, waiting: WaitingRun) -> None:
        """Request it, or one more look at main after the one under way; an event is not sent again for it."""
        if self._input.event is None:
            self._requests += 1
        if waiting.workflow_id:
            self._waiting = [*self._waiting, (self._requests, waiting)][-_MAX_WAITING:]

    @workflow.query
    def registration(self) -> Registration:
        """Return how it stands."""
        return self._registration()

    def _registration(self) -> Registration:
        return Registration(
            target=self._input.target,
            table=self._input.table,
            state=self._state,
            reason=self._reason,
            workflow_id=workflow.info().workflow_id,
        )

    async def _serve(self, deadline: float) -> int:
        """Try until it is done or has failed for good; return how many requests it served.

        New requests do not move the deadline: at a target that is away for days, people are told each day.
        """
        delay, tries = _FIRST_DELAY, 0
        while True:
            seen, tries = self._requests, tries + 1
            try:
                self._reason = await self._calls.register_publication(self._input.model_copy(update={"waiting": []}))
                self._state = "done"
                return seen
            except ActivityError as error:
                if is_cancelled(error):
                    raise
                self._reason = redacted(root_cause(error)[1])[:_MAX_REASON]
                if not is_retryable(error) or workflow.now().timestamp() + delay > deadline:
                    self._state = "failed"
                    if any(request <= seen for request, _ in self._waiting):  # else the schedule asked, each hour
                        await self._notify()
                    return seen
            if workflow.info().is_continue_as_new_suggested():
                update = {"deadline": deadline, "waiting": [run for _, run in self._waiting]}
                workflow.continue_as_new(self._input.model_copy(update=update))
            await self._wait(delay, seen, tries)
            delay = min(2 * delay, _MAX_DELAY)

    async def _wait(self, delay: float, seen: int, tries: int) -> None:
        """Wait before the next try; a new request ends the wait."""
        summary = f"after try {tries}: {self._reason}"[:200]
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(
                lambda: self._requests > seen, timeout=timedelta(seconds=delay), timeout_summary=summary
            )

    async def _report(self, served: int) -> None:
        """Tell the runs whose requests were served; a run that has ended is not told."""
        served_runs = [(run.workflow_id, run.run_id) for request, run in self._waiting if request <= served]
        self._waiting = [(request, run) for request, run in self._waiting if request > served]
        registration = self._registration()
        for workflow_id, run_id in dict.fromkeys(served_runs):
            try:
                handle = workflow.get_external_workflow_handle(workflow_id, run_id=run_id or None)
                await handle.signal(ENDED_SIGNAL, registration)
            except FailureError:
                continue

    async def _notify(self) -> None:
        """Notify people of a registration that failed; whether that succeeds changes nothing."""
        event = self._input.event
        failed = FailedRegistration(registration=self._registration(), pipeline=event.pipeline if event else "")
        try:
            await self._calls.notify_registration(failed)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            workflow.logger.warning("the notification failed: %s", root_cause(error)[1])
