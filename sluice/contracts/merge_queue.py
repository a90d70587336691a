"""Messages of the merge queue: the ticket by which a run waits for the merge slot of a table."""

import hashlib

from sluice.base_model import Model

SLOT_SIGNAL = "merge_slot_free"
"""The signal by which the queue gives the merge slot to a run."""


class MergeTicket(Model):
    """A run's ticket for the merge slot of one table."""

    table: str
    run_id: str
    workflow_id: str
    attempt: int


def queue_id(installation: str, table: str) -> str:
    """Return the workflow id of a table's merge queue. It is a hash, because names may hold any character."""
    return f"sluice-merge-queue-{installation}-{hashlib.sha256(table.encode()).hexdigest()[:16]}"
