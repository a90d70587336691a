"""Messages of the merge queue, which orders the merges into one table."""

import hashlib

from sluice.base_model import WireMessage

SLOT_SIGNAL = "merge_slot_free"
"""Signal with which the queue gives the merge slot to a run."""
PRIORITY_MEMO = "sluice.merge_priority"
"""Memo of the queue's workflow: true while the run with the slot has priority over runs without one."""


class MergeTicket(WireMessage):
    """Request of a run for the merge slot of one table."""

    table: str
    run_id: str
    workflow_id: str
    rebases: int = 0
    """Number of rebases of the run so far. It distinguishes the run's requests: each conflict causes one."""

    def is_of_same_run(self, other: "MergeTicket | None") -> bool:
        """Return True if both are requests of one run."""
        return other is not None and (self.workflow_id, self.run_id) == (other.workflow_id, other.run_id)


def queue_id(installation: str, target: str, table: str) -> str:
    """Return the workflow id of the queue for merges into a table of the branch `target`."""
    hashed = hashlib.sha256(f"{target}/{table}".encode()).hexdigest()[:16]  # names may contain any character
    return f"sluice-merge-queue-{installation}-{hashed}"
