"""Approvals: the signed content of a decision and a start, the signatures that count, and the list of approvers."""

import itertools
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.contrib.pydantic import pydantic_data_converter

from activities.approval.verify_decision import read_approvers
from devstack.stack import ROOT
from sluice.approval.approvers import Approvers, parse_approvers
from sluice.approval.decisions import AwaitedDecision, Decision, refusal
from sluice.approval.required import (
    ApprovalTerms,
    RequiredApproval,
    StartStatement,
    parse_approval_rules,
    required_approval,
)
from sluice.approval.signatures import (
    approval_error,
    new_approver_key,
    sign,
    sign_start,
    signed_decision,
    signed_text,
    verification_error,
    verified_starter,
)
from sluice.approval.waivers import Waiver
from sluice.contracts.existing_rows import Resume
from sluice.contracts.run_request import RunInput, RunRequest
from sluice.errors import BadEnvironment, InvalidPipeline
from sluice.pipeline.file import read_pipeline
from sluice.pipeline.model import Approval

PEM, KEY = new_approver_key()
BEN_PEM, BEN_KEY = new_approver_key()
CI_PEM, CI_KEY = new_approver_key()
APPROVERS = Approvers({"ana": KEY, "ben": BEN_KEY}, {"ci": CI_KEY})
BARE = Decision(approve=True, by="ana", reason="fine", audited_hash="h", audit_digest="d", said_at="noon", at="later")
SIGNED = BARE.model_copy(update={"signature": sign(BARE, "r", PEM)})
BENS = BARE.model_copy(update={"by": "ben"})
BENS = BENS.model_copy(update={"signature": sign(BENS, "r", BEN_PEM)})
NOW = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
START = StartStatement(workflow_id="w", pipeline_digest="p", input_digest="i")
FOUR_EYES = Approval(four_eyes=True)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["run_id", "at", "by", "approve", "waivers"]), inner)
    ),
    max_leaves=10,
)


def terms(pem: str = "", starter: str = "", approval: Approval | None = None, **more: Any) -> ApprovalTerms:
    signed = sign_start(START, NOW, pem) if pem else None
    fields = {"approval": approval, "starter": starter, "start": START, "signed_start": signed}
    return ApprovalTerms.model_validate({**fields, "started_at": NOW.isoformat(), **more})


def test_the_signed_text_is_what_others_can_rebuild_from_the_merge_commit() -> None:
    assert signed_text(BARE, "r") == (
        b'{"approve":true,"at":"noon","audit_digest":"d","audited_hash":"h","by":"ana","reason":"fine","run_id":"r"}'
    )


@given(TEXTS, TEXTS, st.booleans(), st.booleans())
def test_a_signed_text_states_its_decision(reason: str, until: str, approve: bool, waives: bool) -> None:
    waiver = Waiver(table="t.x", check="unique(id)", fingerprint="f", reason=reason, until=until)
    stated = BARE.model_copy(update={"reason": reason, "approve": approve, "waivers": [waiver] if waives else []})
    text = signed_text(stated, "r").decode()
    assert signed_decision(text, "s", "r") == stated.model_copy(update={"at": "", "signature": "s"})


@given(st.text() | JSON.map(json.dumps))
def test_any_other_text_states_no_decision(text: str) -> None:
    with pytest.raises(InvalidPipeline, match="the signed text is not that of a decision"):
        signed_decision(text, "s", "r")


TEXT = signed_text(BARE, "r").decode()


@pytest.mark.parametrize(
    "text",
    [
        f"{TEXT} ",
        TEXT.replace(":", ": ", 1),
        TEXT.replace("true", "null"),
        TEXT.replace("true", "1"),
        TEXT.replace('"r"', "5"),
        TEXT.replace("}", ',"waivers":[]}'),
        TEXT.replace("}", ',"zzz":1}'),
        TEXT.replace('"approve":true', '"approve":false,"approve":true'),
        TEXT.replace("fine", "\\u0066ine"),
        TEXT.replace("fine", "\\ud800"),
        TEXT.replace('"at":"noon",', ""),
        TEXT.replace("}", ',"signature":"forged"}'),
    ],
)
def test_a_text_that_reads_like_a_decision_is_not_one(text: str) -> None:
    with pytest.raises(InvalidPipeline, match="the signed text is not that of a decision"):
        signed_decision(text, "s", "r")


def test_a_signed_text_of_another_run() -> None:
    with pytest.raises(InvalidPipeline, match="the signature is for another run: r"):
        signed_decision(TEXT, "s", "another")


@pytest.mark.parametrize(
    ("changed", "run_id", "why"),
    [
        ({}, "r", ""),
        ({"at": "another time of record"}, "r", ""),
        ({}, "another run", "its signature is not ana's"),
        ({"approve": False}, "r", "its signature is not ana's"),
        ({"audited_hash": "other"}, "r", "its signature is not ana's"),
        ({"audit_digest": "other"}, "r", "its signature is not ana's"),
        ({"by": "ben"}, "r", "its signature is not ben's"),
        ({"by": "zoe"}, "r", "zoe is not listed"),
        ({"by": "ci"}, "r", "ci is not listed"),
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
        ([SIGNED], "h", {"required": 1}, ""),
        ([SIGNED], "newer", {"required": 1}, "the approval by ana does not count: it does not approve newer"),
        ([SIGNED, SIGNED], "h", {"required": 2}, "2 approvals are required, and there are 1"),
        ([SIGNED, BENS], "h", {"required": 2}, ""),
        ([SIGNED, BENS], "h", {"required": 1, "starter": "ana"}, "this person started the run"),
        ([BARE], "h", {"required": 1}, "it is not signed"),
        ([BARE], "h", {"required": 0}, ""),
        ([], "h", {"required": 1, "why": "the worker demands it"}, "there are 0 (the worker demands it)"),
        ([], "h", {"required": 0}, ""),
    ],
)
def test_which_decisions_approve_a_merge(
    decisions: list[Decision], audited_hash: str, required: dict[str, Any], why: str
) -> None:
    error = approval_error(decisions, "r", audited_hash, "d", RequiredApproval.model_validate(required), APPROVERS)
    assert why in error if why else error == ""


def test_a_merge_of_another_report_is_not_approved() -> None:
    error = approval_error([SIGNED], "r", "h", "another digest", RequiredApproval(required=1), APPROVERS)
    assert "it is about another audit report" in error


def test_a_reason_has_a_limit() -> None:
    """It becomes a part of the history, the result and the merge commit of its run."""
    awaited = AwaitedDecision(audited_hash="h", audit_digest="d")
    longest = BARE.model_copy(update={"reason": "x" * 500})
    assert refusal(longest, awaited, [], "waiting for approval") is None
    longer = BARE.model_copy(update={"reason": "x" * 1_000_000})
    why = refusal(longer, awaited, [], "waiting for approval")
    assert why == "the reason has 1,000,000 characters: the limit is 500"


def test_only_without_a_file_of_approvers_nobody_has_to_sign() -> None:
    one = RequiredApproval(required=1)
    assert verification_error(BARE, "r", None) == "" and approval_error([BARE], "r", "h", "d", one, None) == ""
    assert "lists nobody" in verification_error(SIGNED, "r", Approvers())
    assert "lists nobody" in approval_error([SIGNED], "r", "h", "d", one, Approvers())
    assert "lists nobody" in verification_error(SIGNED, "r", Approvers({}, {"ana": KEY}))


def test_the_file_of_approvers() -> None:
    text = f"# who may decide\n\n  # indented\nana {KEY}\nci {CI_KEY} start-only\n"
    assert parse_approvers(text, "file") == Approvers({"ana": KEY}, {"ci": CI_KEY})
    assert parse_approvers("", "file") == parse_approvers("# nobody\n\n", "file") == Approvers()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"ana {KEY}\nben\n", "file:2: write a name and a public key"),
        (f"ana {KEY} approves\n", "file:1: write a name and a public key"),
        (f"ana {KEY}\nANA {BEN_KEY}\n", "file:2: ANA is the same person as in line 1"),
        (f"ana {KEY}\nana@home {BEN_KEY}\n", "file:2: ana@home is the same person as in line 1"),
        (f"ana {KEY}\nben {KEY}\n", r"file:2: ben has the same key as ana \(line 1\): one person would count twice"),
        (f"ana {KEY}\nben {KEY} start-only\n", "ben has the same key as ana"),
        ("ana KEY\n", "file:1: this is not a public key of Ed25519 in base64"),
        (f"ana {KEY[:-4]}\n", "file:1: this is not a public key"),
        (f"ana {KEY}{KEY}\n", "file:1: this is not a public key"),
        (f"@host {KEY}\n", "file:1: '@host' is not a valid name of a person"),
    ],
    ids=itertools.count(),  # the texts have new keys each time, but all processes of one run need the same test ids
)
def test_a_file_of_approvers_that_would_count_wrongly_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadEnvironment, match=why):
        parse_approvers(text, "file")


def test_approvers_that_cannot_be_read_are_no_reason_to_ask_nobody(tmp_path: Path) -> None:
    assert read_approvers("") is None
    (tmp_path / "empty").touch()
    assert read_approvers(str(tmp_path / "empty")) == Approvers()
    for file in (tmp_path / "missing", tmp_path, " "):
        with pytest.raises(BadEnvironment, match="SLUICE_APPROVERS_FILE="):
            read_approvers(str(file))


def test_rules_of_tables_that_need_approval() -> None:
    first, second = parse_approval_rules("finance.*=2, NYC.flights ,")
    assert (first.required, second.required) == (2, 1)
    assert first.matches("finance.a") and first.matches("Finance.sub.b") and not first.matches("refinance.a")
    assert second.matches("nyc.flights") and not second.matches("nyc.flights2")
    assert parse_approval_rules("") == []
    for text in ("finance.*=0", "finance.*=x", "a b", "ns.[a]", "ns.x=100"):
        with pytest.raises(BadEnvironment, match=r"SLUICE_REQUIRE_APPROVAL: .* is not a pattern of tables"):
            parse_approval_rules(text)


@pytest.mark.parametrize(
    ("asked", "rules", "signed", "verified", "required", "excluded"),
    [
        (None, "", False, "", 0, ""),
        (Approval(required=2), "", True, "", 2, ""),
        (FOUR_EYES, "", False, "", 1, "claimed"),
        (FOUR_EYES, "", True, "ana", 1, "ana"),
        (FOUR_EYES, "", True, "", 2, ""),  # one of two approvers did not start it
        (None, "t.*", False, "", 1, "claimed"),
        (None, "t.*", True, "ana", 1, "ana"),
        (None, "t.*=2", True, "", 3, ""),
        (None, "t.*=2, t.x=1", True, "ci", 2, "ci"),
        (None, "t.x=1, t.*=2", True, "ci", 2, "ci"),
        (Approval(required=3), "t.*", True, "ci", 3, "ci"),
        (None, "other.*", True, "", 0, ""),
    ],
)
def test_which_approval_a_run_needs(
    asked: Approval | None, rules: str, signed: bool, verified: str, required: int, excluded: str
) -> None:
    needed = required_approval(
        terms(starter="claimed", approval=asked),
        parse_approval_rules(rules),
        ["t.x", "u.y"],
        signed=signed,
        verified_starter=verified,
    )
    assert (needed.required, needed.starter) == (required, excluded)
    assert needed.signed == (signed and bool(required))


def test_the_starter_is_known_by_the_signature_and_not_by_a_name() -> None:
    assert verified_starter(terms(PEM, starter="ben"), APPROVERS) == "ana"
    assert verified_starter(terms(CI_PEM, starter="ben"), APPROVERS) == "ci"
    assert verified_starter(terms(new_approver_key()[0], starter="ana"), APPROVERS) == ""
    assert verified_starter(terms(starter="ana"), APPROVERS) == ""


@pytest.mark.parametrize(
    "other",
    [
        {"start": START.model_copy(update={"workflow_id": "another"})},
        {"start": START.model_copy(update={"pipeline_digest": "another"})},
        {"start": START.model_copy(update={"input_digest": "another"})},
        {"start": START.model_copy(update={"continues": "a quarantine"})},
        {"started_at": (NOW + timedelta(minutes=16)).isoformat()},
        {"started_at": (NOW - timedelta(minutes=16)).isoformat()},
        {"started_at": ""},
        {"started_at": "soon"},
    ],
)
def test_the_signature_of_another_start_does_not_count(other: dict[str, Any]) -> None:
    """Nobody can copy a signature from a history to start a run as another person."""
    assert verified_starter(terms(PEM, **other), APPROVERS) == ""


@pytest.mark.parametrize("file", sorted((ROOT / "pipelines").glob("*.yml")), ids=lambda file: file.name)
async def test_what_is_signed_of_a_start_is_the_same_after_its_way_through_temporal(file: Path) -> None:
    resume = Resume(branch="quarantine/x", run_id="r", base="b", head="h")
    for more in ({}, {"resume": resume}):
        request = RunRequest(pipeline=read_pipeline(file), input=RunInput(digest="i"), starter="ana", **more)
        payloads = await pydantic_data_converter.encode([request])
        (received,) = await pydantic_data_converter.decode(payloads, [RunRequest])
        assert received.start_statement("w") == request.start_statement("w")
        assert bool(request.start_statement("w").continues) == bool(more)
