"""The runs of the batches of a landing zone: each is started once, and one that is lost is noticed."""

from collections.abc import Callable
from functools import partial

from temporalio import workflow
from temporalio.exceptions import ActivityError, WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

with workflow.unsafe.imports_passed_through():
    from sluice.arrivals.held_batches import HeldBatches
    from sluice.contracts.arrivals import Batch, LandingZoneInput
    from sluice.contracts.starting import StartPipelineInput
    from sluice.sizes import format_count
    from workflows.activity_calls import ActivityCalls
    from workflows.arrivals.zone_runs import GrantedRuns
    from workflows.failures import is_cancelled, root_cause

_ASK_EVERY = 600.0
"""The seconds after which a start is tried again for what is under way: somebody may have terminated it."""


class BatchRuns:
    """Starts runs for batches."""

    def __init__(self, batches: HeldBatches, calls: ActivityCalls, on_kept_out: Callable[[str, str], None]) -> None:
        """Start runs for these batches; `on_kept_out` learns of one that no run can report: its id, and why."""
        self._batches, self._calls, self._on_kept_out = batches, calls, on_kept_out
        self._children: dict[str, object] = {}
        """What runs a batch, as far as this run of the workflow started it."""
        self._seen_at: dict[str, float] = {}
        """When it was seen that what runs a batch was started before, and is under way."""

    def room(self, zone: LandingZoneInput) -> int:
        """Return how many more runs the landing zone may have, by its own limit."""
        return zone.at_once - self._batches.count("running")

    async def start(self, zone: LandingZoneInput, id: str) -> None:
        """Start the run of a batch, if it waits and there is room for it."""
        batch = self._batches.get(id)
        if batch and batch.state == "waiting" and self.room(zone) > 0:
            await self._start(zone, batch, batch.tries + 1)

    async def start_lost(self, zone: LandingZoneInput) -> None:
        """Start the runs of batches that a former run of this workflow started; those that are under way go on."""
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
        reason = "" if batch.tries else batch.reason  # of a half: who split its batch
        self._batches.update(id, state="running", tries=tries, reason=reason)
        input = StartPipelineInput(
            pipeline=zone.pipeline,
            starter=f"arrivals of {zone.name}",
            files=files.paths,
            expected=batch.ref.location,
            way="arrival",
            loads_overwritten=batch.is_named,
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
        except WorkflowAlreadyStartedError:  # it was started before, is under way, and reports here
            self._seen_at[id] = workflow.now().timestamp()
            workflow.logger.info("the run of batch %s was started before", id)

    def _is_as_before(self, batch: Batch) -> bool:
        """Return whether a batch is as it was: main may have its files meanwhile, or a person have decided about it."""
        now = self._batches.get(batch.ref.id)
        return now is not None and (now.state, now.tries) == (batch.state, batch.tries)

    def _child_ended(self, id: str, child: object) -> None:
        """Hold a batch as kept out if what ran it ended without a report: somebody terminated it."""
        batch = self._batches.get(id)
        if self._children.get(id) is child:
            del self._children[id]
            if batch and batch.state == "running":
                self._keep_out(id, "what ran it was ended from outside, without a report: retry it")

    def _keep_out(self, id: str, reason: str) -> None:
        self._batches.keep_out(id, reason)
        self._on_kept_out(id, reason)
