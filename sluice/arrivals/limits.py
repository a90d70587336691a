"""How many batches a landing zone holds."""

from collections.abc import Collection

from sluice.contracts.arrivals import Batch

_MAX_HELD = 500
"""So many batches wait, run or are kept out; then the zone makes no more."""
_MAX_WITH_SET_ASIDE = 2000
"""The same, with those that were set aside."""


def room_for_batches(batches: Collection[Batch]) -> int:
    """Return how many more batches a landing zone takes."""
    undecided = sum(batch.state != "set aside" for batch in batches)
    return max(0, min(_MAX_HELD - undecided, _MAX_WITH_SET_ASIDE - len(batches)))
