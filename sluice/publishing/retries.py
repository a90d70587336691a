"""What a run does after a failed attempt or a conflict: another attempt, a rebase, or a wait in the merge queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sluice.contracts.run import Conflict, Stage

WRITE_STAGES: tuple[Stage, ...] = ("writing", "verifying", "quarantining rows")
"""The stages in which a failed attempt is followed by another, on a new branch."""
MAX_NEVER_STARTED = 10
"""So many attempts may be lost with workers that never started them, and do not count as failed: a paused worker still
takes tasks."""

WaitBeforeRebase = Literal["none", "random delay", "merge slot"]


@dataclass
class AttemptLimit:
    """Counts failed attempts of a run, and decides whether another one is made."""

    attempts: int
    """How often the write may fail."""
    failed: int = 0
    never_started: int = 0

    def allows_another(self, stage: Stage, *, was_never_started: bool, is_retryable: bool) -> bool:
        """Count a failed attempt; return whether another one is made.

        Args:
            stage: where it failed.
            was_never_started: whether it was lost with a worker that never started it.
            is_retryable: whether another attempt may succeed.
        """
        if was_never_started:
            self.never_started += 1
        else:
            self.failed += 1
        is_in_limit = self.failed < self.attempts and self.never_started <= MAX_NEVER_STARTED
        return is_in_limit and stage in WRITE_STAGES and is_retryable


def count_rebases(earlier: Sequence[Conflict]) -> int:
    """Return how many of the earlier conflicts of a run were resolved by a rebase."""
    return sum(conflict.resolved == "rebased" for conflict in earlier)


def conflict_limit_reached(earlier: Sequence[Conflict], max_rebases: int, max_rewrites: int) -> bool:
    """Return whether a run met so many conflicts that it neither rebases nor writes again."""
    rebases = count_rebases(earlier)
    return rebases >= max_rebases or len(earlier) - rebases >= max_rewrites


def wait_before_rebase(earlier: Sequence[Conflict], *, needs_approval: bool, merge_queue: bool) -> WaitBeforeRebase:
    """Decide how a run waits before a rebase, so that runs that conflict again and again publish one by one.

    After its first conflict a run does not wait: most runs meet only one, with a run that has ended by then, and a
    slot costs more than a rebase. A run that waits for people would hold the slot too long: it waits a random time.

    Args:
        earlier: the conflicts before this one.
        needs_approval: whether the run waits for people.
        merge_queue: whether the policy of the run uses the merge queue.
    """
    if not count_rebases(earlier):
        return "none"
    return "random delay" if needs_approval or not merge_queue else "merge slot"
