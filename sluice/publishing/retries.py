"""What a run does after a failed attempt or a conflict: another attempt, a rebase, or a wait in the merge queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sluice.contracts.run import Conflict, Stage

WRITE_STAGES: tuple[Stage, ...] = ("writing", "verifying", "quarantining rows")
"""The stages in which a failed attempt is followed by another, on a new branch."""
WORKER_LOST = "WorkerLost"
"""The kind of a failure: no heartbeat of the worker arrived in time. It was killed, paused, or cut off."""
WORKER_STOPPED = "WorkerShutdown"
"""The kind of a failure: the worker ended the job because it was asked to stop. Temporal's SDK has this name."""
NO_WORKER = "NoWorker"
"""The kind of a failure: no worker took the job in time."""
TIMED_OUT = "TimedOut"
"""The kind of a failure: the activity took longer than it may. A job that does is at fault itself."""
MAX_SERVER_CRASHES = 5
"""So many crashes of a Spark server that jobs share are waited out; further ones count as the run's own failures."""
MAX_HISTORY_BYTES = 24 * 2**20
"""No attempt follows when the history is larger: at 50 MiB, Temporal ends the run without a clean-up. An attempt of the
largest pipeline takes 16 MiB, and the end of the run 10."""
_LONGEST_DELAY = 60.0
"""In seconds."""
_REBASES_WITHOUT_SLOT = 1
"""A run that was rebased at most so often holds no slot of the merge queue."""
_REBASES_BEFORE_PRIORITY = 4
"""After so many rebases, the next conflict of a run makes it claim merge priority."""
_MANY_LOSSES, _DELAY_AFTER_MANY = 30, 300.0
"""After so many losses in a row, delays are longer: a day of them must not fill the history of the run."""

Blame = Literal["job", "worker", "service", "shared server"]
_BLAME_BY_KIND: dict[str, Blame] = {
    WORKER_LOST: "worker",
    WORKER_STOPPED: "worker",
    "DiskFull": "worker",
    "ServiceUnavailable": "service",
    "CredentialsExpired": "service",
    "SparkServerCrashed": "shared server",
}

WaitBeforeRebase = Literal["none", "random delay", "merge slot"]


@dataclass(frozen=True)
class AttemptFailure:
    """Why an attempt failed."""

    kind: str
    """The type of the error that the activity raised, or one of the kinds above."""
    message: str
    is_retryable: bool = True
    """Whether another attempt may succeed."""

    @property
    def blame(self) -> Blame:
        """What failed. A job that the machine killed, for want of memory or else, is the job's own failure."""
        return _BLAME_BY_KIND.get(self.kind, "job")


@dataclass(frozen=True)
class NextAttempt:
    """Another attempt is to be made."""

    is_counted: bool
    """Whether the failed one counts in the pipeline's `attempts`; else it was lost, and is waited out."""
    delay: float = 0.0
    """How many seconds to wait before it."""


@dataclass
class AttemptLimit:
    """Counts failed and lost attempts of a run, and decides whether another one is made.

    What the job does wrong counts in `attempts`. What workers, services and machines do is waited out: such attempts
    are lost, not failed, and are repeated for a time, with growing delays.
    """

    attempts: int
    """How often the job may fail."""
    wait: float
    """For how many seconds lost attempts are repeated."""
    failed: int = 0
    lost: int = 0
    server_crashes: int = 0
    _losses_in_a_row: int = 0
    _first_loss: datetime | None = None

    def after(self, failure: AttemptFailure, now: datetime, history_bytes: int = 0) -> NextAttempt | None:
        """Count a failed attempt; return the next one, or None if none is made.

        Args:
            history_bytes: how large the history of the run is by now.
        """
        if not failure.is_retryable:
            return None
        if self._is_counted(failure):
            self.failed += 1
            self._losses_in_a_row = 0
            is_over = self.failed >= self.attempts or history_is_full(history_bytes)
            return None if is_over else NextAttempt(is_counted=True)
        self.lost += 1
        self._losses_in_a_row += 1
        self._first_loss = self._first_loss or now
        delay = loss_delay(self._losses_in_a_row)
        is_over = (now - self._first_loss).total_seconds() + delay > self.wait or history_is_full(history_bytes)
        return None if is_over else NextAttempt(is_counted=False, delay=delay)

    def reset_wait(self) -> None:
        """Begin the time for lost attempts again, after a step that succeeded."""
        self._losses_in_a_row, self._first_loss = 0, None

    def _is_counted(self, failure: AttemptFailure) -> bool:
        if failure.blame == "shared server":
            self.server_crashes += 1
            return self.server_crashes > MAX_SERVER_CRASHES
        return failure.blame == "job"


_OPENING_TRIES = 5
_LONGEST_OPENING_DELAY = 5.0
_QUICK_OPENING_TRIES = 20
"""Tries to open an attempt before the delays grow further: a day of short ones would fill the history of the run."""


@dataclass
class OpeningLimit:
    """Decides how long a run tries to open an attempt: as long as the catalog may be unavailable without a break.

    What a lost worker costs is not the catalog's time: it is waited out as elsewhere.
    """

    unavailable: float
    """How many seconds the catalog may be unavailable."""
    wait: float
    """For how many seconds tries that are lost with their workers are repeated."""
    _unavailable_since: datetime | None = None
    _others: AttemptLimit | None = None
    _tries: int = 0

    def after(self, failure: AttemptFailure, now: datetime) -> float | None:
        """Return how many seconds to wait before the next try, or None if none is made."""
        if not failure.is_retryable:
            return None
        self._tries += 1
        delay = min(_LONGEST_OPENING_DELAY, 0.5 * 2.0 ** min(self._tries - 1, 10))
        if self._tries > _QUICK_OPENING_TRIES:
            delay = max(delay, loss_delay(self._tries - _QUICK_OPENING_TRIES))
        if failure.blame == "service" or failure.kind == TIMED_OUT:
            since = self._unavailable_since = self._unavailable_since or now
            return delay if (now - since).total_seconds() + delay <= self.unavailable else None
        self._unavailable_since = None
        self._others = self._others or AttemptLimit(_OPENING_TRIES, self.wait)
        again = self._others.after(failure, now)
        return None if again is None else max(again.delay, delay)


def history_is_full(size: int) -> bool:
    """Return whether a history of so many bytes holds no further attempt."""
    return size > MAX_HISTORY_BYTES


def loss_delay(losses: int) -> float:
    """Return how many seconds to wait after so many losses in a row: 1, 2, 4, and so on to a minute, later five."""
    if losses > _MANY_LOSSES:
        return _DELAY_AFTER_MANY
    return min(_LONGEST_DELAY, 2.0 ** min(losses - 1, 10))


def describe_attempts(attempts: int, lost: int) -> str:
    """Return, for a person, how many attempts there were, and how many of them do not count."""
    return f"{attempts}; {lost} lost with their workers or services, not counted" if lost else str(attempts)


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


def waits_for_priority(rebases: int) -> bool:
    """Return whether a run lets another one with merge priority merge first: those with a merge slot have an order."""
    return rebases <= _REBASES_WITHOUT_SLOT


def may_claim_priority(rebases: int) -> bool:
    """Return whether a run claims merge priority at its next conflict, and so may have it."""
    return rebases >= _REBASES_BEFORE_PRIORITY
