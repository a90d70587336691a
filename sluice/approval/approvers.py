"""The file of approvers: the people whose keys count for approvals and for starts.

Each person has one line: `name key`, or `name key start-only` for a person who may start runs and not approve them. A
file without a key lists nobody, and then nobody can approve. Decisions are unsigned only if the setting is unset.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field

from sluice.approval.decisions import person
from sluice.errors import BadEnvironment

_KEY_BYTES = 32
_START_ONLY = "start-only"


@dataclass(frozen=True)
class Approvers:
    """Public keys by name: of the people who may approve, and of those who may only start runs."""

    keys: Mapping[str, str] = field(default_factory=dict)
    start_only: Mapping[str, str] = field(default_factory=dict)

    @property
    def starters(self) -> dict[str, str]:
        """Keys of all people whose signature on a start counts, by name."""
        return {**self.keys, **self.start_only}


def parse_approvers(text: str, file: str) -> Approvers:
    """Return the people listed in a file of approvers.

    Raises:
        BadEnvironment: a line has another form, or a person or key is listed twice.
    """
    keys: dict[str, str] = {}
    start_only: dict[str, str] = {}
    names: dict[str, int] = {}
    owners: dict[bytes, tuple[str, int]] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) not in (2, 3) or words[2:] not in ([], [_START_ONLY]):
            raise BadEnvironment(
                f"{file}:{number}: write a name and a public key, as `approver-key` prints them; add `{_START_ONLY}` "
                "for a person who may start runs but not decide"
            )
        name, key = words[:2]
        if not person(name):
            raise BadEnvironment(f"{file}:{number}: {name!r} is not a valid name of a person")
        first = names.setdefault(person(name), number)
        if first != number:
            raise BadEnvironment(
                f"{file}:{number}: {name} is the same person as in line {first}: case and the part after an @ make no "
                "difference. List each person once"
            )
        raw = _public_key(key, f"{file}:{number}")
        owner, line_of_owner = owners.setdefault(raw, (name, number))
        if line_of_owner != number:
            raise BadEnvironment(
                f"{file}:{number}: {name} has the same key as {owner} (line {line_of_owner}): one person would count "
                "twice. Give each person a key of their own"
            )
        (start_only if words[2:] else keys)[name] = key
    return Approvers(keys, start_only)


def _public_key(key: str, where: str) -> bytes:
    try:
        raw = base64.b64decode(key, validate=True)
    except binascii.Error:
        raw = b""
    if len(raw) != _KEY_BYTES:
        raise BadEnvironment(
            f"{where}: this is not a public key of Ed25519 in base64, as `approver-key` prints it: {key[:60]!r}"
        )
    return raw
