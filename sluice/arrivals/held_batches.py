"""The batches that a landing zone holds, in the order of their arrival, and what becomes of each."""

from collections.abc import Iterable

from sluice.arrivals.limits import room_for_batches
from sluice.contracts.arrivals import Batch, BatchRef
from sluice.contracts.starting import EndedRun

_LONGEST_REASON = 500
_LEAST_TO_SPLIT = 2


class HeldBatches:
    """Batches of which main has not all files: they wait, a run loads them, or they were kept out or set aside."""

    def __init__(self, batches: Iterable[Batch] = ()) -> None:
        self._batches = {batch.ref.id: batch for batch in batches}

    def __contains__(self, id: str) -> bool:
        return id in self._batches

    def __len__(self) -> int:
        return len(self._batches)

    def get(self, id: str) -> Batch | None:
        """Return a batch, if it is held."""
        return self._batches.get(id)

    @property
    def all(self) -> list[Batch]:
        """All batches, the oldest first."""
        return list(self._batches.values())

    @property
    def refs(self) -> list[BatchRef]:
        """Where the files of all batches are listed."""
        return [batch.ref for batch in self._batches.values()]

    @property
    def room(self) -> int:
        """How many more batches the zone takes."""
        return room_for_batches(self._batches.values())

    def count(self, state: str) -> int:
        """Return how many batches are in a state."""
        return sum(batch.state == state for batch in self._batches.values())

    def add(self, refs: Iterable[BatchRef], now: float) -> None:
        """Hold new batches; one that is held already stays as it is."""
        for ref in refs:
            self._batches.setdefault(ref.id, Batch(ref=ref, since=now))

    def remove(self, ids: Iterable[str]) -> None:
        """Hold these batches no more."""
        for id in ids:
            self._batches.pop(id, None)

    def update(self, id: str, **changes: object) -> Batch:
        """Change a batch that is held, and return it."""
        self._batches[id] = self._batches[id].model_copy(update=changes)
        return self._batches[id]

    def keep_out(self, id: str, reason: str) -> None:
        """Hold a batch until a person decides."""
        self.update(id, state="kept out", reason=reason[:_LONGEST_REASON])

    def end(self, ended: EndedRun) -> str:
        """Take how a run ended: return `loaded`, `changed` or `kept out`; nothing if no run of this batch is known.

        Where a file was overwritten or removed under the run, the batch is no more: what is there is collected again.
        """
        batch = self._batches.get(ended.key)
        if batch is None or batch.state != "running":
            return ""
        if ended.is_done or ended.cause == "input_changed":
            del self._batches[ended.key]
            return "loaded" if ended.is_done else "changed"
        self.update(ended.key, workflow_id=ended.workflow_id, run_id=ended.run_id, outcome=ended.outcome)
        self.keep_out(ended.key, ended.reason)
        return "kept out"

    def decide(self, id: str, action: str) -> tuple[Batch, bool]:
        """Retry a batch, or set it aside; return it, and whether its files are collected again."""
        if action == "set aside":
            return self.update(id, state="set aside"), False
        changed = self.update(id, state="waiting")
        if changed.outcome != "refused":
            return changed, False
        del self._batches[id]  # a file of it may be missing: what is there now is collected again
        return changed, True

    def split(self, id: str, halves: Iterable[BatchRef]) -> list[Batch]:
        """Hold batches in the place of another one that waits for a person; return them, or nothing if it does not."""
        if self.problem_of_decision(id):
            return []
        new = [Batch(ref=ref, since=self._batches[id].since) for ref in halves]
        batches = [each for batch in self.all for each in (new if batch.ref.id == id else [batch])]
        self._batches = {batch.ref.id: batch for batch in batches}
        return new

    def problem_of_split(self, id: str) -> str:
        """Return why a batch cannot be split; empty if it can."""
        batch = self._batches.get(id)
        is_single = batch is not None and batch.ref.files < _LEAST_TO_SPLIT
        return self.problem_of_decision(id) or (f"batch {id} has one file: nothing is to split" if is_single else "")

    def problem_of_decision(self, id: str) -> str:
        """Return why no person can decide about a batch now; empty if one can."""
        batch = self._batches.get(id)
        if batch is None:
            return f"there is no batch {id!r} that main does not have"
        return f"batch {id} is {batch.state}: wait for its end" if batch.state in ("running", "waiting") else ""
