"""Decide how a run continues after a failed attempt or a conflict: attempt, rebase, or wait in the merge queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sluice.contracts.run import Conflict, Stage
from sluice.errors import Blame, error_class

WRITE_STAGES: tuple[Stage, ...] = ("writing", "verifying", "quarantining rows")
"""Stages in which another attempt follows a failed one, on a new branch."""
WORKER_LOST = "WorkerLost"
"""Kind of failure: no heartbeat of the worker arrived in time. The worker was killed, paused, or cut off."""
WORKER_STOPPED = "WorkerShutdown"
"""Kind of failure: the worker ended the job because the worker was stopped. Temporal's SDK has this name."""
NO_WORKER = "NoWorker"
"""Kind of failure: no worker started the job in time."""
TIMED_OUT = "TimedOut"
"""Kind of failure: the activity took longer than it may. This is the job's own fault."""
MAX_SERVER_CRASHES = 5
"""Maximum number of crashes of a shared Spark server that a run waits out. Further crashes count as its failures."""
MAX_HISTORY_BYTES = 24 * 2**20
"""Size of the history, in bytes, above which no attempt follows. At 50 MiB, Temporal ends the run without a clean-up.
An attempt of the largest pipeline takes 16 MiB, and the end of the run 10."""
_LONGEST_DELAY = 60.0
"""Maximum delay before the next attempt, in seconds; after many losses in a row it is longer."""
_REBASES_BEFORE_PRIORITY = 4
"""Number of rebases after which the next conflict of a run gives it merge priority."""
_MANY_LOSSES, _DELAY_AFTER_MANY = 30, 300.0
"""Number of losses in a row after which delays are longer, and that delay, in seconds. With short delays, a day of
losses would fill the history of the run."""


@dataclass(frozen=True)
class AttemptFailure:
    """The failure of an attempt."""

    kind: str
    """Type of the error that the activity raised, or one of the kinds above."""
    message: str
    is_retryable: bool = True
    """True if another attempt may succeed."""

    @property
    def blame(self) -> Blame:
        """The part that failed. A job that the machine killed, for example for lack of memory, is itself to blame."""
        return "worker" if self.kind in (WORKER_LOST, WORKER_STOPPED) else error_class(self.kind).blame


@dataclass(frozen=True)
class NextAttempt:
    """Decision to make another attempt."""

    is_counted: bool
    """True if the failed attempt counts in the pipeline's `attempts`. Otherwise it was lost and is waited out."""
    delay: float = 0.0
    """Delay before the attempt, in seconds."""


@dataclass
class AttemptLimit:
    """Counter of the failed and lost attempts of a run. It decides if another attempt follows.

    Failures of the job count in `attempts`. Attempts that fail because of workers, services or machines are lost, not
    failed. They are repeated for a limited time, with growing delays.
    """

    attempts: int
    """Number of failures of the job after which no attempt follows."""
    wait: float
    """Time during which lost attempts are repeated, in seconds."""
    failed: int = 0
    lost: int = 0
    server_crashes: int = 0
    _losses_in_a_row: int = 0
    _first_loss: datetime | None = None

    def after(self, failure: AttemptFailure, now: datetime, history_bytes: int = 0) -> NextAttempt | None:
        """Count a failed attempt, and return the next one, or None if no attempt follows.

        Args:
            history_bytes: present size of the run's history, in bytes.
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
        """Restart the time for lost attempts, after a step that succeeded."""
        self._losses_in_a_row, self._first_loss = 0, None

    def _is_counted(self, failure: AttemptFailure) -> bool:
        if failure.blame == "shared server":
            self.server_crashes += 1
            return self.server_crashes > MAX_SERVER_CRASHES
        return failure.blame == "job"


_OPENING_TRIES = 5
_LONGEST_OPENING_DELAY = 5.0
_QUICK_OPENING_TRIES = 20
"""Number of tries to open an attempt before the delays grow further. Short delays for a day would fill the history."""


@dataclass
class OpeningLimit:
    """Limit of a run's tries to open an attempt.

    The run gives up when the catalog was unavailable for some time without interruption. Tries lost with a worker do
    not count towards that time; they have the limit of other steps.
    """

    unavailable: float
    """Time for which the catalog may be unavailable, in seconds."""
    wait: float
    """Time during which tries that are lost with their workers are repeated, in seconds."""
    _unavailable_since: datetime | None = None
    _others: AttemptLimit | None = None
    _tries: int = 0

    def after(self, failure: AttemptFailure, now: datetime) -> float | None:
        """Return the delay before the next try, in seconds, or None if no try follows."""
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
    """Return True if a history of this size, in bytes, has no room for another attempt."""
    return size > MAX_HISTORY_BYTES


def loss_delay(losses: int) -> float:
    """Return the delay after losses in a row, in seconds: 1, 2, 4, and so on to a minute, later five minutes."""
    if losses > _MANY_LOSSES:
        return _DELAY_AFTER_MANY
    return min(_LONGEST_DELAY, 2.0 ** min(losses - 1, 10))


def describe_attempts(attempts: int, lost: int) -> str:
    """Return the number of attempts, and of lost ones that do not count, for a person."""
    return f"{attempts}; {lost} lost with their workers or services, not counted" if lost else str(attempts)


def count_rebases(earlier: Sequence[Conflict]) -> int:
    """Return the number of a run's earlier conflicts that were resolved by a rebase."""
    return sum(conflict.resolved == "rebased" for conflict in earlier)


def conflict_limit_reached(earlier: Sequence[Conflict], max_rebases: int, max_rewrites: int) -> bool:
    """Return True if a run has reached its limit of rebases or of rewrites."""
    rebases = count_rebases(earlier)
    return rebases >= max_rebases or len(earlier) - rebases >= max_rewrites


def needs_merge_slot(rebases: int) -> bool:
    """Return True if a run waits for the merge slot of a table before its next rebase.

    After its first conflict a run does not wait. Most runs meet only one, with a run that has ended by then, and a slot
    costs more than a rebase.
    """
    return rebases > 0


def has_merge_priority(rebases: int) -> bool:
    """Return True if runs without a merge slot let a run with this slot merge first, after its many conflicts."""
    return rebases >= _REBASES_BEFORE_PRIORITY
