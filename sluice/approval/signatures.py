"""Signatures of decisions and of starts, which anybody can verify.

The signature of a decision covers the person, the decision with its reason and waivers, the run, the hash, the report
and the time. The signature of a start covers the run and the time.

Signatures are made with Ed25519 (RFC 8032) over these fields as JSON with sorted keys and no spaces.
"""

import base64
import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from sluice.approval.approvers import Approvers
from sluice.approval.decisions import Decision, is_same_person, person
from sluice.approval.required import ApprovalTerms, RequiredApproval, SignedStart, StartStatement
from sluice.errors import BadEnvironment, InvalidPipeline

_START_AGE = timedelta(minutes=15)
"""Maximum time between a start and its signature, in either order: clocks differ, and a server may be slow."""


def signed_fields(decision: Decision, run_id: str) -> dict[str, object]:
    """Return the fields of a decision about a run that a person signs. Only a decision with waivers lists them."""
    waivers = [waiver.model_dump() for waiver in decision.waivers]
    return {
        "approve": bool(decision.approve),
        "by": decision.by,
        "reason": decision.reason,
        "run_id": run_id,
        "audited_hash": decision.audited_hash,
        "audit_digest": decision.audit_digest,
        "at": decision.said_at,
        **({"waivers": waivers} if waivers else {}),
    }


def signed_text(decision: Decision, run_id: str) -> bytes:
    """Return the bytes that the signature of a decision covers."""
    fields = signed_fields(decision, run_id)
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def signed_decision(statement: str, signature: str, run_id: str) -> Decision:
    """Return the decision that a signed text states, with its signature: the inverse of `signed_text`.

    The signature itself is not verified here: the workers do that, when the decision arrives and before the merge.

    Raises:
        InvalidPipeline: the text is not the one that a decision about this run signs.
    """
    try:
        fields = json.loads(statement)
        stated_run, said_at = str(fields.pop("run_id")), fields.pop("at")
        decision = Decision(**fields, said_at=said_at, signature=signature)
        is_exact = signed_text(decision, stated_run) == statement.encode()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        is_exact = False
    if not is_exact:
        raise InvalidPipeline("the signed text is not that of a decision")
    if stated_run != run_id:
        raise InvalidPipeline(f"the signature is for another run: {stated_run[:100]}")
    return decision


def new_approver_key() -> tuple[str, str]:
    """Return a new private key as PEM, and its public key in the form of the file of approvers."""
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return pem, base64.b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def sign(decision: Decision, run_id: str, pem: str) -> str:
    """Return the signature of a decision about a run.

    Raises:
        BadEnvironment: the PEM is not a private key of Ed25519.
    """
    return base64.b64encode(_private_key(pem).sign(signed_text(decision, run_id))).decode()


def verification_error(decision: Decision, run_id: str, approvers: Approvers | None) -> str:
    """Return the reason why the signature of a decision does not count, or "" if an approver signed it.

    Args:
        approvers: the people who may decide; None means that no signature is needed.
    """
    if approvers is None:
        return ""
    if not approvers.keys:
        return "the file of approvers lists nobody who may decide"
    key = approvers.keys.get(decision.by)
    if key is None:
        return f"{decision.by} is not listed among those who may decide"
    if not decision.signature:
        return "it is not signed: set SLUICE_APPROVAL_KEY_FILE"
    if not _is_signed_by(key, decision.signature, signed_text(decision, run_id)):
        return f"its signature is not {decision.by}'s"
    return ""


def approval_error(
    decisions: Sequence[Decision],
    run_id: str,
    audited_hash: str,
    audit_digest: str,
    required: RequiredApproval,
    approvers: Approvers | None,
) -> str:
    """Return the reason why decisions do not approve a hash, or "" if enough people approved exactly it.

    The workflow verified each decision when it arrived. The merge verifies all of them once more, since a person who
    may start workflows may send any activity input.
    """
    if not required.required:
        return ""
    for decision in decisions:
        error = verification_error(decision, run_id, approvers)
        if decision.audited_hash != audited_hash or not decision.approve:
            error = f"it does not approve {audited_hash[:12]}"
        elif decision.audit_digest != audit_digest:
            error = "it is about another audit report"
        elif required.starter and is_same_person(decision.by, required.starter):
            error = "four eyes are required, and this person started the run"
        if error:
            return f"the approval by {decision.by} does not count: {error}"
    people = len({person(decision.by) for decision in decisions})
    if people >= required.required:
        return ""
    why = f" ({required.why})" if required.why else ""
    return f"{required.required} approvals are required, and there are {people}{why}"


def start_text(statement: StartStatement, at: str) -> bytes:
    """Return the bytes that the signature of a start covers."""
    return json.dumps(
        {"kind": "start", "at": at, **statement.model_dump()}, sort_keys=True, separators=(",", ":")
    ).encode()


def sign_start(statement: StartStatement, at: datetime, pem: str) -> SignedStart:
    """Sign the start of a run.

    Raises:
        BadEnvironment: the PEM is not a private key of Ed25519.
    """
    said_at = at.isoformat(timespec="seconds")
    signature = _private_key(pem).sign(start_text(statement, said_at))
    return SignedStart(at=said_at, signature=base64.b64encode(signature).decode())


def verified_starter(terms: ApprovalTerms, approvers: Approvers) -> str:
    """Return the listed name of the person who signed the start of a run, or "" if no listed person signed it.

    A signature counts only for a start within minutes of it. Repeating an old signature does not start a run as
    somebody else.
    """
    signed, started_at = terms.signed_start, terms.started_at
    if signed is None or not started_at:
        return ""
    try:
        age = abs(datetime.fromisoformat(started_at) - datetime.fromisoformat(signed.at))
    except (ValueError, TypeError):
        return ""
    if age > _START_AGE:
        return ""
    text = start_text(terms.start, signed.at)
    return next((name for name, key in approvers.starters.items() if _is_signed_by(key, signed.signature, text)), "")


def _is_signed_by(key: str, signature: str, text: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(base64.b64decode(key)).verify(base64.b64decode(signature), text)
    except (InvalidSignature, ValueError):
        return False
    return True


def _private_key(pem: str) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadEnvironment("SLUICE_APPROVAL_KEY_FILE contains no private key: `approver-key` makes one") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise BadEnvironment("SLUICE_APPROVAL_KEY_FILE contains no Ed25519 key: `approver-key` makes one")
    return key
