"""Acquire and release the merge slot of a table, by signals to the workflow of its merge queue."""

from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from sluice.contracts.merge_queue import MergeTicket, queue_id


@dataclass(frozen=True)
class MergeQueueActivity:
    """The activities `acquire_merge_slot` and `release_merge_slot`.

    Needs Temporal's client, the installation, the branch that runs publish to, and the task queue of the merge queues.
    """

    client: Client
    installation: str
    target: str
    task_queue: str

    @activity.defn(name="acquire_merge_slot")
    async def acquire_merge_slot(self, ticket: MergeTicket) -> None:
        """Add a run to the merge queue; the queue signals the run when it has the slot."""
        await self.enqueue(ticket)

    async def enqueue(self, ticket: MergeTicket) -> None:
        """Start the table's queue with this ticket, or signal the running queue."""
        empty_queue: list[MergeTicket] = []
        await self.client.start_workflow(
            "MergeQueue",
            empty_queue,
            id=queue_id(self.installation, self.target, ticket.table),
            task_queue=self.task_queue,
            start_signal="enqueue",
            start_signal_args=[ticket],
        )

    @activity.defn(name="release_merge_slot")
    async def release_merge_slot(self, ticket: MergeTicket) -> None:
        """Release the slot for the next run in the queue. A queue that has ended needs no signal."""
        try:
            queue = self.client.get_workflow_handle(queue_id(self.installation, self.target, ticket.table))
            await queue.signal("release", ticket)
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
