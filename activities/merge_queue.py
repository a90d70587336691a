"""Ask for a turn at a table, and give it back."""

from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.errors import as_application_error
from sluice.contracts.merge_queue import MergeTicket, queue_id


@dataclass(frozen=True)
class MergeQueueActivity:
    """Needs Temporal, whose runs these are, and the task queue of those who keep the line."""

    client: Client
    installation: str
    task_queue: str

    @activity.defn(name="acquire_merge_slot")
    async def acquire_merge_slot(self, turn: MergeTicket) -> None:
        """Stand in line; the run hears by a signal when its turn has come."""
        with as_application_error():
            await self.stand_in_line(turn)

    async def stand_in_line(self, turn: MergeTicket) -> None:
        """Start the table's queue with this turn in it, or add it to the one that is there."""
        nobody: list[MergeTicket] = []
        await self.client.start_workflow(
            "MergeQueue",
            nobody,
            id=queue_id(self.installation, turn.table),
            task_queue=self.task_queue,
            start_signal="ask",
            start_signal_args=[turn],
        )

    @activity.defn(name="release_merge_slot")
    async def release_merge_slot(self, turn: MergeTicket) -> None:
        """Let the next run have its turn. A line that is gone is as good."""
        with as_application_error():
            try:
                await self.client.get_workflow_handle(queue_id(self.installation, turn.table)).signal("give_back", turn)
            except RPCError as error:
                if error.status != RPCStatusCode.NOT_FOUND:
                    raise
