"""Approvals: what is signed of a decision, which signatures count, and who is listed as an approver."""

from typing import Any

import pytest

from sluice.approval.decisions import Decision
from sluice.approval.signatures import (
    approval_error,
    new_approver_key,
    parse_approvers,
    sign,
    signed_text,
    verification_error,
)
from sluice.errors import BadEnvironment

PEM, KEY = new_approver_key()
APPROVERS = {"ana": KEY, "ben": new_approver_key()[1]}
BARE = Decision(approve=True, by="ana", reason="fine", audited_hash="h", audit_digest="d", said_at="noon", at="later")
SIGNED = BARE.model_copy(update={"signature": sign(BARE, "r", PEM)})


def test_the_signed_text_is_what_others_can_rebuild_from_the_merge_commit() -> None:
    assert signed_text(BARE, "r") == (
        b'{"approve":true,"at":"noon","audit_digest":"d","audited_hash":"h","by":"ana","reason":"fine","run_id":"r"}'
    )


@pytest.mark.parametrize(
    ("changed", "run_id", "why"),
    [
        ({}, "r", ""),
        ({"at": "another time of record"}, "r", ""),
        ({}, "another run", "its signature is not ana's"),
        ({"approve": False}, "r", "its signature is not ana's"),
        ({"audited_hash": "other"}, "r", "its signature is not ana's"),
        ({"by": "ben"}, "r", "its signature is not ben's"),
        ({"by": "zoe"}, "r", "zoe is not listed"),
        ({"signature": ""}, "r", "it is not signed"),
        ({"signature": "nonsense"}, "r", "its signature is not ana's"),
    ],
)
def test_which_signatures_count(changed: dict[str, Any], run_id: str, why: str) -> None:
    error = verification_error(SIGNED.model_copy(update=changed), run_id, APPROVERS)
    assert why in error if why else error == ""


@pytest.mark.parametrize(
    ("decisions", "audited_hash", "required", "why"),
    [
        ([SIGNED], "h", 1, ""),
        ([SIGNED], "newer", 1, "the approval by ana does not count: it does not approve newer"),
        ([SIGNED, SIGNED], "h", 2, "2 approvals are required, and there are 1"),
        ([BARE], "h", 1, "it is not signed"),
        ([], "h", 0, ""),
    ],
)
def test_which_decisions_approve_a_merge(decisions: list[Decision], audited_hash: str, required: int, why: str) -> None:
    error = approval_error(decisions, "r", audited_hash, required, APPROVERS)
    assert why in error if why else error == ""


def test_without_approvers_nobody_has_to_sign() -> None:
    assert verification_error(BARE, "r", {}) == "" and approval_error([BARE], "r", "h", 1, {}) == ""


def test_the_file_of_approvers() -> None:
    assert parse_approvers("# who may decide\n\nana KEY\n", "file") == {"ana": "KEY"}
    with pytest.raises(BadEnvironment, match="file:2: write a name and a public key"):
        parse_approvers("ana KEY\nben\n", "file")
