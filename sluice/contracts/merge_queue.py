"""Messages about the order of merges into one table: the merge queue, and the priority after many conflicts."""

import hashlib

from sluice.base_model import Model

SLOT_SIGNAL = "merge_slot_free"
"""The signal by which the queue gives the merge slot to a run."""
CLAIM_SIGNAL, RELEASE_SIGNAL = "claim", "release"
"""The signals by which a run claims merge priority at a table, or claims it again; and by which it has merged."""


class MergeTicket(Model):
    """A run's ticket for the merge slot of one table."""

    table: str
    run_id: str
    workflow_id: str
    attempt: int


def queue_id(installation: str, table: str) -> str:
    """Return the workflow id of a table's merge queue."""
    return f"sluice-merge-queue-{installation}-{_hashed(table)}"


def priority_id(installation: str, target: str, table: str) -> str:
    """Return the id of the workflow that runs while a run has merge priority at a table of a branch."""
    return f"sluice-merge-priority-{installation}-{_hashed(f'{target}/{table}')}"


def _hashed(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:16]  # names may hold any character
