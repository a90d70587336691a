"""Marks and properties that tell the age of the rows of a run."""

from sluice.contracts.load_order import LoadOrder
from sluice.contracts.references import RunRef

PIPELINE_MARK = "sluice.pipeline"
PARTITION_MARK = "sluice.partition"
"""In the summary of a snapshot whose run loads one partition: the pipeline, and the partition or scheduled time."""
PARTITION = "sluice.partition"
"""On commits of such a run, the same."""
REQUEUED_RUNS = "sluice.requeued-runs"
"""On the merge commit of a requeue: the runs that quarantined its rows, with commas between."""


def partition_marks(run_ref: RunRef) -> dict[str, str]:
    """Return what every snapshot of a run says of its partition; nothing where it has none."""
    return {PIPELINE_MARK: run_ref.pipeline, PARTITION_MARK: run_ref.partition} if run_ref.partition else {}


def partition_properties(run_ref: RunRef) -> dict[str, str]:
    """Return what every commit of a run says of its partition; nothing where it has none."""
    return {PARTITION: run_ref.partition} if run_ref.partition else {}


def requeue_properties(order: LoadOrder) -> dict[str, str]:
    """Return what the merge commit of a requeue says of the runs that its rows are from."""
    return {REQUEUED_RUNS: ",".join(order.runs)} if order.runs else {}
