"""Tag or move the loaded files of a landing zone, in parallel to its other work."""

import asyncio
from collections.abc import Callable

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from sluice.arrivals.held_batches import HeldBatches
    from sluice.contracts.arrivals import CollectArrivalsResult, FinishArrivalsInput, FinishArrivalsResult
    from sluice.contracts.starting import PipelineText
    from sluice.sizes import format_count
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import is_cancelled, root_cause


class FinishedFiles:
    """The task that tags or moves files, one at a time. The zone does not wait for it."""

    def __init__(self, calls: ActivityCalls) -> None:
        self._calls = calls
        self._task: asyncio.Task[None] | None = None
        self.problem = ""
        """The number of files that could not be tagged or moved, with the reason; empty if there are none."""

    @property
    def are_under_way(self) -> bool:
        """True while files are being tagged or moved."""
        return self._task is not None and not self._task.done()

    def note(self, listing: CollectArrivalsResult) -> None:
        """Clear the problem if a listing shows that no file has one any more."""
        if not listing.put_off and not listing.problem:
            self.problem = ""

    def start(self, pipeline: PipelineText, batches: HeldBatches, may_go_on: Callable[[], bool]) -> None:
        """Start the task, unless it is running. Files that are loaded meanwhile follow after the next listing.

        Args:
            may_go_on: called before each part of the work; the work ends if it returns False.
        """
        if not self.are_under_way:
            self._task = asyncio.create_task(self._finish(pipeline, batches, may_go_on))

    async def _finish(self, pipeline: PipelineText, batches: HeldBatches, may_go_on: Callable[[], bool]) -> None:
        failed, problem, has_more = 0, "", True
        while has_more and may_go_on():
            try:
                result: FinishArrivalsResult = await self._calls.finish_arrivals(
                    FinishArrivalsInput(pipeline=pipeline, held=batches.refs)
                )
            except ActivityError as error:
                if is_cancelled(error):
                    raise
                self.problem = root_cause(error)[1][:500]
                return
            failed, problem, has_more = failed + result.failed, problem or result.problem, result.has_more
        self.problem = f"{format_count(failed, 'file')}: {problem}" if failed else ""
