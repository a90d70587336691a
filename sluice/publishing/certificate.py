"""The certificate: properties of the merge commit on main, and of commits on branches of runs."""

import json
from collections.abc import Mapping, Sequence

from sluice.approval.decisions import Decision
from sluice.approval.signatures import signed_fields
from sluice.approval.waivers import WaivedCheck
from sluice.checks.verdicts import AuditReport, CheckResult, count_verdicts, verdicts_digest
from sluice.contracts.input import ManifestRef
from sluice.contracts.quarantine import VerifiedWrite
from sluice.contracts.references import RunRef
from sluice.contracts.run import RunRequest
from sluice.pipeline.publish_options import PublishOptions
from sluice.publishing.load_properties import partition_marks, partition_properties, requeue_properties
from sluice.publishing.rollback import rollback_pipeline
from sluice.redaction import redacted

SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property."
"""Prefix of the Spark settings that Iceberg writes into every snapshot of a session."""
RUN_MARK = "sluice.run-id"
ATTEMPT_MARK = "sluice.attempt"
"""Properties in the summary of every snapshot: the run and the attempt that made it."""

RUN_ID = "sluice.run-id"
WORKFLOW_ID = "sluice.workflow-id"
PIPELINE = "sluice.pipeline"
INPUT = "sluice.input-digest"
MANIFEST = "sluice.input-manifest"
"""Location of the input manifest."""
MANIFEST_DIGEST = "sluice.input-manifest-digest"
INPUT_TABLES = "sluice.input-tables"
"""Tables into which the files of the manifest are loaded, as a JSON array."""
AUDITED = "sluice.audited-hash"
QUARANTINED = "sluice.quarantined-hash"
"""Hash that a quarantine keeps, audited or not."""
ATTEMPT = "sluice.attempt"
BASE = "sluice.base"
CAUSE = "sluice.cause"
REASON = "sluice.reason"
EXPIRES = "sluice.expires"
VERDICTS = "sluice.verdicts-digest"
"""Digest of the verdicts in the report. Jobs can write to the lake, where the report lies, but not to this commit."""
INSTALLATION = "sluice.installation"
"""Installation of the run: several installations may share a catalog."""
VERIFIED = "sluice.verified-write"
"""Verified write of a quarantine; absent if its run failed before the verification."""
TARGET = "sluice.target"
"""On a quarantine: the branch to which its run was to publish, if not main."""
RESUMES = "sluice.resumes"
"""On the first commit of a release's branch: the quarantine that contains the rows."""
RELEASED_RUN = "sluice.released-run"
"""On the merge commit of a release: the run that was quarantined."""
ROLLED_BACK = "sluice.rolled-back-runs"
"""On the merge commit of a roll-back: the ids of the runs that it takes back, newest first, separated by commas.
Their input files can be loaded again, unless the roll-back itself is rolled back (`runs_taken_back`)."""
REFERENCED = "sluice.referenced-tables"
"""On a merge commit: the tables of main that the run's checks read, separated by commas."""
ROLLBACK_PIPELINE = "sluice.rollback-pipeline"
"""On a merge commit: the part of the pipeline that audits a roll-back, as JSON, if it is short."""
AUDIT_DIGEST = "sluice.audit-digest"
"""On a merge commit: the digest of the audit report, which approvals name."""
APPROVALS = "sluice.approvals"
"""On a merge commit: the decisions that approved it, with their waivers and signatures, as JSON."""
APPROVED_BY = "sluice.approved-by"
WAIVED_CHECKS = "sluice.waived-checks"
"""On a merge commit: the failed checks that were waived, as JSON: check, people, end of the waiver, reason, and the
run that was the first to publish under the waiver."""
GRANTS_WAIVERS = "sluice.grants-waivers"
"""On a merge commit, as `true`: its own approvals waive checks. Later runs search these commits for waivers."""
METADATA = "sluice.metadata."
"""Prefix of the properties that a pipeline adds under `publish.metadata`. No other property begins with it."""
GUARANTEE = "sluice.guarantee"
"""Guarantee for the publish of several tables, for a server crash in the middle of it."""
REGISTERS = "sluice.registers"
"""On a merge commit, as `true`: its pipeline names targets. Later, Sluice compares their tables with main."""
REGISTERED = "sluice.registered"
"""On a merge commit: the targets and the tables that its pipeline names, as JSON."""
APPROVED = (
    RUN_ID, WORKFLOW_ID, PIPELINE, ATTEMPT, AUDITED, AUDIT_DIGEST, APPROVED_BY, APPROVALS, WAIVED_CHECKS,
    GRANTS_WAIVERS,
)  # fmt: skip
"""Properties of a merge commit that name approvals, waivers and their run. The merge verifies all of them."""
_MAX_ROLLBACK_PIPELINE = 16 * 1024


def marks(run_ref: RunRef) -> dict[str, str]:
    """Return the properties that name run, attempt and partition on every snapshot of an attempt."""
    return {RUN_MARK: run_ref.run_id, ATTEMPT_MARK: str(run_ref.attempt), **partition_marks(run_ref)}


def _run_properties(run_ref: RunRef) -> dict[str, str]:
    """Return the properties that name run, attempt and partition on every commit."""
    return {
        RUN_ID: run_ref.run_id,
        WORKFLOW_ID: run_ref.workflow_id,
        PIPELINE: run_ref.pipeline,
        ATTEMPT: str(run_ref.attempt),
        **partition_properties(run_ref),
    }


def branch_properties(run_ref: RunRef, installation: str) -> dict[str, str]:
    """Return the properties of the first commit on an attempt's branch. The reaper reads them if the run is gone."""
    return {**_run_properties(run_ref), INSTALLATION: installation}


def quarantine_properties(
    run_ref: RunRef,
    base: str,
    cause: str,
    reason: str,
    expires: str,
    *,
    head: str = "",
    audited_hash: str | None = None,
    input: Mapping[str, str] | None = None,
    checks: Sequence[CheckResult] = (),
    verified: VerifiedWrite | None = None,
    target: str = "",
) -> dict[str, str]:
    """Return the properties of a quarantine's last commit: the reason to keep the branch, and its expiry (ISO 8601).

    Args:
        head: hash that is kept, if known.
        audited_hash: hash that the run audited, if any. It is recorded only if it is the head.
        input: `input_properties` of the run. With them, a release finds out if the input was published meanwhile.
        checks: verdicts of the run. Their digest is recorded.
        verified: the whole write, as the run verified it; None if the run failed before.
        target: branch to which the run was to publish, if not main.
    """
    audited = {AUDITED: head} if head and head == audited_hash else {}
    return {
        **audited,
        **(input or {}),
        **({VERIFIED: verified.model_dump_json()} if verified else {}),
        **({TARGET: target} if target else {}),
        **_run_properties(run_ref),
        BASE: base,
        CAUSE: cause,
        REASON: redacted(reason)[:2000],
        EXPIRES: expires,
        VERDICTS: verdicts_digest(checks),
    }


def input_properties(digest: str, tables: Sequence[str] = (), manifest: ManifestRef | None = None) -> dict[str, str]:
    """Return the properties of a commit that describe its run's input. Later runs find loaded files by them."""
    properties = {INPUT: digest} if digest else {}
    if manifest:
        properties |= {MANIFEST: manifest.location, MANIFEST_DIGEST: manifest.digest}
        properties[INPUT_TABLES] = json.dumps(list(tables))
    return properties


def kept_input_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a commit that describe its run's input, for a later commit of the run."""
    return {key: properties[key] for key in (INPUT, MANIFEST, MANIFEST_DIGEST, INPUT_TABLES) if key in properties}


def verified_at(properties: Mapping[str, str], head: str) -> dict[str, str]:
    """Return the properties of a quarantine after its verified write moved to another hash, with the same tables."""
    if VERIFIED not in properties:
        return dict(properties)
    verified = VerifiedWrite.model_validate_json(properties[VERIFIED])
    return {**properties, VERIFIED: verified.model_copy(update={"head": head}).model_dump_json()}


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
        **input_properties(request.input.digest, list(request.pipeline.tables), manifest),
        **({ROLLED_BACK: ",".join(run for run in request.restore.runs if run)} if request.restore else {}),
        **approved_properties(run_ref, report.audited_hash, report.digest, approvals, waived),
        **requeue_properties(request.order),
        "sluice.pipeline-digest": request.pipeline.digest,
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
        **_run_properties(run_ref),
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
