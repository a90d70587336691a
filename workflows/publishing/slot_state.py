"""State of a run in the merge queue."""

from dataclasses import dataclass

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.merge_queue import MergeTicket


@dataclass
class MergeSlot:
    """The run's latest request for a merge slot, and the request that the queue granted last."""

    requested: MergeTicket | None = None
    granted: MergeTicket | None = None

    @property
    def is_held(self) -> bool:
        """True if the queue granted the latest request."""
        return self.requested is not None and self.granted == self.requested
