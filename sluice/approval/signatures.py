"""Signatures of decisions, which anybody can verify.

A signature covers who decided what about which run, hash and report, and when.

A decision is signed with Ed25519 (RFC 8032) over its fields as JSON with sorted keys and no spaces.
"""

import base64
import json
from collections.abc import Mapping, Sequence

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from sluice.approval.decisions import Decision
from sluice.errors import BadEnvironment


def signed_fields(decision: Decision, run_id: str) -> dict[str, object]:
    """Return what a person signs of a decision about a run."""
    return {
        "approve": bool(decision.approve),
        "by": decision.by,
        "reason": decision.reason,
        "run_id": run_id,
        "audited_hash": decision.audited_hash,
        "audit_digest": decision.audit_digest,
        "at": decision.said_at,
    }


def signed_text(decision: Decision, run_id: str) -> bytes:
    """Return the bytes that a signature is over."""
    fields = signed_fields(decision, run_id)
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def new_approver_key() -> tuple[str, str]:
    """Return a new private key as PEM, and the public key as the file of approvers lists it."""
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return pem, base64.b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def sign(decision: Decision, run_id: str, pem: str) -> str:
    """Return the signature of a decision about a run.

    Raises:
        BadEnvironment: this is not a private key of Ed25519.
    """
    try:
        key = load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadEnvironment("SLUICE_APPROVAL_KEY_FILE holds no private key: `approver-key` makes one") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise BadEnvironment("SLUICE_APPROVAL_KEY_FILE holds no Ed25519 key: `approver-key` makes one")
    return base64.b64encode(key.sign(signed_text(decision, run_id))).decode()


def verification_error(decision: Decision, run_id: str, approvers: Mapping[str, str]) -> str:
    """Return why the signature of a decision does not count, or "" if an approver signed it.

    Args:
        approvers: by name, the public keys of the people who may decide; empty means that nobody has to sign.
    """
    if not approvers:
        return ""
    key = approvers.get(decision.by)
    if key is None:
        return f"{decision.by} is not listed among those who may decide"
    if not decision.signature:
        return "it is not signed: set SLUICE_APPROVAL_KEY_FILE"
    try:
        public_key = Ed25519PublicKey.from_public_bytes(base64.b64decode(key))
        public_key.verify(base64.b64decode(decision.signature), signed_text(decision, run_id))
    except (InvalidSignature, ValueError):
        return f"its signature is not {decision.by}'s"
    return ""


def approval_error(
    decisions: Sequence[Decision], run_id: str, audited_hash: str, required: int, approvers: Mapping[str, str]
) -> str:
    """Return why these decisions do not approve a hash, or "" if enough approvers signed for exactly it.

    The workflow verified each decision when it arrived. The merge verifies all of them once more, since a person who
    may start workflows may send any activity input.
    """
    if not approvers or not required:
        return ""
    for decision in decisions:
        error = verification_error(decision, run_id, approvers)
        if decision.audited_hash != audited_hash or not decision.approve:
            error = f"it does not approve {audited_hash[:12]}"
        if error:
            return f"the approval by {decision.by} does not count: {error}"
    people = len({decision.by for decision in decisions})
    return f"{required} approvals are required, and there are {people}" if people < required else ""


def parse_approvers(text: str, file: str) -> dict[str, str]:
    """Return the public keys of the people who may decide, by name; a line each, as `name key`.

    Raises:
        BadEnvironment: a line is something else.
    """
    approvers = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if words and not line.startswith("#"):
            if len(words) != 2:
                raise BadEnvironment(f"{file}:{number}: write a name and a public key, as `approver-key` prints them")
            approvers[words[0]] = words[1]
    return approvers
