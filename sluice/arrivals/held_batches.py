"""Batches of a landing zone in the order of their arrival, and the changes of their state."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sluice.arrivals.batch_order import BatchOrder, describe_overtaken_batch, describe_overtaken_files
from sluice.arrivals.limits import LEAST_TO_SPLIT, room_for_batches
from sluice.contracts.arrivals import Age, Batch, BatchRef, BatchState
from sluice.contracts.starting import EndedRun
from sluice.contracts.zone_loads import LoadBatch
from sluice.contracts.zone_requests import BatchCommand, SplitBatch
from sluice.lines import shortened_line

_LONGEST_REASON = 500
_LONGEST_REASON_SET_ASIDE = 160
"""Maximum length of the reason of a batch that is set aside, in characters.

Thousands of batches may be set aside, and one message contains all of them when the zone continues as new.
"""
_ANY = "any"
_MOST_CHANGES = 3
"""Number of successive changes of the same files during their runs after which a person decides.

Until then, the zone collects the files again.
"""
_MOST_CHANGES_OF_ANY = 10
"""Number of successive changes of any files during their runs after which a person decides. A file that keeps changing
may be in a batch with other new files each time."""
_REMEMBERED = 100
"""Maximum number of remembered sets of paths that changed under a run."""


def decided_states(batches: Iterable[Batch]) -> dict[str, BatchState]:
    """Return the state of each batch that is kept out or set aside, by its id."""
    return {each.ref.id: each.state for each in batches if each.state in ("kept out", "set aside")}


class HeldBatches:
    """Batches whose files are not all on main: they wait, run, or were kept out or set aside."""

    def __init__(
        self,
        batches: Iterable[Batch] = (),
        changes: Mapping[str, int] = MappingProxyType({}),
        order: BatchOrder | None = None,
    ) -> None:
        self._batches = {batch.ref.id: batch for batch in batches}
        self.order = order or BatchOrder()
        self._unreported: list[str] = []
        self.changes = dict(changes)
        """Number of successive changes of files during their runs, by the paths of the batch and for all batches
        together."""

    def __contains__(self, id: str) -> bool:
        return id in self._batches

    def __len__(self) -> int:
        return len(self._batches)

    def get(self, id: str) -> Batch | None:
        """Return a batch; None if the zone does not have it."""
        return self._batches.get(id)

    @property
    def all(self) -> list[Batch]:
        """All batches, oldest first; one that a person named comes last."""
        return list(self._batches.values())

    @property
    def refs(self) -> list[BatchRef]:
        """References to the lists of files of all batches."""
        return [batch.ref for batch in self._batches.values()]

    @property
    def limits(self) -> list[Age]:
        """Ages of the youngest loaded file, and of the youngest file of each batch that waits or runs, sorted."""
        batches = [each.ref.newest for each in self.all if each.state in ("waiting", "running")]
        return sorted({self.order.loaded_until, *batches})

    @property
    def decisions(self) -> dict[str, BatchState]:
        """State of each batch that waits for a person or that a person set aside, by its id."""
        return decided_states(self._batches.values())

    @property
    def room(self) -> int:
        """Number of further batches that the zone accepts."""
        return room_for_batches(self._batches.values())

    def count(self, state: str) -> int:
        """Return the number of batches in a state."""
        return sum(batch.state == state for batch in self._batches.values())

    def waiting(self, *, in_order: bool) -> list[Batch]:
        """Return the batches that wait, in the order of their start.

        Args:
            in_order: true if the order matters. Then the order is that of the files' arrival: a batch that a person
                retried or named may be older, or younger, than the batches around it.
        """
        waiting = [each for each in self.all if each.state == "waiting"]
        return sorted(waiting, key=lambda each: each.ref.oldest) if in_order else waiting

    def add(self, refs: Iterable[BatchRef], now: float, *, in_order: bool = False) -> None:
        """Add new batches. A batch that the zone already has stays as it is.

        If the order matters, a new batch is loaded before younger ones that wait. If a younger one was loaded, the new
        batch is kept out.

        If a batch was kept out because its files changed, a new batch of the same paths replaces it, and is kept out
        for the same reason.
        """
        outdated = {batch.ref.paths: batch for batch in self.all if batch.is_outdated and batch.state == "kept out"}
        for ref in refs:
            if ref.id not in self._batches and ref.paths and (former := outdated.get(ref.paths)):
                self._batches.pop(former.ref.id, None)
                outdated[ref.paths] = self._batches[ref.id] = former.model_copy(update={"ref": ref})
            if ref.id not in self._batches:
                self._insert(Batch(ref=ref, since=now), in_order=in_order)

    def _insert(self, batch: Batch, *, in_order: bool) -> None:
        id, oldest = batch.ref.id, batch.ref.oldest if in_order else ()
        waiting = (each for each in self._batches.values() if each.state == "waiting")
        younger = next((each.ref.id for each in waiting if oldest and each.ref.oldest > oldest), None)
        behind = list(self._batches)
        behind = behind[behind.index(younger) :] if younger else []
        self._batches[id] = batch.model_copy(update={"over_younger": self.order.has_permit(batch.ref)})
        for each in behind:
            self._batches[each] = self._batches.pop(each)
        if (overtaken_by := self.order.overtaken_by(batch.ref)) and in_order and not self._batches[id].over_younger:
            self._keep_out_overtaken(id, overtaken_by)

    def remove(self, ids: Iterable[str], *, in_order: bool = False) -> None:
        """Remove batches that main has."""
        for id in ids:
            self._overtake(id, in_order=in_order)
            if batch := self._batches.pop(id, None):
                self._count_changes(batch.ref.paths or id, has_changed=False, is_done=True)

    def update(self, id: str, **changes: object) -> Batch:
        """Change a batch of the zone, and return it."""
        self._batches[id] = self._batches[id].model_copy(update=changes)
        return self._batches[id]

    def keep_out(self, id: str, reason: str, *, is_reported: bool = False) -> None:
        """Keep a batch out until a person decides.

        Args:
            is_reported: true if people have been informed. Each run informs them of its own end.
        """
        self.update(id, state="kept out", reason=reason[:_LONGEST_REASON])
        if not is_reported:
            self._unreported.append(f"batch {id} is kept out, and no run loads it: {reason[:_LONGEST_REASON]}")

    @property
    def has_unreported(self) -> bool:
        """True if there are messages about batches to send to people."""
        return bool(self._unreported)

    def take_unreported(self) -> list[str]:
        """Return the messages about batches to send to people, each only once."""
        unreported, self._unreported = self._unreported, []
        return unreported

    def end(self, ended: EndedRun, *, in_order: bool = False) -> str:
        """Record the end of a run; return `loaded`, `changed` or `kept out`, or "" if its batch does not run.

        If a file was overwritten or removed under the run, the batch is removed and the present files are collected
        again, unless that has happened too often.
        """
        batch = self._batches.get(ended.key)
        if batch is None or batch.state != "running":
            return ""
        has_changed = ended.cause == "input_changed" and not ended.is_done
        counts = has_changed and bool(ended.run_id)  # a change before the run existed is not counted
        changes = self._count_changes(batch.ref.paths or batch.ref.id, has_changed=counts, is_done=ended.is_done)
        if ended.is_done:
            self._overtake(ended.key, in_order=in_order)
        if ended.is_done or (has_changed and not changes):
            del self._batches[ended.key]
            if not ended.is_done:
                self.order.collect_again(batch)
            return "loaded" if ended.is_done else "changed"
        self.update(ended.key, workflow_id=ended.workflow_id, run_id=ended.run_id, outcome=ended.outcome)
        self.update(ended.key, is_outdated=has_changed)
        self.keep_out(ended.key, f"{changes}{ended.reason}", is_reported=bool(ended.run_id))
        return "kept out"

    def _overtake(self, id: str, *, in_order: bool) -> None:
        """Record that a batch was loaded, and mark the batches before it as overtaken by it.

        If the order matters, older batches that wait are kept out.
        """
        if id not in self._batches:
            return
        newest = self._batches[id].ref.newest
        self.order.loaded(self._batches[id].ref)
        for before in list(self._batches)[: list(self._batches).index(id)]:
            self.update(before, overtaken_by=id)
        for each in self.all:
            is_older = in_order and () < each.ref.oldest < newest
            if is_older and each.ref.id != id and each.state == "waiting" and not each.over_younger:
                self._keep_out_overtaken(each.ref.id, id)

    def keep_overtaken_out(self) -> None:
        """Keep out the batches that wait although a younger one was loaded: their order did not matter until now."""
        for each in self.all:
            younger = each.overtaken_by or self.order.overtaken_by(each.ref)
            if younger and each.state == "waiting" and not each.over_younger:
                self._keep_out_overtaken(each.ref.id, younger)

    def _keep_out_overtaken(self, id: str, younger: str) -> None:
        """Keep out a batch that a younger one overtook."""
        self.update(id, overtaken_by=younger)
        self.keep_out(id, describe_overtaken_batch(id, younger))

    def is_next(self, id: str) -> bool:
        """Return True if no older batch waits."""
        oldest = self._batches[id].ref.oldest
        return not any(each.state == "waiting" and () < each.ref.oldest < oldest for each in self.all)

    def problem_of_request(self, request: BatchCommand | SplitBatch, *, in_order: bool) -> str:
        """Return the reason why a person's request about a batch is refused; empty if it is not.

        Args:
            in_order: true if rows of a batch replace rows of an earlier one.
        """
        is_split = isinstance(request, SplitBatch)
        problem = self.problem_of_split(request.batch) if is_split else self.problem_of_decision(request.batch)
        is_set_aside = isinstance(request, BatchCommand) and request.action == "set aside"
        if problem or is_set_aside or request.over_younger or not in_order:
            return problem
        overtaken_by = self._batches[request.batch].overtaken_by
        if not overtaken_by:
            return ""
        return describe_overtaken_batch(request.batch, overtaken_by)

    def _count_changes(self, paths: str, *, has_changed: bool, is_done: bool) -> str:
        """Count a change of files under a run; return the reason why they are not collected again, if there is one."""
        before = self.changes.pop(paths, 0)
        if is_done:
            self.changes.pop(_ANY, None)
        if not has_changed:
            return ""
        same, any_ = before + 1, self.changes.pop(_ANY, 0) + 1
        self.changes[_ANY] = any_
        if same >= _MOST_CHANGES or any_ >= _MOST_CHANGES_OF_ANY:
            return f"files changed under {same if same >= _MOST_CHANGES else any_} runs in a row: "
        self.changes[paths] = same
        while len(self.changes) > _REMEMBERED:
            del self.changes[next(iter(self.changes))]
        return ""

    def decide(self, command: BatchCommand) -> tuple[Batch, bool]:
        """Retry a batch or set it aside. Return it, and True if its files must be collected again.

        A refused batch of files that a person named starts again as it is: a listing would ignore its files.
        """
        id = command.batch
        if command.action == "set aside":
            reason = shortened_line(self._batches[id].reason, _LONGEST_REASON_SET_ASIDE)
            return self.update(id, state="set aside", reason=reason), False
        changed = self.update(id, state="waiting", over_younger=command.over_younger)
        is_kept = changed.outcome != "refused" or (changed.is_named and command.keeps_named)
        if is_kept and not changed.is_outdated:
            return changed, False
        del self._batches[id]  # a file of it may be missing: the present files are collected again
        self.order.collect_again(changed)
        return changed, True

    def split(self, request: SplitBatch, halves: Iterable[BatchRef]) -> list[Batch]:
        """Replace a batch that waits for a person by its parts, and return them; empty if it does not wait."""
        id = request.batch
        if self.problem_of_decision(id):
            return []
        whole, reason = self._batches[id], f"part of batch {id}, which {request.by} split"
        ages = {"oldest": whole.ref.oldest, "newest": whole.ref.newest}
        new = [
            Batch(
                ref=ref if ref.oldest else ref.model_copy(update=ages),
                since=whole.since,
                reason=reason,
                overtaken_by=whole.overtaken_by,
                is_named=whole.is_named,
                over_younger=request.over_younger,
            )
            for ref in halves
        ]
        batches = [each for batch in self.all for each in (new if batch.ref.id == id else [batch])]
        self._batches = {batch.ref.id: batch for batch in batches}
        return new

    def load(self, request: LoadBatch, now: float) -> Batch:
        """Add a batch of files that a person named."""
        ref, reason = request.ref, f"loaded by {request.by}"
        self._batches[ref.id] = Batch(
            ref=ref, since=now, reason=reason, is_named=True, over_younger=request.over_younger
        )
        return self._batches[ref.id]

    def problem_of_load(self, request: LoadBatch, *, in_order: bool) -> str:
        """Return the reason why a batch of named files cannot be added; empty if it can.

        Args:
            in_order: true if rows of a batch replace rows of an earlier one.
        """
        id = request.ref.id
        if id in self._batches:
            return f"these files are in batch {id}, which is {self._batches[id].state}"
        if in_order and not request.over_younger and (younger := self.order.overtaken_by(request.ref)):
            return describe_overtaken_files(younger)
        return "" if self.room else "the landing zone is full: retry its batches or set them aside"

    def problem_of_split(self, id: str) -> str:
        """Return the reason why a batch cannot be split; empty if it can."""
        batch = self._batches.get(id)
        is_single = batch is not None and batch.ref.files < LEAST_TO_SPLIT
        return self.problem_of_decision(id) or (f"batch {id} has one file and cannot be split" if is_single else "")

    def problem_of_decision(self, id: str) -> str:
        """Return the reason why no person can decide about a batch now; empty if one can."""
        batch = self._batches.get(id)
        if batch is None:
            return f"there is no batch {id!r} of files that main does not have"
        return f"batch {id} is {batch.state}: wait for its end" if batch.state in ("running", "waiting") else ""
