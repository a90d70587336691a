"""Messages about the order of merges into one table: the merge queue, and merge priority after many conflicts."""

import hashlib

from sluice.base_model import Model

SLOT_SIGNAL = "merge_slot_free"
"""Signal with which the queue gives the merge slot to a run."""
CLAIM_SIGNAL, RELEASE_SIGNAL = "claim", "release"
"""Signals with which a run claims merge priority at a table, once or again, and releases it after its merge."""


class MergeTicket(Model):
    """Ticket of a run for the merge slot of one table."""

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
    return hashlib.sha256(name.encode()).hexdigest()[:16]  # names may contain any character
