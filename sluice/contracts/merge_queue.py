"""Turns of runs that main overtook, at the tables that they met at."""

import hashlib

from sluice.base_model import Model

SLOT_SIGNAL = "merge_slot_free"
"""The signal that gives a run the merge slot."""


class MergeTicket(Model):
    """One turn of one run."""

    table: str
    run_id: str
    workflow_id: str
    attempt: int


def queue_id(installation: str, table: str) -> str:
    """Return the workflow id of the queue at a table, whatever characters its name has."""
    return f"sluice-turns-{installation}-{hashlib.sha256(table.encode()).hexdigest()[:16]}"
