"""Limits of the batches of a landing zone."""

from collections.abc import Collection

from sluice.contracts.arrivals import Batch

LEAST_TO_SPLIT = 2
"""Minimum number of files of a batch that can be split."""
_MAX_HELD = 500
"""Maximum number of batches that wait, run or are kept out. A zone that reaches it makes no more."""
_MAX_WITH_SET_ASIDE = 2000
"""Maximum number of batches, including those that were set aside."""


def room_for_batches(batches: Collection[Batch]) -> int:
    """Return the number of further batches that a landing zone accepts."""
    undecided = sum(batch.state != "set aside" for batch in batches)
    return max(0, min(_MAX_HELD - undecided, _MAX_WITH_SET_ASIDE - len(batches)))
