"""The certificate: properties of the merge commit on main."""

import json
from collections.abc import Mapping, Sequence

from sluice.approval.decisions import Decision
from sluice.approval.signatures import signed_fields
from sluice.approval.waivers import WaivedCheck
from sluice.checks.verdicts import AuditReport, count_verdicts
from sluice.contracts.references import RunRef
from sluice.contracts.run_request import RunRequest
from sluice.contracts.selected_input import ManifestRef
from sluice.pipeline.publish_options import PublishOptions
from sluice.publishing.branch_properties import input_properties, run_properties
from sluice.publishing.commit_properties import (
    APPROVALS,
    APPROVED,
    APPROVED_BY,
    AUDIT_DIGEST,
    AUDITED,
    GRANTS_WAIVERS,
    GUARANTEE,
    METADATA,
    PIPELINE_DIGEST,
    REFERENCED,
    REGISTERED,
    REGISTERS,
    RELEASED_RUN,
    ROLLBACK_PIPELINE,
    ROLLED_BACK,
    WAIVED_CHECKS,
)
from sluice.publishing.load_properties import requeue_properties
from sluice.publishing.rollback import rollback_pipeline
from sluice.redaction import redacted

_MAX_ROLLBACK_PIPELINE = 16 * 1024


def stated_options(request: RunRequest) -> PublishOptions:
    """Return the pipeline's options for the merge commit, as far as they concern the rows that a run publishes.

    The message describes rows of the pipeline's own write. A release, a requeue and a roll-back have the default one.
    The metadata belongs to the rows, so a release and a requeue have it. A roll-back takes rows away and has none.
    """
    options = request.pipeline.publish
    if request.restore:
        return PublishOptions(allow_partial=options.allow_partial)
    moves_rows = request.resume is not None or request.pipeline.write.traits.moves_quarantined_rows
    return options.model_copy(update={"message": ""}) if moves_rows else options


def merge_message(options: PublishOptions, run_ref: RunRef, tables: list[str]) -> str:
    """Return the message of the merge commit: the pipeline's own, or one line that names the published tables."""
    if options.message:
        return options.message
    return f"Publish {', '.join(tables)} from {run_ref.pipeline} ({run_ref.workflow_id})"


def certificate(
    request: RunRequest,
    run_ref: RunRef,
    report: AuditReport,
    approvals: Sequence[Decision],
    manifest: ManifestRef | None = None,
    referenced_tables: Sequence[str] = (),
    waived: Sequence[WaivedCheck] = (),
    guarantee: str = "atomic",
) -> dict[str, str]:
    """Return the properties of the merge commit: people, run and pipeline, the audited hash, the verdicts.

    Args:
        manifest: the files that the run loads, if any.
        waived: the failed checks that are waived.
    """
    properties = {
        **{METADATA + key: value for key, value in stated_options(request).metadata.items()},
        **input_properties(request.input.digest, list(request.pipeline.tables), manifest, request.input.scope),
        **({ROLLED_BACK: ",".join(run for run in request.restore.runs if run)} if request.restore else {}),
        **approved_properties(run_ref, report.audited_hash, report.digest, approvals, waived),
        **requeue_properties(request.order, request.resume),
        PIPELINE_DIGEST: request.pipeline.digest,
        "sluice.starter": request.starter,
        GUARANTEE: guarantee,
        "sluice.verdicts": count_verdicts(report.checks, len(waived)),
        **_rollback_properties(request, referenced_tables),
        **_registration_properties(request),
    }
    if signed := request.signed_start:
        statement = request.start_statement(run_ref.workflow_id)
        properties["sluice.signed-start"] = json.dumps({**statement.model_dump(), **signed.model_dump()})
    return properties


def _registration_properties(request: RunRequest) -> dict[str, str]:
    """Return the properties that name the targets of registration, if the pipeline has any."""
    targets, tables = request.pipeline.after_publish, list(request.pipeline.tables)
    if not targets:
        return {}
    return {REGISTERS: "true", REGISTERED: json.dumps({"targets": targets, "tables": tables})}


def approved_properties(
    run_ref: RunRef, head: str, audit_digest: str, approvals: Sequence[Decision], waived: Sequence[WaivedCheck]
) -> dict[str, str]:
    """Return the properties of a merge commit that name the run, the audited hash, the approvals and the waivers."""
    return {
        **run_properties(run_ref),
        AUDITED: head,
        AUDIT_DIGEST: audit_digest,
        **_waiver_properties(run_ref, waived),
        **_approval_properties(run_ref, approvals),
    }


def unapproved_properties(properties: Mapping[str, str], approved: Mapping[str, str]) -> list[str]:
    """Return the properties of a merge commit that do not match the verified approvals and waivers.

    Args:
        approved: the `approved_properties` of the merge.
    """
    return sorted(key for key in APPROVED if properties.get(key) != approved.get(key))


def _approval_properties(run_ref: RunRef, approvals: Sequence[Decision]) -> dict[str, str]:
    if not approvals:
        return {}
    decisions = [{**signed_fields(each, run_ref.run_id), "signature": each.signature} for each in approvals]
    return {
        APPROVED_BY: ", ".join(each.by for each in approvals),
        APPROVALS: json.dumps(decisions, ensure_ascii=False),
    }


def recorded_decisions(properties: Mapping[str, str]) -> list[Decision]:
    """Return the decisions that a merge commit records, as they were signed; none if they are unreadable."""
    try:
        recorded = json.loads(properties.get(APPROVALS, "[]"))
        return [Decision.model_validate({**each, "said_at": each["at"], "at": ""}) for each in recorded]
    except (ValueError, TypeError, KeyError):
        return []


def _waiver_properties(run_ref: RunRef, waived: Sequence[WaivedCheck]) -> dict[str, str]:
    """Return the properties of a merge commit that record waivers, for people and for later runs."""
    if not waived:
        return {}
    listed = [each.model_dump(exclude={"index"}) for each in waived]
    is_granted_here = any(each.run_id == run_ref.run_id for each in waived)
    return {
        WAIVED_CHECKS: json.dumps(listed, ensure_ascii=False),
        **({GRANTS_WAIVERS: "true"} if is_granted_here else {}),
    }


def _rollback_properties(request: RunRequest, referenced_tables: Sequence[str]) -> dict[str, str]:
    """Return the properties that a later roll-back, of this run or of tables that it read, finds in main's history."""
    properties = {}
    if referenced_tables:
        properties[REFERENCED] = ",".join(referenced_tables)
    if request.resume:
        properties[RELEASED_RUN] = request.resume.run_id
    audit = rollback_pipeline(request.pipeline, request.pipeline.tables, request.pipeline.tables)
    left_out = {
        "tables": {"__all__": {"checks": {"__all__": {"at"}}}},
        "publish": {"message", "metadata"} if audit.publish.allow_partial else True,
    }
    text = audit.model_dump_json(by_alias=True, exclude=left_out, exclude_none=True)
    if len(text.encode()) <= _MAX_ROLLBACK_PIPELINE and redacted(text) == text:
        properties[ROLLBACK_PIPELINE] = text
    return properties
