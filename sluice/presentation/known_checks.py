"""The checks that exist, from a file that `make docs` makes: the classes of checks take long to import."""

import json
from dataclasses import dataclass
from pathlib import Path

KNOWN_CHECKS = Path(__file__).with_suffix(".json")


@dataclass(frozen=True)
class CheckEntry:
    """One check in the reference."""

    name: str
    meaning: str
    parameters: list[str]
    """Parameters of this check, without those that all checks or all row checks have."""
    row_check: bool
    proof: str
    """Condition under which metadata alone answers the check."""
    aliases: list[str]


def known_checks() -> list[CheckEntry]:
    """Return every check, in the registry's order."""
    return [CheckEntry(**each) for each in json.loads(KNOWN_CHECKS.read_text(encoding="utf-8"))]
