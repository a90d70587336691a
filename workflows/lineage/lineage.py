"""OpenLineage events of a run, sent in parallel to its steps, which never wait for them (ADR 36)."""

import asyncio
from collections.abc import Callable

from temporalio import workflow
from temporalio.common import SearchAttributeKey

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.lineage import EmitLineageInput, LineageEventType
    from sluice.lineage.description import closing_event, describe_event
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import root_cause
    from workflows.run.run_state import RunState

_SCHEDULED_START = SearchAttributeKey.for_datetime("TemporalScheduledStartTime")
"""Search attribute that Temporal sets on workflows that a schedule starts."""


class LineageEvents:
    """The events of one run, sent in order by a separate task. A failure is only logged."""

    def __init__(self, calls: ActivityCalls, state: RunState) -> None:
        self._calls, self._state = calls, state
        self._waiting: list[EmitLineageInput] = []
        self._task: asyncio.Task[None] | None = None
        self._has_write = self._is_ending = False

    def start(self) -> None:
        """Send START, if there is a receiver of events."""
        if self._state.request.publish:  # a person who starts a run without publication watches it
            self._task = asyncio.create_task(self._send_all())
            self._add(lambda: self._describe("START"))

    def report_write(self) -> None:
        """Send RUNNING when the first write of the run was verified."""
        if self._task and not self._has_write:
            self._has_write = True
            self._add(lambda: self._describe("RUNNING"))

    def report_end(self) -> None:
        """Send the final event of the run, after the one that is being sent. Skip other waiting events."""
        if self._task:
            self._waiting.clear()
            self._add(lambda: self._describe(closing_event(self._state.result)))
            self._is_ending = True

    async def wait_until_sent(self) -> None:
        """Wait until the last events are sent or given up, for at most two time-outs."""
        if self._task:
            await self._task

    async def _send_all(self) -> None:
        try:
            if not await self._calls.can_emit_lineage(self._state.run_ref):
                return
        except Exception as error:
            workflow.logger.warning("no OpenLineage events are sent: %s", root_cause(error)[1])
            return
        while self._waiting or not self._is_ending:
            await workflow.wait_condition(lambda: bool(self._waiting) or self._is_ending)
            if self._waiting:
                await self._send(self._waiting.pop(0))

    async def _send(self, event: EmitLineageInput) -> None:
        try:
            await self._calls.emit_lineage(event)
        except Exception as error:
            workflow.logger.warning("the OpenLineage event %s was not sent: %s", event.event, root_cause(error)[1])

    def _describe(self, event: LineageEventType) -> EmitLineageInput:
        state = self._state
        scheduled = workflow.info().typed_search_attributes.get(_SCHEDULED_START)
        return describe_event(
            event,
            workflow.now().isoformat(),
            state.request,
            state.run_ref,
            state.result,
            scheduled_at=scheduled.isoformat() if scheduled else "",
            read_tables=state.watched_tables,
            branch=state.attempt.branch,
            base=state.first_base,
            written=state.attempt.write_result,
        )

    def _add(self, describe: Callable[[], EmitLineageInput]) -> None:
        """Add an event with the current state of the run. An error in its description must not fail the run's task."""
        try:
            self._waiting.append(describe())
        except Exception as error:
            workflow.logger.warning("an OpenLineage event could not be described: %s", error)
