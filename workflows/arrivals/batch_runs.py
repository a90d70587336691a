"""The runs of the batches of a landing zone: start each once, and detect lost ones."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from sluice.arrivals.held_batches import HeldBatches
    from sluice.contracts.arrivals import Batch, LandingZoneInput, zone_starter
    from sluice.contracts.starting import StartPipelineInput
    from sluice.sizes import format_count
    from workflows.activity_calls import ActivityCalls
    from workflows.arrivals.zone_runs import GrantedRuns
    from workflows.failures import is_cancelled, refusal_of, root_cause

_NO_REPORT = "its workflow ended without a report, for example because somebody terminated it: retry it"
_ASK_EVERY = 600.0
"""Interval to repeat the start of running batches, in seconds, because somebody may have terminated a run."""


class BatchRuns:
    """The starter of runs for batches."""

    def __init__(self, batches: HeldBatches, calls: ActivityCalls, on_kept_out: Callable[[str, str], None]) -> None:
        """Prepare to start runs for these batches.

        Args:
            on_kept_out: called with the id and the reason when a batch is kept out, and no run can report it.
        """
        self._batches, self._calls, self._on_kept_out = batches, calls, on_kept_out
        self._children: dict[str, object] = {}
        """The child workflows that this run of the workflow started, by batch id."""
        self._seen_at: dict[str, float] = {}
        """Time at which this run of the workflow found a child of an earlier run of it under way, by batch id."""

    def room(self, zone: LandingZoneInput) -> int:
        """Return the number of further runs that the landing zone's own limit allows.

        Where the order matters, there are none until a listing has collected the files of removed batches again.
        """
        if zone.in_order and self._batches.order.collected_again:
            return 0
        return zone.at_once - self._batches.count("running")

    async def start(self, zone: LandingZoneInput, id: str) -> None:
        """Start the run of a batch, if the batch waits and the limit allows it.

        Where the order matters, a batch with an older one that waits, too, is not started.
        """
        batch = self._batches.get(id)
        if batch and zone.in_order and not self._batches.is_next(id):
            return
        if batch and batch.state == "waiting" and self.room(zone) > 0:
            await self._start(zone, batch, batch.tries + 1)

    async def start_lost(self, zone: LandingZoneInput) -> None:
        """Start again the runs that an earlier run of this workflow started. Runs that are under way go on."""
        now = workflow.now().timestamp()
        self._seen_at = {id: at for id, at in self._seen_at.items() if at > now - _ASK_EVERY}
        for batch in self._batches.all:
            is_known = batch.ref.id in self._children or batch.ref.id in self._seen_at
            if batch.state == "running" and not is_known:
                await self._start(zone, batch, batch.tries)

    async def _start(self, zone: LandingZoneInput, batch: Batch, tries: int) -> None:
        id = batch.ref.id
        try:
            files = await self._calls.read_batch(batch.ref)
        except ActivityError as error:
            if is_cancelled(error):
                raise
            if self._is_as_before(batch):
                self._keep_out(id, root_cause(error)[1])
            return
        if not self._is_as_before(batch):
            return
        workflow_id = workflow.info().workflow_id
        reason = "" if batch.tries else batch.reason  # the reason of a half names the person who split its batch
        self._batches.update(id, state="running", tries=tries, reason=reason)
        input = StartPipelineInput(
            pipeline=zone.pipeline,
            starter=zone_starter(zone.name),
            files=files.paths,
            expected=batch.ref.location,
            way="arrival",
            loads_overwritten=batch.is_named,
            over_younger=batch.over_younger,
            again=batch.is_named and batch.ref.is_sent_again,
            key=id,
            report_to=workflow_id,
        )
        try:
            child = await workflow.start_child_workflow(
                "StartPipeline",
                input,
                id=GrantedRuns.run_id(id, tries),
                parent_close_policy=ParentClosePolicy.ABANDON,
                static_summary=f"{zone.name}: {format_count(batch.ref.files, 'file')} that arrived",
            )
            self._children[id] = child
            child.add_done_callback(partial(self._child_ended, id))
        except WorkflowAlreadyStartedError:  # started before and under way; it reports here
            self._seen_at[id] = workflow.now().timestamp()
            workflow.logger.info("the run of batch %s was started before", id)

    def _is_as_before(self, batch: Batch) -> bool:
        """Return True if a batch has not changed meanwhile, by a load of its files or by a person's decision."""
        now = self._batches.get(batch.ref.id)
        return now is not None and (now.state, now.tries) == (batch.state, batch.tries)

    def _child_ended(self, id: str, child: "asyncio.Task[Any]") -> None:
        """Keep a batch out if its child ended without a report: the worker refused it, or somebody terminated it."""
        refusal = "" if child.cancelled() else refusal_of(child.exception())
        batch = self._batches.get(id)
        if self._children.get(id) is child:
            del self._children[id]
            if batch and batch.state == "running":
                self._keep_out(id, refusal[:1000] or _NO_REPORT)

    def _keep_out(self, id: str, reason: str) -> None:
        self._batches.keep_out(id, reason)
        self._on_kept_out(id, reason)
