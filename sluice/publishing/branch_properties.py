"""Properties that name a run, its input and its quarantine, on commits of branches and of main."""

import json
from collections.abc import Mapping, Sequence

from sluice.checks.verdicts import CheckResult, verdicts_digest
from sluice.contracts.quarantine import VerifiedWrite
from sluice.contracts.references import RunRef
from sluice.contracts.selected_input import ManifestRef
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from sluice.publishing.commit_properties import (
    ATTEMPT,
    AUDITED,
    BASE,
    CAUSE,
    EXPIRES,
    INPUT,
    INPUT_TABLES,
    INSTALLATION,
    LOADED_FOR,
    MANIFEST,
    MANIFEST_DIGEST,
    PIPELINE,
    REASON,
    RUN_ID,
    SCOPE,
    TARGET,
    VERDICTS,
    VERIFIED,
    WORKFLOW_ID,
)
from sluice.publishing.load_properties import partition_marks, partition_properties
from sluice.redaction import redacted


def marks(run_ref: RunRef) -> dict[str, str]:
    """Return the properties that name run, attempt and partition on every snapshot of an attempt."""
    return {RUN_ID: run_ref.run_id, ATTEMPT: str(run_ref.attempt), **partition_marks(run_ref)}


def run_properties(run_ref: RunRef) -> dict[str, str]:
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
    return {**run_properties(run_ref), INSTALLATION: installation}


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
    requeued: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the properties of a quarantine's last commit: the reason to keep the branch, and its expiry (ISO 8601).

    Args:
        head: hash that is kept, if known.
        audited_hash: hash that the run audited, if any. It is recorded only if it is the head.
        input: `input_properties` of the run. With them, a release finds out if the input was published meanwhile.
        checks: verdicts of the run. Their digest is recorded.
        verified: the whole write, as the run verified it; None if the run failed before.
        target: branch to which the run was to publish, if not main.
        requeued: `requeue_properties` of the run.
    """
    audited = {AUDITED: head} if head and head == audited_hash else {}
    return {
        **audited,
        **(input or {}),
        **({VERIFIED: verified.model_dump_json()} if verified else {}),
        **({TARGET: target} if target else {}),
        **(requeued or {}),
        **run_properties(run_ref),
        BASE: base,
        CAUSE: cause,
        REASON: redacted(reason)[:2000],
        EXPIRES: expires,
        VERDICTS: verdicts_digest(checks),
    }


def input_properties(
    digest: str, tables: Sequence[str] = (), manifest: ManifestRef | None = None, scope: LoadScope = NO_SCOPE
) -> dict[str, str]:
    """Return the properties of a commit that describe its run's input. Later runs find loads by them."""
    properties = {INPUT: digest} if digest else {}
    if manifest:
        properties |= {MANIFEST: manifest.location, MANIFEST_DIGEST: manifest.digest}
    if properties:
        properties |= {INPUT_TABLES: json.dumps(list(tables))} if tables else {}
        properties |= {SCOPE: scope.content} if scope.content else {}
        properties |= {LOADED_FOR: scope.label} if scope.label else {}
    return properties


def kept_input_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a commit that describe its run's input, for a later commit of the run."""
    names = (INPUT, MANIFEST, MANIFEST_DIGEST, INPUT_TABLES, SCOPE, LOADED_FOR)
    return {key: properties[key] for key in names if key in properties}


def verified_at(properties: Mapping[str, str], head: str) -> dict[str, str]:
    """Return the properties of a quarantine after its verified write moved to another hash, with the same tables."""
    if VERIFIED not in properties:
        return dict(properties)
    verified = VerifiedWrite.model_validate_json(properties[VERIFIED])
    return {**properties, VERIFIED: verified.model_copy(update={"head": head}).model_dump_json()}
