"""The workflow of a registration: it sends one publication to a target, or points one table of a target at main.

It begins after the merge and does not change the outcome of a run. Its id names the target and the table or
publication, so requests for the same table of a target run one after the other. A request that arrives while one is
under way makes the workflow read main once more.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.registration import (
        ENDED_SIGNAL,
        REGISTRATION_QUERY,
        REGISTRATION_WORKFLOW,
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
"""First and maximum delay between tries, in seconds. Each delay is twice the one before."""
_MAX_WAITING = 200
"""Maximum number of runs that get a signal at the end. The reports of other runs say `pending`."""
_MAX_REASON = 1000


@workflow.defn(name=REGISTRATION_WORKFLOW)
class RegisterPublication:
    """The registrations of one table at one target, or of one publication."""

    @workflow.init
    def __init__(self, input: RegisterInput) -> None:
        self._input = input
        self._calls = ActivityCalls()
        self._requests = 0
        self._waiting = [(0, run) for run in input.waiting]
        """The waiting runs, each with the number of its request."""
        self._state: RegistrationState = "pending"
        self._reason = ""

    @workflow.run
    async def run(self, input: RegisterInput) -> Registration:
        """Register until no request is left; return the result of the last one."""
        served, deadline = -1, input.deadline
        while served != self._requests:
            self._state = "pending"
            served = await self._serve(deadline or workflow.now().timestamp() + input.patience)
            await self._report(served)
            deadline = 0.0
        return self._registration()

    @workflow.signal
    def register(self, waiting: WaitingRun) -> None:
        """Request the registration. For a table, the workflow reads main once more; an event is not sent again."""
        if self._input.event is None:
            self._requests += 1
        if waiting.workflow_id:
            self._waiting = [*self._waiting, (self._requests, waiting)][-_MAX_WAITING:]

    @workflow.query(name=REGISTRATION_QUERY)
    def registration(self) -> Registration:
        """Return the state of the registration."""
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
        """Try until the registration is done or has failed for good; return the number of the latest served request.

        New requests do not move the deadline, so people get a notification each day while a target is unavailable.
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
                    if any(request <= seen for request, _ in self._waiting):  # else the hourly schedule requested it
                        await self._notify()
                    return seen
            if workflow.info().is_continue_as_new_suggested():
                update = {"deadline": deadline, "waiting": [run for _, run in self._waiting]}
                workflow.continue_as_new(self._input.model_copy(update=update))
            await self._wait(delay, seen, tries)
            delay = min(2 * delay, _MAX_DELAY)

    async def _wait(self, delay: float, seen: int, tries: int) -> None:
        """Wait before the next try. A new request ends the wait."""
        summary = f"after try {tries}: {self._reason}"[:200]
        with suppress(asyncio.TimeoutError):
            await workflow.wait_condition(
                lambda: self._requests > seen, timeout=timedelta(seconds=delay), timeout_summary=summary
            )

    async def _report(self, served: int) -> None:
        """Signal the result to the runs whose requests were served. Skip runs that have ended."""
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
        """Notify people of a failed registration. A failure of the notification is only logged."""
        event = self._input.event
        failed = FailedRegistration(
            registration=self._registration(),
            pipeline=event.pipeline if event else "",
            tables=sorted(event.tables) if event else [self._input.table],
        )
        try:
            await self._calls.notify_registration(failed)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            workflow.logger.warning("the notification failed: %s", root_cause(error)[1])
