"""Marks and properties that record how old the rows of a run are."""

from collections.abc import Mapping

from sluice.contracts.existing_rows import Resume
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.references import RunRef
from sluice.publishing.commit_properties import RELEASED_RUN, RUN_ID

PIPELINE_MARK = "sluice.pipeline"
PARTITION_MARK = "sluice.partition"
"""In the summary of a snapshot whose run loads one partition: the pipeline, and the partition or scheduled time."""
PARTITION = "sluice.partition"
"""On commits of such a run: the partition or scheduled time."""
REQUEUED_RUNS = "sluice.requeued-runs"
"""On the merge commit of a requeue, its quarantine and the release of that: the runs that quarantined its rows first,
separated by commas."""


def partition_marks(run_ref: RunRef) -> dict[str, str]:
    """Return the marks that name the partition of a run on every snapshot, or none if it has no partition."""
    return {PIPELINE_MARK: run_ref.pipeline, PARTITION_MARK: run_ref.partition} if run_ref.partition else {}


def partition_properties(run_ref: RunRef) -> dict[str, str]:
    """Return the properties that name the partition of a run on every commit, or none if it has no partition."""
    return {PARTITION: run_ref.partition} if run_ref.partition else {}


def requeue_properties(order: LoadOrder, resume: Resume | None = None) -> dict[str, str]:
    """Return the properties that name the original runs of requeued rows on a commit of a requeue or its release."""
    runs = order.runs or order.files_of_runs or (resume.requeued_runs if resume else [])
    return {REQUEUED_RUNS: ",".join(runs)} if runs else {}


def requeued_runs(properties: Mapping[str, str]) -> set[str]:
    """Return the original runs of the rows that a commit requeued, or none if it is no requeue."""
    return {each for each in properties.get(REQUEUED_RUNS, "").split(",") if each}


def published_runs(properties: Mapping[str, str]) -> set[str]:
    """Return the runs whose rows a commit published: its own run, and the quarantined run that it released."""
    return {properties[each] for each in (RUN_ID, RELEASED_RUN) if each in properties}
