"""Authentication and authorization of the local Nessie: a key, a token for each role, and the access rules.

Source: Nessie's documentation of authentication and authorization. There is no identity provider: the server has only
the public key, and uses a token's groups as roles.
"""

import time
from collections.abc import Mapping
from pathlib import Path

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

_FOLDER = "identity"
_YEARS = 10
ROLES = ("reader", "writer", "publisher")
_READ = (
    "['VIEW_REFERENCE', 'LIST_COMMIT_LOG', 'READ_ENTRIES', 'READ_CONTENT_KEY', 'READ_ENTITY_VALUE', "
    "'READ_REPOSITORY_CONFIG']"
)
_CHANGE = "['COMMIT_CHANGE_AGAINST_REFERENCE', 'CREATE_ENTITY', 'UPDATE_ENTITY', 'DELETE_ENTITY', 'READ_ENTITY_VALUE']"
RULES = {
    "read": f"op in {_READ}",
    "write": f"'writer' in roles && op in {_CHANGE} && ref.matches('^wap/.+')",
    "publish": f"'publisher' in roles && op in {_CHANGE} && ref.matches('^({{main}}|(wap|quarantine|sluice)/.+)$')",
    "manage": "'publisher' in roles && op in ['CREATE_REFERENCE', 'DELETE_REFERENCE', 'ASSIGN_REFERENCE_TO_HASH'] "
    "&& ref.matches('^(wap|quarantine|sluice)/.+')",
}
"""Access rules by name. Every token may read. Each other rule is for one role."""


def token_file(home: Path, role: str) -> Path:
    """Return the path of the token file of a role."""
    return home / _FOLDER / f"{role}.jwt"


def variables(home: Path) -> dict[str, str]:
    """Return the environment variables that name Sluice's token files."""
    return {
        "NESSIE_WRITER_TOKEN_FILE": str(token_file(home, "writer")),
        "NESSIE_PUBLISHER_TOKEN_FILE": str(token_file(home, "publisher")),
    }


def make_identities(home: Path) -> None:
    """Create a key, and a token for each role, if they are missing. Only their owner can read the files."""
    folder = home / _FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key_file = folder / "key.pem"
    if not key_file.exists():
        write_private(key_file, _pem(rsa.generate_private_key(65537, 2048)))
    for role in ROLES:
        if not token_file(home, role).exists():
            now = int(time.time())
            claims = {"sub": role, "upn": f"sluice-{role}", "groups": [role], "iat": now}
            claims |= {"exp": now + _YEARS * 365 * 86400}  # Nessie refuses a token without an expiry
            write_private(token_file(home, role), jwt.encode(claims, key_file.read_text(), algorithm="RS256"))


def nessie_settings(home: Path, main: str = "main") -> Mapping[str, str]:
    """Return the Java system properties that switch authentication and the access rules on."""
    key = serialization.load_pem_private_key((home / _FOLDER / "key.pem").read_bytes(), None)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    rules = {f"nessie.server.authorization.rules.{name}": rule.format(main=main) for name, rule in RULES.items()}
    return {
        "nessie.server.authentication.enabled": "true",
        "nessie.server.authorization.enabled": "true",
        "quarkus.oidc.tenant-enabled": "true",
        "quarkus.oidc.public-key": "".join(public.decode().splitlines()[1:-1]),
        "quarkus.oidc.roles.role-claim-path": "groups",
        **rules,
    }


def _pem(key: rsa.RSAPrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def write_private(file: Path, text: str) -> None:
    """Write a file atomically that only its owner can read."""
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    new.write_text(text)
    new.replace(file)
