"""The workflow of a landing zone: it looks at the zone, and starts a run for each batch of files that arrived.

It holds the batches that main does not have yet: those that wait, that a run loads, that were kept out, and those that
a person set aside. Everything else is known by main. Notifications and time-outs lead to a look; only a look counts.
"""

import asyncio
from datetime import datetime, timedelta, timezone
from functools import partial

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from sluice.arrivals.limits import room_for_batches
    from sluice.contracts.arrivals import (
        ZONE_MEMO,
        Batch,
        BatchCommand,
        CollectArrivalsInput,
        CollectArrivalsResult,
        LandingZoneInput,
        PauseZone,
        ZoneNotice,
        ZoneStatus,
        memo_of,
    )
    from sluice.contracts.starting import RUN_ENDED_SIGNAL, EndedRun, StartPipelineInput
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import is_cancelled, root_cause

_SOON = 1.0
"""Seconds to wait after a notification, for those that come together with it."""
_ON_ERROR = 60.0
"""Seconds until the next look after one that failed."""


@workflow.defn(name="LandingZone")
class LandingZone:
    """The landing zone of one pipeline."""

    @workflow.init
    def __init__(self, input: LandingZoneInput) -> None:
        self._input = input
        self._calls = ActivityCalls(pipeline=input.name)
        self._batches = {batch.ref.id: batch for batch in input.batches}
        self._paused, self._problem = input.paused, input.problem
        self._latest_arrival, self._silence_reported = input.latest_arrival, input.silence_reported
        self._children: dict[str, object] = {}
        """What runs a batch, as far as this run of the workflow started it."""
        self._waiting = 0
        self._is_look_due, self._is_notified = True, False
        self._look_at = workflow.now().timestamp()
        self._since = input.since or workflow.now().timestamp()

    @workflow.run
    async def run(self, input: LandingZoneInput) -> None:
        """Look, start runs and wait, until the workflow is cancelled."""
        workflow.upsert_memo({ZONE_MEMO: memo_of(self._input)})
        while True:
            if self._is_look_due:
                self._is_look_due = False
                await self._look()
            await self._start_batches()
            await self._tell_of_silence()
            if workflow.info().is_continue_as_new_suggested() and workflow.all_handlers_finished():
                workflow.continue_as_new(self._state())
            await self._wait()

    @workflow.signal
    async def look(self) -> None:
        """Look at the zone soon: a notification arrived. It may come often, late, or not at all."""
        self._is_notified = True
        self._look_at = min(self._look_at, workflow.now().timestamp() + _SOON)

    @workflow.signal(name=RUN_ENDED_SIGNAL)
    def run_ended(self, ended: EndedRun) -> None:
        """Learn how the run of a batch ended; a repeated signal changes nothing."""
        batch = self._batches.get(ended.key)
        if batch is None or batch.state != "running":
            return
        if ended.is_done:
            del self._batches[ended.key]
            self._is_look_due = True  # its files are asked about again: main has them now
            return
        update = {
            "state": "kept out",
            "workflow_id": ended.workflow_id,
            "run_id": ended.run_id,
            "outcome": ended.outcome,
            "reason": ended.reason[:500],
        }
        self._batches[ended.key] = batch.model_copy(update=update)
        if self._input.on_failure == "pause" and not self._paused:
            self._paused = f"batch {ended.key} was kept out: {ended.reason[:200]}"

    @workflow.update
    def pause(self, request: PauseZone) -> str:
        """Pause or resume; return what is shown as the reason."""
        note = f"{request.note} ({request.by})" if request.note else f"by {request.by}"
        self._paused = note if request.paused else ""
        return self._paused

    @workflow.update
    def command(self, command: BatchCommand) -> Batch:
        """Retry a batch that was kept out, or set it aside."""
        batch = self._batches[command.batch]
        state = {"retry": "waiting", "set aside": "set aside"}[command.action]
        changed = batch.model_copy(update={"state": state})
        if command.action == "retry" and batch.outcome == "refused":
            del self._batches[command.batch]  # a file of it may be gone: what is there now is collected again
            self._is_look_due = True
        else:
            self._batches[command.batch] = changed
        return changed

    @command.validator
    def _check_command(self, command: BatchCommand) -> None:
        batch = self._batches.get(command.batch)
        if batch is None:
            raise ApplicationError(f"there is no batch {command.batch!r} that main does not have", type="NoSuchBatch")
        if batch.state in ("running", "waiting"):
            raise ApplicationError(f"batch {command.batch} is {batch.state}: wait for its end", type="BatchUnderWay")

    @workflow.update
    def replace_pipeline(self, input: LandingZoneInput) -> None:
        """Take another version of the pipeline: for the looks and runs from now on."""
        self._input, self._is_look_due = input, True
        workflow.upsert_memo({ZONE_MEMO: memo_of(input)})

    @workflow.query
    def status(self) -> ZoneStatus:
        """Return what the zone holds."""
        next_look = workflow.now().timestamp() if self._is_look_due else self._look_at
        return ZoneStatus(
            name=self._input.name,
            pipeline=self._input.pipeline,
            batches=list(self._batches.values()),
            paused=self._paused,
            problem=self._problem,
            waiting=self._waiting,
            latest_arrival=self._latest_arrival,
            next_look=_iso(next_look),
        )

    async def _look(self) -> None:
        """Collect what arrived; set when to look again."""
        delay, self._is_notified = self._input.look, False
        held = [batch.ref for batch in self._batches.values()]
        room = room_for_batches(self._batches.values())
        try:
            result = await self._calls.collect_arrivals(
                CollectArrivalsInput(pipeline=self._input.pipeline, held=held, room=room)
            )
        except ActivityError as error:
            if is_cancelled(error):
                raise
            self._problem, delay = root_cause(error)[1][:500], min(delay, _ON_ERROR)
        else:
            await self._take(result)
            delay = delay if result.look_in is None else min(delay, result.look_in)
            if not room and not self._problem:
                self._problem = f"{len(held)} batches are not loaded: retry them or set them aside, so that more follow"
        await self._start_lost_runs()
        if self._is_notified:  # while the zone was listed: it may be about a file that came after that
            delay = min(delay, _SOON)
        self._look_at = workflow.now().timestamp() + delay

    async def _take(self, result: CollectArrivalsResult) -> None:
        problem, self._problem = self._problem, result.problem
        if result.problem:
            if result.problem != problem:
                await self._notify(f"cannot be looked at: {result.problem}")
            return
        for ref in result.batches:
            self._batches.setdefault(ref.id, Batch(ref=ref))
        for id in result.loaded:  # a run that is under way for one reports about no batch then
            self._batches.pop(id, None)
        self._waiting = result.waiting
        if (result.latest_arrival or 0) > (self._latest_arrival or 0):
            self._latest_arrival, self._silence_reported = result.latest_arrival, False
        for file in result.overwritten:
            await self._notify(f"{file.path} came again with other content, and is not loaded; {file.run} loaded it")
        if result.more_overwritten:
            await self._notify(f"{result.more_overwritten:,} more files came again with other content")

    async def _start_batches(self) -> None:
        """Start runs for the oldest batches that wait, as many as may run at a time."""
        running = sum(batch.state == "running" for batch in self._batches.values())
        for id, batch in list(self._batches.items()):
            if self._paused or running >= self._input.at_once:
                return
            if batch.state == "waiting":
                await self._start(id, batch)
                running += 1

    async def _start_lost_runs(self) -> None:
        """Start the runs of batches that a former run of this workflow started; those that are under way go on."""
        for id, batch in list(self._batches.items()):
            if batch.state == "running" and id not in self._children:
                await self._start(id, batch.model_copy(update={"tries": batch.tries - 1}))

    async def _start(self, id: str, batch: Batch) -> None:
        try:
            files = await self._calls.read_batch(batch.ref)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            reason = root_cause(error)[1][:500]
            self._batches[id] = batch.model_copy(update={"state": "kept out", "reason": reason})
            return
        if id not in self._batches:  # main has its files meanwhile
            return
        zone = workflow.info().workflow_id
        self._batches[id] = batch.model_copy(update={"state": "running", "tries": batch.tries + 1, "reason": ""})
        input = StartPipelineInput(
            pipeline=self._input.pipeline,
            starter=f"arrivals of {self._input.name}",
            files=files.paths,
            key=id,
            report_to=zone,
        )
        try:
            child = await workflow.start_child_workflow(
                "StartPipeline",
                input,
                id=f"{zone}-{id}-{batch.tries + 1}",
                parent_close_policy=ParentClosePolicy.ABANDON,
                static_summary=f"{self._input.name}: {batch.ref.files} files that arrived",
            )
            self._children[id] = child
            child.add_done_callback(partial(self._child_ended, id))
        except WorkflowAlreadyStartedError:  # it was started before, is under way, and reports here
            workflow.logger.info("the run of batch %s was started before", id)

    def _child_ended(self, id: str, child: object) -> None:
        """Hold a batch as kept out if what ran it ended without a report: somebody terminated it."""
        batch = self._batches.get(id)
        if self._children.get(id) is child:
            del self._children[id]
            if batch and batch.state == "running":
                reason = "what ran it was ended from outside, without a report: retry it"
                self._batches[id] = batch.model_copy(update={"state": "kept out", "reason": reason})

    async def _tell_of_silence(self) -> None:
        """Tell people, once, that nothing arrived for longer than the pipeline expects."""
        expected, latest = self._input.expect, self._latest_arrival or self._since
        if expected is None or self._silence_reported or workflow.now().timestamp() - latest < expected:
            return
        self._silence_reported = True
        await self._notify(f"nothing arrived since {_iso(latest)}; `expect` allows {expected:g} s")

    async def _notify(self, text: str) -> None:
        try:
            await self._calls.notify_landing_zone(ZoneNotice(name=self._input.name, text=text))
        except ActivityError as error:
            if is_cancelled(error):
                raise
            workflow.logger.warning("the notification failed: %s", root_cause(error)[1])

    async def _wait(self) -> None:
        """Wait until a look is due, or there is something to start."""
        while not self._is_look_due and not self._can_start():
            remaining = self._look_at - workflow.now().timestamp()
            if remaining <= 0:
                self._is_look_due = True
                return
            try:
                await workflow.wait_condition(
                    partial(self._has_news, self._look_at), timeout=timedelta(seconds=remaining)
                )
            except asyncio.TimeoutError:
                self._is_look_due = True

    def _has_news(self, look_at: float) -> bool:
        return self._is_look_due or self._can_start() or self._look_at < look_at

    def _can_start(self) -> bool:
        states = [batch.state for batch in self._batches.values()]
        return not self._paused and "waiting" in states and states.count("running") < self._input.at_once

    def _state(self) -> LandingZoneInput:
        """Return the input with which the workflow continues."""
        update = {
            "batches": list(self._batches.values()),
            "paused": self._paused,
            "latest_arrival": self._latest_arrival,
            "silence_reported": self._silence_reported,
            "problem": self._problem,
            "since": self._since,
        }
        return self._input.model_copy(update=update)


def _iso(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, timezone.utc).isoformat(timespec="seconds")
