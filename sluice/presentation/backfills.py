"""States of the partitions of a backfill, as people and scripts read them."""

from collections import Counter

from sluice.backfills.progress import count_states
from sluice.contracts.backfill import BackfillStatus, PartitionState


def shown_state(status: BackfillStatus, state: PartitionState) -> str:
    """Return the label of a partition's state: "collected" until a joint publish, since main has nothing of it yet."""
    is_on_main = status.together is None or (status.together.ended is not None and status.together.ended.is_done)
    return "collected" if state == "published" and not is_on_main else state


def shown_counts(status: BackfillStatus) -> Counter[str]:
    """Return the number of partitions by the label of their state."""
    counts: Counter[str] = Counter()
    for state, number in count_states(status.progress).items():
        counts[shown_state(status, state)] += number
    return counts
