"""The certificate: the properties of the merge commit on main, and of commits on branches of runs."""

import json
from collections.abc import Sequence

from sluice.approval.decisions import Decision
from sluice.approval.signatures import signed_fields
from sluice.audit.verdicts import AuditReport
from sluice.contracts.references import RunRef
from sluice.contracts.run import RunRequest
from sluice.secrets import redacted

SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property."
"""What begins the names of Spark settings that Iceberg writes into every snapshot of a session."""
RUN_MARK = "sluice.run-id"
ATTEMPT_MARK = "sluice.attempt"
"""What every snapshot carries in its summary: which run made it, in which attempt."""

RUN_ID = "sluice.run-id"
WORKFLOW_ID = "sluice.workflow-id"
PIPELINE = "sluice.pipeline"
INPUT = "sluice.input-digest"
AUDITED = "sluice.audited-hash"
QUARANTINED = "sluice.quarantined-hash"
"""The hash of what a quarantine keeps, whether it was audited or not."""
ATTEMPT = "sluice.attempt"
BASE = "sluice.base"
CAUSE = "sluice.cause"
REASON = "sluice.reason"
EXPIRES = "sluice.expires"
INSTALLATION = "sluice.installation"
"""Whose runs these are, where several installations share a catalog."""


def marks(run_ref: RunRef) -> dict[str, str]:
    """Return what every snapshot of an attempt says of who made it."""
    return {RUN_MARK: run_ref.run_id, ATTEMPT_MARK: str(run_ref.attempt)}


def branch_properties(run_ref: RunRef, installation: str) -> dict[str, str]:
    """Return the properties of the first commit on an attempt's branch: the reaper reads them when the run is gone."""
    return {
        RUN_ID: run_ref.run_id,
        WORKFLOW_ID: run_ref.workflow_id,
        PIPELINE: run_ref.pipeline,
        ATTEMPT: str(run_ref.attempt),
        INSTALLATION: installation,
    }


def quarantine_properties(
    run_ref: RunRef,
    base: str,
    cause: str,
    reason: str,
    expires: str,
    *,
    head: str = "",
    audited_hash: str | None = None,
) -> dict[str, str]:
    """Return what the last commit on a quarantined branch says: why it is kept, and until when (ISO 8601).

    Args:
        head: the hash that is kept, where it is known.
        audited_hash: the hash that the run audited, if it audited any; it is recorded only if it is the head.
    """
    audited = {AUDITED: head} if head and head == audited_hash else {}
    return {
        **audited,
        RUN_ID: run_ref.run_id,
        WORKFLOW_ID: run_ref.workflow_id,
        PIPELINE: run_ref.pipeline,
        ATTEMPT: str(run_ref.attempt),
        BASE: base,
        CAUSE: cause,
        REASON: redacted(reason)[:2000],
        EXPIRES: expires,
    }


def merge_message(run_ref: RunRef, tables: list[str]) -> str:
    """Say in one line what the merge publishes."""
    return f"Publish {', '.join(tables)} from {run_ref.pipeline} ({run_ref.workflow_id})"


def certificate(
    request: RunRequest, run_ref: RunRef, report: AuditReport, approvals: Sequence[Decision]
) -> dict[str, str]:
    """Return the properties of the merge commit: who, which run and pipeline, the audited hash, the verdicts."""
    properties = {
        RUN_ID: run_ref.run_id,
        WORKFLOW_ID: run_ref.workflow_id,
        PIPELINE: request.pipeline.name,
        "sluice.pipeline-digest": request.pipeline.digest,
        INPUT: request.input.digest,
        ATTEMPT: str(run_ref.attempt),
        "sluice.starter": request.starter,
        AUDITED: report.audited_hash,
        "sluice.audit-digest": report.digest,
        "sluice.verdicts": report.summary,
    }
    if approvals:
        properties["sluice.approved-by"] = ", ".join(each.by for each in approvals)
        signed = [{**signed_fields(each, run_ref.run_id), "signature": each.signature} for each in approvals]
        properties["sluice.approvals"] = json.dumps(signed, ensure_ascii=False)
    return properties
