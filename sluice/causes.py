"""The causes for which a run ends without a publication."""

from typing import Literal

Cause = Literal[
    "audit", "rejected", "expired", "cancelled", "error", "invalid", "already_published", "unreachable",
    "nothing_to_do", "checked", "input_changed",
]  # fmt: skip
