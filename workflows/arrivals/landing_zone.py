"""The workflow of a landing zone: it lists the zone, and starts a run for each batch of files that arrived.

Its state is the batches that main does not contain yet: waiting, running, kept out, or set aside by a person. Main has
the rest of the state. Notifications and time-outs only cause a listing; the listing decides.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from sluice.arrivals.batch_order import BatchOrder
    from sluice.arrivals.held_batches import HeldBatches
    from sluice.contracts.arrival_runs import GRANT_SIGNAL, RunGrant
    from sluice.contracts.arrivals import (
        ZONE_MEMO,
        Batch,
        CollectArrivalsInput,
        CollectArrivalsResult,
        LandingZoneInput,
        ZoneStatus,
        memo_of,
    )
    from sluice.contracts.starting import RUN_ENDED_SIGNAL, EndedRun
    from sluice.contracts.zone_loads import LoadBatch
    from sluice.contracts.zone_requests import BatchCommand, PauseZone, SplitBatch, SplitBatchInput
    from sluice.presentation.start_details import zone_details
    from workflows.activity_calls import ActivityCalls
    from workflows.arrivals.batch_runs import BatchRuns
    from workflows.arrivals.finished_files import FinishedFiles
    from workflows.arrivals.zone_listings import ZoneListings
    from workflows.arrivals.zone_notices import ZoneNotices, iso_of
    from workflows.arrivals.zone_runs import GrantedRuns
    from workflows.failures import is_cancelled, raise_if_cancelled, root_cause


@workflow.defn(name="LandingZone")
class LandingZone:
    """The landing zone of one pipeline."""

    @workflow.init
    def __init__(self, input: LandingZoneInput) -> None:
        self._input = input
        self._calls = ActivityCalls(pipeline=input.name)
        order = BatchOrder(input.youngest, input.collected_again, input.over_younger)
        self._batches = HeldBatches(input.batches, input.changes, order)
        self._runs = BatchRuns(self._batches, self._calls, self._pause_if_asked)
        self._grants = GrantedRuns(self._batches, self._calls, input.answered)
        self._finished_files = FinishedFiles(self._calls)
        self._notices = ZoneNotices(input.name, self._calls, input.reported)
        self._received = input.received
        self._paused, self._resumed, self._problem = input.paused, input.resumed, input.problem
        self._latest_arrival, self._silence_reported = input.latest_arrival, input.silence_reported
        self._counts, self._in_batches = dict[str, int](), dict[str, int]()
        self._is_listing_due, self._listings = True, ZoneListings()
        self._since = input.since or workflow.now().timestamp()

    @workflow.run
    async def run(self, input: LandingZoneInput) -> None:
        """List the zone, start runs and wait, until the workflow is cancelled."""
        workflow.upsert_memo({ZONE_MEMO: memo_of(self._input)})
        while True:
            if self._is_listing_due:
                self._is_listing_due = False
                await self._list_files()
            await self._start_batches()
            self._notify_about_silence()
            self._notices.add(self._batches.take_unreported())
            workflow.set_current_details(zone_details(self.status()))
            if self._is_on_another_queue and not self._is_busy:
                await self._grants.withdraw()
            raise_if_cancelled()  # an activity that completes during a cancellation does not raise it
            if self._can_continue_as_new():
                workflow.continue_as_new(self._state(), task_queue=self._input.task_queue or None)
            await self._wait()

    @workflow.signal
    async def look(self, files: list[str] | None = None) -> None:
        """Schedule a listing soon after a notification. Notifications may come often, late, or not at all.

        Args:
            files: the paths in the notification. If there are none, the next listing is of the whole zone.
        """
        self._listings.notify(files or ())

    @workflow.signal(name=RUN_ENDED_SIGNAL)
    def run_ended(self, ended: EndedRun) -> None:
        """Record the end of the run of a batch. A repeated signal changes nothing."""
        batch = self._batches.get(ended.key)
        became = self._batches.end(ended, in_order=self._input.in_order)
        if became and batch and self._input.in_order and batch.ref.oldest:
            self._is_listing_due = True  # younger files may have waited for its end
        if became in ("loaded", "changed"):
            self._is_listing_due = True  # main has its files now, or they must settle again
        elif became:
            self._pause_if_asked(ended.key, ended.reason)

    @workflow.signal(name=GRANT_SIGNAL)
    def start_batch(self, grant: RunGrant) -> None:
        """Record that the run of a batch may start, under the limit of all landing zones."""
        self._grants.granted(grant)

    @workflow.update
    def pause(self, request: PauseZone) -> str:
        """Pause or resume; return the reason that people see."""
        note = f"{request.note} ({request.by})" if request.note else f"by {request.by}"
        self._paused, self._resumed = (note, "") if request.paused else ("", note)
        return note

    @workflow.update
    def command(self, command: BatchCommand) -> Batch:
        """Retry a batch that was kept out, or set it aside, as a person decides."""
        batch, is_listing_due = self._batches.decide(command)
        self._is_listing_due = self._is_listing_due or is_listing_due
        return batch

    @command.validator
    def _check_command(self, command: BatchCommand) -> None:
        if problem := self._batches.problem_of_request(command, in_order=self._input.in_order):
            raise ApplicationError(problem, type="NoDecision")

    @workflow.update
    async def split(self, request: SplitBatch) -> list[Batch]:
        """Split a batch that was kept out or set aside into two, to narrow down the search for its bad file."""
        batch = self._batches.get(request.batch)
        assert batch, "the validator saw it"
        try:
            given = SplitBatchInput(name=self._input.name, ref=batch.ref, pipeline=self._input.pipeline)
            written = await self._calls.split_batch(given)
        except ActivityError as error:
            raise ApplicationError(root_cause(error)[1], type="NoSplit") from error
        halves = self._batches.split(request, written.halves)
        if not halves:
            problem = f"somebody decided about batch {request.batch} meanwhile: see `arrivals {self._input.name}`"
            raise ApplicationError(problem, type="NoDecision")
        return halves

    @split.validator
    def _check_split(self, request: SplitBatch) -> None:
        if problem := self._batches.problem_of_request(request, in_order=self._input.in_order):
            raise ApplicationError(problem, type="NoDecision")

    @workflow.update
    def load(self, request: LoadBatch) -> Batch:
        """Load a batch of files that a person selected, in the same way as any other batch."""
        return self._batches.load(request, workflow.now().timestamp())

    @load.validator
    def _check_load(self, request: LoadBatch) -> None:
        if problem := self._batches.problem_of_load(request, in_order=self._input.in_order):
            raise ApplicationError(problem, type="NoDecision")

    @workflow.update
    def replace_pipeline(self, input: LandingZoneInput) -> None:
        """Use another version of the pipeline for all further listings and runs."""
        if input.keeps_overtaken_out and input.in_order and not self._input.in_order:
            self._batches.keep_overtaken_out()
        self._input, self._is_listing_due = input, True
        self._listings.list_all()
        workflow.upsert_memo({ZONE_MEMO: memo_of(input)})

    @workflow.query
    def status(self) -> ZoneStatus:
        """Return the state of the zone."""
        return ZoneStatus(
            name=self._input.name,
            pipeline=self._input.pipeline,
            batches=self._batches.all,
            paused=self._paused,
            resumed=self._resumed,
            problem=self._problem,
            counts=self._counts,
            in_batches=self._in_batches,
            latest_arrival=self._latest_arrival,
            next_look=iso_of(workflow.now().timestamp() if self._is_listing_due else self._listings.at),
            unfinished=self._finished_files.problem,
            expect=self._input.expect,
            since=self._since,
        )

    def _pause_if_asked(self, batch: str, reason: str) -> None:
        """Pause the zone after a batch that was kept out, if the pipeline has `on_failure: pause`."""
        if self._input.on_failure == "pause" and not self._paused:
            self._paused, self._resumed = f"batch {batch} was kept out: {reason[:200]}", ""
            self._notices.add([f"no more batches are loaded: {self._paused}"])

    async def _list_files(self) -> None:
        """Collect the files that arrived, and plan the next listing."""
        held, room, files = self._batches.refs, self._batches.room, self._listings.begin()
        pipeline, received = self._input.pipeline, self._received
        collected = list(self._batches.order.collected_again)
        given = CollectArrivalsInput(
            pipeline=pipeline,
            held=held,
            states=self._batches.decisions,
            room=room,
            limits=self._batches.limits if self._input.in_order else [],
            received=received,
            files=files,
        )
        try:
            result = await self._collect(given)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            result = CollectArrivalsResult(problem=root_cause(error)[1][:500], is_passing=True)
        self._take(result, collected)
        full = f"the landing zone is full with {len(held)} batches: retry them or set them aside"
        before, self._problem = self._problem, result.problem or ("" if room else full)
        text = f"cannot be listed: {result.problem}" if result.problem else self._problem
        self._notices.of_problem(text, before, is_passing=result.is_passing)
        await self._runs.start_lost(self._input)
        self._grants.report_again()
        self._listings.end(files, result, self._input.look)

    async def _collect(self, input: CollectArrivalsInput) -> CollectArrivalsResult:
        """List the zone. Start granted runs meanwhile, because a listing may take long and slots are scarce."""
        listing = asyncio.create_task(self._calls.collect_arrivals(input))
        try:
            while not listing.done():
                await workflow.wait_condition(lambda: listing.done() or self._grants.has_news(self._wanted))
                await self._start_batches()
        except asyncio.CancelledError:
            listing.cancel()
            await workflow.wait([listing])
            raise
        return await listing

    def _take(self, result: CollectArrivalsResult, collected: Sequence[str]) -> None:
        """Apply the result of a listing, unless the listing failed.

        Args:
            result: the result.
            collected: the batches that had been removed before the listing, whose files it collected again.
        """
        if result.problem:
            return
        if result.is_another_history:
            self._batches.order.forget_loads()
        self._batches.add(result.batches, workflow.now().timestamp(), in_order=self._input.in_order)
        self._batches.order.collected(collected)
        self._batches.remove(result.loaded, in_order=self._input.in_order)  # a later report of their runs has no effect
        self._counts, self._in_batches, self._received = result.counts, result.in_batches, result.mark
        if (result.latest_arrival or 0) > (self._latest_arrival or 0):
            self._latest_arrival, self._silence_reported = result.latest_arrival, False
        self._notices.of_listing(result)
        self._finished_files.note(result)
        if result.to_finish and self._may_finish(self._input):
            self._finished_files.start(self._input.pipeline, self._batches, partial(self._may_finish, self._input))

    def _may_finish(self, zone: LandingZoneInput) -> bool:
        """Return True if files may be tagged or moved by this version of the zone. The next listing resumes that."""
        return not self._paused and zone is self._input and not workflow.info().is_continue_as_new_suggested()

    async def _start_batches(self) -> None:
        """Start the granted runs, and request runs for the oldest waiting batches."""
        while (batch := self._grants.take()) is not None:
            if not self._paused:
                await self._runs.start(self._input, batch)
        await self._grants.report(self._wanted)

    def _notify_about_silence(self) -> None:
        """Notify people once that nothing to load arrived for longer than the pipeline expects."""
        if not self._silence_reported:
            self._silence_reported = self._notices.of_silence(self._input.expect, self._latest_arrival or self._since)

    async def _wait(self) -> None:
        """Wait until a listing is due, or there is other work."""
        while not self._has_news(self._listings.at):
            remaining = self._listings.at - workflow.now().timestamp()
            if remaining <= 0:
                self._is_listing_due = True
                return
            try:
                await workflow.wait_condition(
                    partial(self._has_news, self._listings.at), timeout=timedelta(seconds=remaining)
                )
            except asyncio.TimeoutError:
                self._is_listing_due = True

    def _has_news(self, list_at: float) -> bool:
        has_news = self._is_listing_due or self._grants.has_news(self._wanted) or self._listings.at < list_at
        return has_news or self._batches.has_unreported or (self._is_on_another_queue and not self._is_busy)

    @property
    def _wanted(self) -> list[Batch]:
        """The batches whose runs the zone could start now, the next one first."""
        room = 0 if self._paused else self._runs.room(self._input)
        return self._batches.waiting(in_order=self._input.in_order)[: max(0, room)]

    @property
    def _is_on_another_queue(self) -> bool:
        """True if the zone was deployed for another task queue than its present one."""
        return self._input.task_queue not in ("", workflow.info().task_queue)

    def _can_continue_as_new(self) -> bool:
        is_due = workflow.info().is_continue_as_new_suggested() or self._is_on_another_queue
        return is_due and not self._is_busy

    @property
    def _is_busy(self) -> bool:
        """True while work is under way that would be lost when the workflow continues as new."""
        tasks = self._finished_files.are_under_way or self._notices.are_under_way
        return tasks or self._grants.are_pending or not workflow.all_handlers_finished()

    def _state(self) -> LandingZoneInput:
        """Return the input for the next run when the workflow continues as new."""
        update = {
            "batches": self._batches.all,
            "paused": self._paused,
            "resumed": self._resumed,
            "latest_arrival": self._latest_arrival,
            "silence_reported": self._silence_reported,
            "problem": self._problem,
            "since": self._since,
            "answered": self._grants.answered,
            "changes": self._batches.changes,
            "youngest": self._batches.order.youngest,
            "collected_again": self._batches.order.collected_again,
            "over_younger": self._batches.order.permits,
            "reported": self._notices.reported,
            "received": self._received,
        }
        return self._input.model_copy(update=update)
