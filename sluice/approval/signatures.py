"""Statements of approval that anybody can verify: who decided what about which run, hash and report, and when.

A statement is signed by Ed25519 (RFC 8032) over its fields as JSON with sorted keys and no spaces.
"""

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from pydantic import ConfigDict

from sluice.base_model import Model
from sluice.errors import BadEnvironment


class Statement(Model):
    """What a person says about one audited hash of one run."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    approve: bool
    by: str
    reason: str = ""
    run_id: str
    audited_hash: str
    audit_digest: str = ""
    at: str
    """When it was said, in ISO 8601."""

    def words(self) -> bytes:
        """Return what is signed."""
        fields = self.model_dump(mode="json")
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def new_key() -> tuple[str, str]:
    """Return a new private key as PEM, and the public key as approvers are listed by."""
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return pem, base64.b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def sign(statement: Statement, pem: str) -> str:
    """Return the signature of a statement.

    Raises:
        BadEnvironment: this is no private key of Ed25519.
    """
    try:
        key = load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadEnvironment("SLUICE_APPROVAL_KEY_FILE holds no private key: `approver-key` makes one") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise BadEnvironment("SLUICE_APPROVAL_KEY_FILE holds no Ed25519 key: `approver-key` makes one")
    return base64.b64encode(key.sign(statement.words())).decode()


def verification_error(statement: Statement, signature: str, approvers: Mapping[str, str]) -> str:
    """Return why a statement does not count, or nothing if its approver signed it.

    Args:
        approvers: by name, the public keys of those who may decide.
    """
    key = approvers.get(statement.by)
    if key is None:
        return f"{statement.by} is not listed among those who may decide"
    if not signature:
        return "it is not signed: set SLUICE_APPROVAL_KEY_FILE"
    try:
        Ed25519PublicKey.from_public_bytes(base64.b64decode(key)).verify(base64.b64decode(signature), statement.words())
    except (InvalidSignature, ValueError):
        return f"its signature is not {statement.by}'s"
    return ""


def read_approvers(file: str) -> dict[str, str]:
    """Return the public keys of those who may decide, by name; a line each, as `name key`.

    Raises:
        BadEnvironment: the file cannot be read, or a line is none.
    """
    if not file:
        return {}
    found = {}
    try:
        lines = Path(file).expanduser().read_text().splitlines()
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadEnvironment(f"SLUICE_APPROVERS_FILE={file}: {why}") from error
    for number, line in enumerate(lines, 1):
        words = line.split()
        if words and not line.startswith("#"):
            if len(words) != 2:
                raise BadEnvironment(f"{file}:{number}: write a name and a public key, as `approver-key` prints them")
            found[words[0]] = words[1]
    return found
