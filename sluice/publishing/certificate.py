"""The certificate: the properties of the merge commit on main, and of commits on branches of runs."""

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
"""What begins the names of Spark settings that Iceberg writes into every snapshot of a session."""
RUN_MARK = "sluice.run-id"
ATTEMPT_MARK = "sluice.attempt"
"""What every snapshot carries in its summary: which run made it, in which attempt."""

RUN_ID = "sluice.run-id"
WORKFLOW_ID = "sluice.workflow-id"
PIPELINE = "sluice.pipeline"
INPUT = "sluice.input-digest"
MANIFEST = "sluice.input-manifest"
"""Where the input manifest lies."""
MANIFEST_DIGEST = "sluice.input-manifest-digest"
INPUT_TABLES = "sluice.input-tables"
"""The tables that the files of the manifest are loaded into, as a JSON array."""
AUDITED = "sluice.audited-hash"
QUARANTINED = "sluice.quarantined-hash"
"""The hash of what a quarantine keeps, whether it was audited or not."""
ATTEMPT = "sluice.attempt"
BASE = "sluice.base"
CAUSE = "sluice.cause"
REASON = "sluice.reason"
EXPIRES = "sluice.expires"
VERDICTS = "sluice.verdicts-digest"
"""The digest of the verdicts in the report: it lies in the lake, where jobs can write, and this commit does not."""
INSTALLATION = "sluice.installation"
"""Whose runs these are, where several installations share a catalog."""
VERIFIED = "sluice.verified-write"
"""What a quarantine holds, as its run verified it; absent where the run failed before."""
TARGET = "sluice.target"
"""On a quarantine: the branch that its run was to publish to, where that is not main."""
RESUMES = "sluice.resumes"
"""On the first commit of a release's branch: the quarantine that holds the rows."""
RELEASED_RUN = "sluice.released-run"
"""On the merge commit of a release: the run that was quarantined."""
ROLLED_BACK = "sluice.rolled-back-runs"
"""On the merge commit of a roll-back: the ids of the runs that it takes back, the newest first, with commas between.
Their input files are free again, unless the roll-back is taken back itself (`runs_taken_back`)."""
REFERENCED = "sluice.referenced-tables"
"""On a merge commit: the tables of main that the run's checks read, with commas between."""
ROLLBACK_PIPELINE = "sluice.rollback-pipeline"
"""On a merge commit: the part of the pipeline that audits a roll-back, as JSON, if it is short."""
AUDIT_DIGEST = "sluice.audit-digest"
"""On a merge commit: the digest of the audit report, which approvals name."""
APPROVALS = "sluice.approvals"
"""On a merge commit: the decisions by which it was approved, with their waivers and signatures, as JSON."""
APPROVED_BY = "sluice.approved-by"
WAIVED_CHECKS = "sluice.waived-checks"
"""On a merge commit: the failed checks under whose waivers it was published, as JSON: which, by whom, until when, why,
and the run that was the first to publish under the waiver."""
GRANTS_WAIVERS = "sluice.grants-waivers"
"""On a merge commit, as `true`: its own approvals waive checks, so that later runs look here for waivers in force."""
METADATA = "sluice.metadata."
"""What begins the names of what a pipeline adds under `publish.metadata`; no property of a certificate begins so."""
GUARANTEE = "sluice.guarantee"
"""What held of the publish of several tables, had a server crashed in its middle."""
REGISTERS = "sluice.registers"
"""On a merge commit, as `true`: its pipeline names targets, so that what they hold is held against main later."""
REGISTERED = "sluice.registered"
"""On a merge commit: the targets that its pipeline names, and its tables, as JSON."""
APPROVED = (
    RUN_ID, WORKFLOW_ID, PIPELINE, ATTEMPT, AUDITED, AUDIT_DIGEST, APPROVED_BY, APPROVALS, WAIVED_CHECKS,
    GRANTS_WAIVERS,
)  # fmt: skip
"""What a merge commit says of approvals and waivers, and whose they are. The merge verifies all of it."""
_MAX_ROLLBACK_PIPELINE = 16 * 1024


def marks(run_ref: RunRef) -> dict[str, str]:
    """Return what every snapshot of an attempt says of who made it."""
    return {RUN_MARK: run_ref.run_id, ATTEMPT_MARK: str(run_ref.attempt), **partition_marks(run_ref)}


def _run_properties(run_ref: RunRef) -> dict[str, str]:
    """Return what every commit says of the run and the attempt that made it."""
    return {
        RUN_ID: run_ref.run_id,
        WORKFLOW_ID: run_ref.workflow_id,
        PIPELINE: run_ref.pipeline,
        ATTEMPT: str(run_ref.attempt),
        **partition_properties(run_ref),
    }


def branch_properties(run_ref: RunRef, installation: str) -> dict[str, str]:
    """Return the properties of the first commit on an attempt's branch: the reaper reads them when the run is gone."""
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
    """Return what the last commit on a quarantined branch says: why it is kept, and until when (ISO 8601).

    Args:
        head: the hash that is kept, where it is known.
        audited_hash: the hash that the run audited, if it audited any; it is recorded only if it is the head.
        input: the `input_properties` of the run: a release asks by them whether it was published meanwhile.
        checks: the verdicts of the run, whose digest is recorded.
        verified: what the run verified to be its whole write; None if it failed before.
        target: the branch that the run was to publish to, where that is not main.
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
    """Return what a commit of a run says of its input: the memory of loaded files is read from it."""
    properties = {INPUT: digest} if digest else {}
    if manifest:
        properties |= {MANIFEST: manifest.location, MANIFEST_DIGEST: manifest.digest}
        properties[INPUT_TABLES] = json.dumps(list(tables))
    return properties


def kept_input_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those properties of a commit that say what the input of its run is, for a later commit of it."""
    return {key: properties[key] for key in (INPUT, MANIFEST, MANIFEST_DIGEST, INPUT_TABLES) if key in properties}


def verified_at(properties: Mapping[str, str], head: str) -> dict[str, str]:
    """Return the properties of a quarantine whose verified write is kept at another hash, by the same tables."""
    if VERIFIED not in properties:
        return dict(properties)
    verified = VerifiedWrite.model_validate_json(properties[VERIFIED])
    return {**properties, VERIFIED: verified.model_copy(update={"head": head}).model_dump_json()}


def stated_options(request: RunRequest) -> PublishOptions:
    """Return what the pipeline of a run says of the merge commit, as far as it is about what the run publishes.

    Its message is about the rows that its own write brings: a release, a requeue and a roll-back have the default one.
    Its metadata goes with its rows, so that a release and a requeue carry it. A roll-back takes rows away and has none.
    """
    options = request.pipeline.publish
    if request.restore:
        return PublishOptions(allow_partial=options.allow_partial)
    moves_rows = request.resume is not None or request.pipeline.write.traits.moves_quarantined_rows
    return options.model_copy(update={"message": ""}) if moves_rows else options


def merge_message(options: PublishOptions, run_ref: RunRef, tables: list[str]) -> str:
    """Return the message of the merge commit: that of the pipeline, or one line that says what is published."""
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
    """Return the properties of the merge commit: who, which run and pipeline, the audited hash, the verdicts.

    Args:
        manifest: the files that it loads, where the run has any.
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
    """Return at which targets the publication is registered, where the pipeline names any."""
    targets, tables = request.pipeline.after_publish, list(request.pipeline.tables)
    if not targets:
        return {}
    return {REGISTERS: "true", REGISTERED: json.dumps({"targets": targets, "tables": tables})}


def approved_properties(
    run_ref: RunRef, head: str, audit_digest: str, approvals: Sequence[Decision], waived: Sequence[WaivedCheck]
) -> dict[str, str]:
    """Return what a merge commit says of the run, the audited hash, and who approved and waived what."""
    return {
        **_run_properties(run_ref),
        AUDITED: head,
        AUDIT_DIGEST: audit_digest,
        **_waiver_properties(run_ref, waived),
        **_approval_properties(run_ref, approvals),
    }


def unapproved_properties(properties: Mapping[str, str], approved: Mapping[str, str]) -> list[str]:
    """Return which properties of a merge commit say of approvals and waivers what is not so.

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
    """Return the decisions that a merge commit records, as they were signed; none where they cannot be read."""
    try:
        recorded = json.loads(properties.get(APPROVALS, "[]"))
        return [Decision.model_validate({**each, "said_at": each["at"], "at": ""}) for each in recorded]
    except (ValueError, TypeError, KeyError):
        return []


def _waiver_properties(run_ref: RunRef, waived: Sequence[WaivedCheck]) -> dict[str, str]:
    """Return what a merge commit says of waivers, for people and for later runs."""
    if not waived:
        return {}
    listed = [each.model_dump(exclude={"index"}) for each in waived]
    is_granted_here = any(each.run_id == run_ref.run_id for each in waived)
    return {
        WAIVED_CHECKS: json.dumps(listed, ensure_ascii=False),
        **({GRANTS_WAIVERS: "true"} if is_granted_here else {}),
    }


def _rollback_properties(request: RunRequest, referenced_tables: Sequence[str]) -> dict[str, str]:
    """Return what a roll-back of this run, or of what it read, is told from main's history by."""
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
