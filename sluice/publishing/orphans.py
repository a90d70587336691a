"""Decide what to do with an orphan branch: the branch of an attempt whose run is gone."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from sluice.contracts.references import RunRef
from sluice.identifiers import pipeline_name, quarantine_branch, run_of
from sluice.publishing.branch_properties import kept_input_properties, quarantine_properties
from sluice.publishing.commit_properties import INSTALLATION, PIPELINE, RUN_ID, WORKFLOW_ID
from sluice.publishing.load_properties import PARTITION

OrphanAction = Literal["delete", "quarantine", "report"]
_KEPT = timedelta(days=14)
"""Time for which the rows of a lost run are kept. The setting of its pipeline is not known."""
_REASON = "the run is gone without an end: somebody terminated it, or Temporal lost it"


def names_its_run(branch: str, properties: Mapping[str, str]) -> bool:
    """Return True if the properties of a commit name the run that made the branch, and so does the branch's name."""
    return {RUN_ID, WORKFLOW_ID, PIPELINE, INSTALLATION} <= properties.keys() and properties[RUN_ID] == run_of(branch)


def is_idle(committed_at: datetime, now: datetime, grace: float) -> bool:
    """Return True if the newest commit of a branch is older than the grace period, in seconds."""
    return now - committed_at >= timedelta(seconds=grace)


def is_expired(expires: datetime | None, now: datetime) -> bool:
    """Return True if a quarantine has expired. One without a date never expires."""
    return expires is not None and expires <= now


def orphan_action(
    attempt: int | None,
    *,
    changed_tables: int,
    is_published: bool,
    rows_are_kept_already: bool = False,
    keeps_rows: bool = True,
) -> OrphanAction:
    """Decide what to do with an orphan branch.

    Args:
        attempt: number of the attempt in the branch's name; None for a name of another kind.
        changed_tables: number of tables whose version differs from main's at the time when the branch began.
        is_published: True if main contains the branch's write, or that of another attempt of its run.
        rows_are_kept_already: True if a quarantine, or the history of main, contains the rows, as for a release or a
            roll-back.
        keeps_rows: False for a run with `--no-publish` or a rehearsal. A release must not publish its rows.
    """
    if attempt is None:
        return "report"
    is_kept = changed_tables and keeps_rows and not is_published and not rows_are_kept_already
    return "quarantine" if is_kept else "delete"


@dataclass(frozen=True)
class OrphanQuarantine:
    """Name and properties of the quarantine that an orphan branch becomes."""

    name: str
    properties: Mapping[str, str]


def orphan_quarantine(owner: Mapping[str, str], attempt: int, base: str, now: datetime) -> OrphanQuarantine:
    """Return the quarantine that an orphan branch becomes.

    Args:
        owner: properties that name the run of the branch.
        base: hash of main from which the branch was created.

    Raises:
        InvalidPipeline: the recorded name of the pipeline is not valid.
    """
    run_ref = RunRef(
        run_id=owner[RUN_ID],
        workflow_id=owner[WORKFLOW_ID],
        pipeline=pipeline_name(owner[PIPELINE]),
        label="",
        attempt=attempt,
        partition=owner.get(PARTITION, ""),
    )
    name = quarantine_branch(run_ref.pipeline, now.date().isoformat(), f"{run_ref.run_id}-a{attempt}")
    expires = (now + _KEPT).isoformat()
    properties = quarantine_properties(run_ref, base, "error", _REASON, expires, input=kept_input_properties(owner))
    return OrphanQuarantine(name, {**properties, INSTALLATION: owner[INSTALLATION]})
