"""The files of a landing zone that main holds: they are tagged or moved while the zone goes on."""

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
    """Has files tagged or moved, in one task at a time. Nothing of the zone waits for it."""

    def __init__(self, calls: ActivityCalls) -> None:
        self._calls = calls
        self._task: asyncio.Task[None] | None = None
        self.problem = ""
        """How many files could not be tagged or moved, and why; empty if there are none."""

    @property
    def are_under_way(self) -> bool:
        """Whether files are tagged or moved now."""
        return self._task is not None and not self._task.done()

    def note(self, look: CollectArrivalsResult) -> None:
        """Forget the problem where a look shows that no file has one any more."""
        if not look.put_off and not look.problem:
            self.problem = ""

    def start(self, pipeline: PipelineText, batches: HeldBatches, may_go_on: Callable[[], bool]) -> None:
        """Begin, unless it is under way: what main holds by then follows after the next look.

        Args:
            may_go_on: asked before each part of the work.
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
