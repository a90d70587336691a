"""Waivers in force: failed checks that people waived for a time, as recorded in merge commits on main."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sluice.approval.approvers import Approvers
from sluice.approval.required import RequiredApproval
from sluice.approval.signatures import approval_error
from sluice.approval.waivers import WaivableCheck, WaivedCheck, parse_until
from sluice.approval.waiving import granted_waivers
from sluice.publishing.certificate import recorded_decisions
from sluice.publishing.commit_properties import (
    AUDIT_DIGEST,
    AUDITED,
    GRANTS_WAIVERS,
    INSTALLATION,
    PIPELINE,
    RUN_ID,
    WORKFLOW_ID,
)
from sluice.publishing.quarantine_tables import is_quarantine_table

GRANTED_FOR = "sluice.waivers-granted-for"
"""On a merge commit that grants waivers: by table that it changed, the table's uuid, as JSON. The worker that merges
reads the uuids from the branch."""


def granting_commits(pipeline: str, installation: str) -> dict[str, str]:
    """Return the properties of the merge commits in which runs of an installation's pipeline granted waivers."""
    return {PIPELINE: pipeline, GRANTS_WAIVERS: "true", INSTALLATION: installation}


def describe_granted_for(tables: Mapping[str, str]) -> str:
    """Return the names and uuids of the tables for which a merge commit grants waivers, as JSON.

    Args:
        tables: by table that the commit changes, its uuid. Quarantine tables do not count, because not every run has
            bad rows.
    """
    return json.dumps({name: uuid for name, uuid in sorted(tables.items()) if not is_quarantine_table(name)})


def waivers_of_commit(
    properties: Mapping[str, str],
    checks: Sequence[WaivableCheck],
    required: RequiredApproval,
    approvers: Approvers | None,
    at: datetime,
) -> list[WaivedCheck]:
    """Return those of the failed checks that the approvals of a merge commit waive, if the waivers are in force.

    The publisher verified the approvals before that merge. They are verified again, because waivers of a person who is
    no longer an approver do not count.

    Args:
        required: number of people who must have waived a check for a run that relies on it.
        approvers: the people who may decide; None means that no signature is needed.
        at: time at which the waivers must be in force.
    """
    decisions, run_id = recorded_decisions(properties), properties.get(RUN_ID, "")
    audited, digest = properties.get(AUDITED, ""), properties.get(AUDIT_DIGEST, "")
    if approval_error(decisions, run_id, audited, digest, required, approvers):
        return []
    granted = granted_waivers(decisions, checks, run_id, properties.get(WORKFLOW_ID, ""))
    return [each for each in granted if parse_until(each.until) > at]


def last_to_end(waived: Iterable[WaivedCheck]) -> list[WaivedCheck]:
    """Return, for each check, the waiver that ends last. If several do, return the first."""
    chosen: dict[tuple[str, int], WaivedCheck] = {}
    for each in waived:
        key = (each.table, each.index)
        if key not in chosen or parse_until(each.until) > parse_until(chosen[key].until):
            chosen[key] = each
    return list(chosen.values())
