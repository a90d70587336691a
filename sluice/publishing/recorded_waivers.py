"""Waivers in force: what merge commits on main say of failed checks that people waived for a time."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sluice.approval.approvers import Approvers
from sluice.approval.required import RequiredApproval
from sluice.approval.signatures import approval_error
from sluice.approval.waivers import WaivableCheck, WaivedCheck, parse_until
from sluice.approval.waiving import granted_waivers
from sluice.publishing.bad_rows import is_quarantine_table
from sluice.publishing.certificate import (
    AUDIT_DIGEST,
    AUDITED,
    GRANTS_WAIVERS,
    INSTALLATION,
    PIPELINE,
    RUN_ID,
    WORKFLOW_ID,
    recorded_decisions,
)

GRANTED_FOR = "sluice.waivers-granted-for"
"""On a merge commit that grants waivers: the uuids of the tables that it changed, by table, as JSON. The worker that
merges reads them from the branch."""


def granting_commits(pipeline: str, installation: str) -> dict[str, str]:
    """Return the properties of the merge commits by which runs of an installation's pipeline granted waivers."""
    return {PIPELINE: pipeline, GRANTS_WAIVERS: "true", INSTALLATION: installation}


def describe_granted_for(tables: Mapping[str, str]) -> str:
    """Return what a merge commit says of the tables for which it grants waivers.

    Args:
        tables: by table that it changes, its uuid. Quarantine tables do not count: not every run has bad rows.
    """
    return json.dumps({name: uuid for name, uuid in sorted(tables.items()) if not is_quarantine_table(name)})


def waivers_of_commit(
    properties: Mapping[str, str],
    checks: Sequence[WaivableCheck],
    required: RequiredApproval,
    approvers: Approvers | None,
    at: datetime,
) -> list[WaivedCheck]:
    """Return which of these failed checks are waived by the approvals of a merge commit, and are so still.

    The publisher verified the approvals before that merge. They are verified again: who is no approver any more waives
    nothing any more.

    Args:
        required: how many people have to have waived a check for a run that relies on it.
        approvers: the people who may decide; None means that no signature is needed.
        at: when the waivers have to hold.
    """
    decisions, run_id = recorded_decisions(properties), properties.get(RUN_ID, "")
    audited, digest = properties.get(AUDITED, ""), properties.get(AUDIT_DIGEST, "")
    if approval_error(decisions, run_id, audited, digest, required, approvers):
        return []
    granted = granted_waivers(decisions, checks, run_id, properties.get(WORKFLOW_ID, ""))
    return [each for each in granted if parse_until(each.until) > at]


def last_to_end(waived: Iterable[WaivedCheck]) -> list[WaivedCheck]:
    """Return for each check the waiver that holds longest; of several, the first."""
    chosen: dict[tuple[str, int], WaivedCheck] = {}
    for each in waived:
        key = (each.table, each.index)
        if key not in chosen or parse_until(each.until) > parse_until(chosen[key].until):
            chosen[key] = each
    return list(chosen.values())
