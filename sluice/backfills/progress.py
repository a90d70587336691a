"""A backfill: choose the next partition, apply the stop rule, pause, resume and retry."""

from collections import Counter
from collections.abc import Sequence
from typing import get_args

from sluice.backfills.partitions import MAX_PARTITIONS
from sluice.contracts.backfill import BackfillState, PartitionNote, PartitionState
from sluice.contracts.starting import EndedRun
from sluice.errors import InvalidPipeline
from sluice.lines import joined_lines, shortened_line
from sluice.pipeline.loading_order import out_of_order

LETTERS: dict[PartitionState, str] = dict(zip(get_args(PartitionState), "wrpkfcs", strict=True))
"""Letter for each state of a partition."""
_STATES = {letter: state for state, letter in LETTERS.items()}
_WAITING, _RUNNING = LETTERS["waiting"], LETTERS["running"]
FAILURES: tuple[PartitionState, ...] = ("kept out", "failed")
"""States that count for the stop rule."""
_OPEN: tuple[PartitionState, ...] = (*FAILURES, "cancelled")
"""States of partitions that a retry starts again."""
DONE: tuple[PartitionState, ...] = ("published", "skipped")
"""States of partitions that were published, by this backfill or before."""
_ASKED_AGAIN: tuple[PartitionState, ...] = (*_OPEN, *DONE)
"""States of partitions that a repeated start of the backfill starts again. Main may have lost finished partitions."""
_MAX_NOTES = 200
_MAX_REASON = 700
"""Maximum length of a reason, in characters. The remedy is at its end."""


def _kind(note: PartitionNote) -> tuple[str, str | None]:
    """Return the outcome and cause of a partition's run. Exit codes depend on both."""
    return note.outcome, note.cause


def partition_states(state: BackfillState) -> dict[str, PartitionState]:
    """Return the state of each partition of a backfill, in the order of the backfill."""
    letters = state.letters or _WAITING * len(state.partitions)
    return {name: _STATES[letter] for name, letter in zip(state.partitions, letters, strict=True)}


def count_states(state: BackfillState) -> Counter[PartitionState]:
    """Return the number of partitions of a backfill in each state."""
    return Counter(partition_states(state).values())


def state_of(ended: EndedRun) -> PartitionState:
    """Return the state of a partition whose run has ended or could not be started."""
    if ended.outcome == "published":
        return "published"
    if ended.is_done:
        return "skipped"
    if ended.outcome == "cancelled":
        return "cancelled"
    return "kept out" if ended.cause in ("audit", "rejected", "expired") else "failed"


class BackfillProgress:
    """The partitions of a backfill and the state of each. This class only decides; it starts no runs."""

    def __init__(self, state: BackfillState) -> None:
        self._partitions = list(state.partitions)
        self._letters = state.letters or _WAITING * len(state.partitions)
        self._positions = {name: position for position, name in enumerate(state.partitions)}
        self._asked_at = dict(state.asked_at)
        self._notes = dict(state.notes)
        self._rest = state

    @property
    def state(self) -> BackfillState:
        """Present state of the backfill."""
        update = {"partitions": list(self._partitions), "letters": self._letters, "notes": dict(self._notes)}
        return self._rest.model_copy(update={**update, "asked_at": dict(self._asked_at)})

    @property
    def running(self) -> list[str]:
        """Running partitions, in the order of the backfill."""
        return self._in_state(_RUNNING)

    @property
    def waiting(self) -> list[str]:
        """Waiting partitions, in the order of the backfill."""
        return self._in_state(_WAITING)

    def _in_state(self, wanted: str) -> list[str]:
        return [name for name, letter in zip(self._partitions, self._letters, strict=True) if letter == wanted]

    @property
    def paused(self) -> str:
        """Reason for the pause; empty if the backfill is not paused."""
        return self._rest.paused

    @property
    def has_ended(self) -> bool:
        """True if no partition waits or runs."""
        return _WAITING not in self._letters and _RUNNING not in self._letters

    @property
    def is_complete(self) -> bool:
        """True if every partition was published, by this backfill or before."""
        return set(self._letters) <= {LETTERS[state] for state in DONE}

    @property
    def is_stuck(self) -> bool:
        """True if no partition waits or runs, but some are not done. They can be retried."""
        return self.has_ended and not self.is_complete

    def next_partition(self) -> str | None:
        """Return the partition to start now, or None if none may start."""
        if self.paused or self._letters.count(_RUNNING) >= self._rest.window:
            return None
        position = self._letters.find(_WAITING)
        if position < 0 or (self._rest.in_order and self._first_open() < position):
            return None
        return self._partitions[position]

    def _first_open(self) -> int:
        """Return the position of the first partition that is not done, or the number of partitions if all are done."""
        done = {LETTERS[state] for state in DONE}
        return next((index for index, letter in enumerate(self._letters) if letter not in done), len(self._letters))

    @property
    def resume_problem(self) -> str:
        """Reason why `resume` is refused: an earlier partition failed or was kept out. Empty if it is possible."""
        position = self._first_open()
        if not self._rest.in_order or position >= len(self._letters):
            return ""
        state = _STATES[self._letters[position]]
        if state not in _OPEN:
            return ""
        return (
            f"{self._partitions[position]} is {state}, and no later partition may run before it: `backfill retry` "
            "begins it again"
        )

    def window_problem(self, window: int) -> str:
        """Return the reason why a window of this size is not possible, or an empty string."""
        if window <= 1 or not self._rest.in_order:
            return ""
        return "the order of the partitions matters, so they run one at a time"

    def started(self, partition: str, asked_at: str = "") -> None:
        """Record that a partition runs.

        Args:
            asked_at: time at which its run was requested, in ISO 8601.
        """
        self._set(partition, "running")
        self._asked_at[partition] = asked_at

    def forget_askers(self) -> None:
        """Forget who requested single partitions. The starter of the backfill then counts for all of them."""
        self._change(askers={})

    def asked_at(self, partition: str) -> str:
        """Return the time at which the run of a running partition was requested, in ISO 8601."""
        return self._asked_at.get(partition, "")

    def is_running(self, partition: str) -> bool:
        """Return True if a partition of this name runs."""
        position = self._positions.get(partition)
        return position is not None and self._letters[position] == _RUNNING

    def ended(self, ended: EndedRun) -> None:
        """Record the end of a partition's run. A repeated report changes nothing."""
        if not self.is_running(ended.key):
            return
        state = state_of(ended)
        if state == "skipped" and ended.key in self._rest.rechecked:
            state = "published"
        self._set(ended.key, state)
        self._asked_at.pop(ended.key, None)
        rechecked = [name for name in self._rest.rechecked if name != ended.key]
        self._change(rechecked=rechecked, rows_added=self._rest.rows_added + ended.rows_added)
        if state in DONE:
            return
        self._keep_note(ended)
        if state in FAILURES:
            self._change(failures=self._rest.failures + 1)
            self._apply_stop_rule()
        if self._rest.in_order and not self.paused and _WAITING in self._letters:
            self.pause(f"since {ended.key} is {state}, and no later partition may run before it")

    def pause(self, why: str) -> None:
        """Start no partition until the backfill is resumed. Running partitions continue."""
        self._change(paused=why)

    def pause_if_stuck(self) -> None:
        """Pause a backfill that publishes its partitions together if some are missing, until they are retried."""
        if self.is_stuck and not self.paused:
            missing = sum(_STATES[letter] not in DONE for letter in self._letters)
            self.pause(
                f"since {missing} of {len(self._letters)} partitions are missing, and all are published together"
            )

    def resume(self) -> None:
        """Start partitions again, and count failures from now on."""
        self._change(paused="", failures=0)

    def set_window(self, window: int) -> None:
        """Change the number of partitions that run at a time. Running partitions continue."""
        self._change(window=window)

    def add(self, partitions: Sequence[str], asked_by: str = "", *, recheck: bool = False) -> None:
        """Add partitions at the end. Partitions that are in the backfill and not done wait again.

        Args:
            asked_by: person who requests them, if not the starter of the backfill.
            recheck: let partitions that are done wait again, too.

        Raises:
            InvalidPipeline: there would be too many partitions, or one would be out of order.
        """
        further = [name for name in partitions if name not in self._positions]
        self._check_order(further)
        if len(self._partitions) + len(further) > MAX_PARTITIONS:
            raise InvalidPipeline(
                f"the backfill under way has {len(self._partitions):,} partitions, and {len(further):,} more would "
                f"exceed the limit of {MAX_PARTITIONS:,}: wait for its end"
            )
        again = _ASKED_AGAIN if recheck else _OPEN
        begun = self._begin_again([name for name in partitions if name in self._positions], again)
        askers = {**self._rest.askers, **{name: asked_by for name in (*begun, *further) if asked_by}}
        self._change(askers=askers)
        for name in further:
            self._positions[name] = len(self._partitions)
            self._partitions.append(name)
        self._letters += _WAITING * len(further)
        self.resume()
        if problem := self.resume_problem:
            self.pause(f"since {problem}")

    def retry(self) -> None:
        """Let partitions wait again if they failed, were kept out or were cancelled."""
        self._begin_again(self._partitions, _OPEN)
        self.resume()

    def cancel(self) -> None:
        """Cancel the partitions that wait. A backfill that ends is not paused."""
        for name in self._rest.rechecked:
            if self._letters[self._positions[name]] == _WAITING:
                self._set(name, "published")
        self._change(paused="", rechecked=[])
        self._letters = self._letters.replace(_WAITING, LETTERS["cancelled"])

    def _check_order(self, further: Sequence[str]) -> None:
        """Check that partitions added at the end are younger than the existing ones.

        Raises:
            InvalidPipeline: one is older, and the order of the partitions matters.
        """
        if self._rest.in_order and (pair := out_of_order([*self._partitions, *further])):
            older, younger = pair
            raise InvalidPipeline(
                f"{older} is older than {younger} of the backfill under way, and the order of its partitions matters: "
                f"wait for the end of the backfill, and then start a run for {older} alone"
            )

    def _begin_again(self, partitions: Sequence[str], states: Sequence[PartitionState]) -> list[str]:
        """Let each of these partitions that is in one of these states wait again; return the changed partitions."""
        begun = [name for name in partitions if _STATES[self._letters[self._positions[name]]] in states]
        published = [name for name in begun if self._letters[self._positions[name]] == LETTERS["published"]]
        self._change(rechecked=[*self._rest.rechecked, *published])
        for name in begun:
            self._set(name, "waiting")
            self._notes.pop(name, None)
        return begun

    def _apply_stop_rule(self) -> None:
        limit, failures = self._rest.stop_after, self._rest.failures
        if limit and failures >= limit and not self.paused and _WAITING in self._letters:
            self.pause(f"after {failures} of its partitions failed or were kept out (--stop-after {limit})")

    def _set(self, partition: str, state: PartitionState) -> None:
        position = self._positions[partition]
        self._letters = self._letters[:position] + LETTERS[state] + self._letters[position + 1 :]

    def _keep_note(self, ended: EndedRun) -> None:
        self._notes.pop(ended.key, None)
        self._notes[ended.key] = PartitionNote(
            outcome=ended.outcome,
            cause=ended.cause,
            reason=shortened_line(joined_lines(ended.reason), _MAX_REASON),
            workflow_id=ended.workflow_id,
            run_id=ended.run_id,
        )
        if len(self._notes) > _MAX_NOTES:  # one note of each kind stays: the exit code depends on it
            ((kind, _),) = Counter(map(_kind, self._notes.values())).most_common(1)
            del self._notes[next(name for name, note in self._notes.items() if _kind(note) == kind)]

    def _change(self, **fields: object) -> None:
        self._rest = self._rest.model_copy(update=fields)
