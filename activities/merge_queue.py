"""Ask for a turn at a table, and give it back."""

from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.errors import told_to_temporal
from sluice.contracts.merge_queue import Turn, queue_id


@dataclass(frozen=True)
class TakeTurnsActivity:
    """Needs Temporal, whose runs these are, and the task queue of those who keep the line."""

    client: Client
    realm: str
    task_queue: str

    @activity.defn(name="ask_turn")
    async def ask_turn(self, turn: Turn) -> None:
        """Stand in line; the run hears by a signal when its turn has come."""
        with told_to_temporal():
            await self.stand_in_line(turn)

    async def stand_in_line(self, turn: Turn) -> None:
        """Start the table's queue with this turn in it, or add it to the one that is there."""
        nobody: list[Turn] = []
        await self.client.start_workflow(
            "MergeTurns",
            nobody,
            id=queue_id(self.realm, turn.table),
            task_queue=self.task_queue,
            start_signal="ask",
            start_signal_args=[turn],
        )

    @activity.defn(name="give_back_turn")
    async def give_back_turn(self, turn: Turn) -> None:
        """Let the next run have its turn. A line that is gone is as good."""
        with told_to_temporal():
            try:
                await self.client.get_workflow_handle(queue_id(self.realm, turn.table)).signal("give_back", turn)
            except RPCError as error:
                if error.status != RPCStatusCode.NOT_FOUND:
                    raise
