"""Tag or move the loaded files of a landing zone, as `arrival.after` states. Each step may be repeated."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lakehouse.arrivals.collector import ArrivalCollector
from lakehouse.arrivals.file_loads import FileLoads
from lakehouse.arrivals.finish_memory import FinishMemory, LoadedFile
from lakehouse.source_files.in_threads import Counter, OnProgress, map_in_threads
from lakehouse.source_files.loaded_objects import LoadedObjects
from lakehouse.source_files.moving import Unmovable, move_file
from lakehouse.source_files.paths import is_remote, may_list, path_below, without_scheme
from sluice.contracts.arrivals import BatchRef, FinishArrivalsInput, FinishArrivalsResult
from sluice.errors import InputChanged, InvalidPipeline, ServiceUnavailable
from sluice.input.held_files import WantedFile
from sluice.pipeline.arrival import Arrival
from sluice.pipeline.model import Pipeline

_AT_ONCE = 500
"""Maximum number of files per call. The others follow in the next call."""
_LIMIT = 600.0
"""Time after which a call begins no further file, in seconds."""
_RETRY = 300.0
"""Wait before a file that could not be tagged or moved is tried again, in seconds."""


@dataclass(frozen=True)
class ArrivalFinisher:
    """Service that tags and moves files loaded on main.

    Requires the collector of landing zones.
    """

    collector: ArrivalCollector

    def finish(self, pipeline: Pipeline, input: FinishArrivalsInput, on_progress: OnProgress) -> FinishArrivalsResult:
        """Tag or move the files that are loaded on main and are in no batch of the zone.

        Raises:
            InvalidPipeline: a file would be moved to a path that the zone lists.
            ServiceUnavailable: main does not answer.
        """
        arrival = pipeline.arrival
        if arrival is None or not arrival.done:
            return FinishArrivalsResult()
        _check_target(arrival)
        clock, memory = self.collector.clock, FinishMemory(self.collector.memory_path(pipeline.name))
        due = memory.to_finish(arrival.done, clock(), _AT_ONCE)
        reasons = self._reasons_to_wait(pipeline, due, input.held)
        work = _Work(arrival, memory, clock, time.monotonic() + _LIMIT)
        for file in due:
            if reason := reasons.get(file.path):
                work.put_off(file, reason)
        ready = [file for file in due if file.path not in reasons]
        problems = [problem for problem in map_in_threads(work.finish, ready, on_progress, arrival.done) if problem]
        return FinishArrivalsResult(
            finished=work.finished,
            failed=len(problems),
            problem=problems[0] if problems else "",
            has_more=memory.count_to_finish(arrival.done, clock()) > 0 and not work.is_store_away,
        )

    def _reasons_to_wait(
        self, pipeline: Pipeline, due: Sequence[LoadedFile], held_batches: Sequence[BatchRef]
    ) -> dict[str, str]:
        """Return the paths to leave unchanged for now, each with the reason. Main and the batches decide."""
        if not due:
            return {}
        wanted = {file: WantedFile(file.path, file.identity) for file in due}
        loads = FileLoads.of(self.collector.loaded_files, pipeline)
        held = {file for file, each in loads.held(list(wanted.values())).items() if not each.is_partly}
        known = loads.all("f.identity", sorted({file.identity for file in due}))
        in_effect = {load.identity for load in known if load.in_effect}
        rolled_back = {load.identity for load in known} - in_effect
        in_batches = {file.identity for ref in held_batches for file in self.collector.batches.read(ref)}
        reasons: dict[str, str] = {}
        for file in due:
            if file.identity in in_batches:
                reasons[file.path] = "a batch contains it"
            elif file.identity in rolled_back:
                reasons[file.path] = "its run was rolled back"
            elif wanted[file] not in held:
                reasons[file.path] = "main does not contain it"
        return reasons


@dataclass
class _Work:
    """Work of one call, in threads."""

    arrival: Arrival
    memory: FinishMemory
    clock: Callable[[], float]
    deadline: float
    finished: int = 0
    is_store_away: bool = False
    _objects: list[LoadedObjects] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def finish(self, file: LoadedFile, counter: Counter) -> str:
        """Tag or move one file; return the reason if that failed."""
        if self.is_store_away or time.monotonic() > self.deadline:
            return ""
        try:
            moved_to = self._tag_or_move(file, counter.add)
        except InputChanged:  # the next listing shows its new state
            self.put_off(file, "it changed since it was listed")
            return ""
        except ServiceUnavailable as error:
            self.is_store_away = True
            return self.put_off(file, str(error))
        except Unmovable as error:
            return self.put_off(file, str(error))
        self.memory.finish(file, self.arrival.done, moved_to)
        with self._lock:
            self.finished += 1
        return ""

    def put_off(self, file: LoadedFile, reason: str) -> str:
        """Record why a file is left unchanged; return the reason."""
        problem = f"not {self.arrival.done}: {reason}"[:500]
        self.memory.put_off(file, problem, self.clock() + _RETRY)
        return problem

    def _tag_or_move(self, file: LoadedFile, progress: Callable[[], None]) -> str:
        content = file.identity.split("|", 1)[0]  # the rest of the identity names folders that become columns
        if self.arrival.after == "tag":
            self._store().tag(file.path, content)
            return ""
        arrival, below = self.arrival, path_below(self.arrival.from_, file.path)
        target = f"{without_scheme(arrival.move_to or '').rstrip('/')}/{below}"
        if is_remote(arrival.from_):
            return self._store().move(file.path, content, target, progress)
        if _is_behind_link(file.path, below):
            raise Unmovable("its folder is behind a symbolic link, and other programs may use that folder")
        return move_file(file.path, file.state.partition("|")[0], content, target, progress)

    def _store(self) -> LoadedObjects:
        with self._lock:
            if not self._objects:
                self._objects.append(LoadedObjects())
            return self._objects[0]


def _is_behind_link(path: str, below: str) -> bool:
    """Return True if a symbolic link leads from the landing zone to the folder of a file.

    Args:
        below: the end of the path, below the landing zone.
    """
    root = Path(os.path.realpath(path.removesuffix(below)))
    return Path(os.path.realpath(Path(path).parent)) != root / Path(below).parent


def _check_target(arrival: Arrival) -> None:
    """Verify that files are not moved into the landing zone itself, not even through a symbolic link.

    Raises:
        InvalidPipeline: files would be moved into the zone.
    """
    if arrival.move_to is None or is_remote(arrival.from_):
        return
    from_, to = (os.path.realpath(without_scheme(path)) for path in (arrival.from_, arrival.move_to))
    if may_list(from_, to):
        raise InvalidPipeline(f"{arrival.move_to} is in the landing zone, {to}: set `move_to` to a folder outside it")
