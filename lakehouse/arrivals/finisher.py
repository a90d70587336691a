"""Tag or move the files of a landing zone that main holds, as `arrival.after` states. Each step may be repeated."""

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
from sluice.pipeline.arrival import Arrival
from sluice.pipeline.model import Pipeline

_AT_ONCE = 500
"""So many files one call takes; the others follow."""
_LIMIT = 600.0
"""Seconds after which a call begins no further file."""
_RETRY = 300.0
"""Seconds until a file is tried again that could not be tagged or moved."""


@dataclass(frozen=True)
class ArrivalFinisher:
    """Tags and moves files that main holds. Needs what looks at landing zones."""

    collector: ArrivalCollector

    def finish(self, pipeline: Pipeline, input: FinishArrivalsInput, on_progress: OnProgress) -> FinishArrivalsResult:
        """Tag or move the files that main holds, and that no batch of the zone has.

        Raises:
            InvalidPipeline: a file would be moved to where it is listed again.
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
            if reason := reasons.get(file.identity):
                work.put_off(file, reason)
        ready = [file for file in due if file.identity not in reasons]
        problems = [problem for problem in map_in_threads(work.finish, ready, on_progress, arrival.done) if problem]
        return FinishArrivalsResult(
            finished=work.finished,
            failed=len(problems),
            problem=problems[0] if problems else "",
            has_more=memory.count_to_finish(arrival.done, clock()) > 0 and not work.is_store_away,
        )

    def _reasons_to_wait(
        self, pipeline: Pipeline, due: Sequence[LoadedFile], held: Sequence[BatchRef]
    ) -> dict[str, str]:
        """Return which identities are to be left alone now, with the reason: main decides."""
        identities = sorted({file.identity for file in due})
        if not identities:
            return {}
        loads = FileLoads(self.collector.loaded_files, list(pipeline.tables)).all("f.identity", identities)
        in_effect = {load.identity for load in loads if load.in_effect}
        in_batches = {file.identity for ref in held for file in self.collector.batches.read(ref)}
        rolled_back = {load.identity for load in loads} - in_effect
        reasons = dict.fromkeys(set(identities) - in_effect, "main does not hold it")
        reasons |= dict.fromkeys(rolled_back, "its run was rolled back")
        return reasons | dict.fromkeys(in_batches & set(identities), "a batch has it")


@dataclass
class _Work:
    """The work of one call, in threads."""

    arrival: Arrival
    memory: FinishMemory
    clock: Callable[[], float]
    deadline: float
    finished: int = 0
    is_store_away: bool = False
    _objects: list[LoadedObjects] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def finish(self, file: LoadedFile, counter: Counter) -> str:
        """Tag or move one file; return why that failed, if it did."""
        if self.is_store_away or time.monotonic() > self.deadline:
            return ""
        try:
            moved_to = self._tag_or_move(file, counter.add)
        except InputChanged:  # the next look shows what it is now
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
        """Remember why a file is left as it is; return that."""
        problem = f"not {self.arrival.done}: {reason}"[:500]
        self.memory.put_off(file, problem, self.clock() + _RETRY)
        return problem

    def _tag_or_move(self, file: LoadedFile, progress: Callable[[], None]) -> str:
        content = file.identity.split("|", 1)[0]  # the folders that are columns are part of the path
        if self.arrival.after == "tag":
            self._store().tag(file.path, content)
            return ""
        arrival, below = self.arrival, path_below(self.arrival.from_, file.path)
        target = f"{without_scheme(arrival.move_to or '').rstrip('/')}/{below}"
        if is_remote(arrival.from_):
            return self._store().move(file.path, content, target, progress)
        if _is_behind_link(file.path, below):
            raise Unmovable("its folder is behind a symbolic link, so that it may belong to something else")
        return move_file(file.path, file.state.partition("|")[0], content, target, progress)

    def _store(self) -> LoadedObjects:
        with self._lock:
            if not self._objects:
                self._objects.append(LoadedObjects())
            return self._objects[0]


def _is_behind_link(path: str, below: str) -> bool:
    """Return whether a symbolic link leads from the landing zone to the folder of a file.

    Args:
        below: the end of the path that is below the landing zone.
    """
    root = Path(os.path.realpath(path.removesuffix(below)))
    return Path(os.path.realpath(Path(path).parent)) != root / Path(below).parent


def _check_target(arrival: Arrival) -> None:
    """Make sure that no moved file is in the landing zone, also not by a symbolic link.

    Raises:
        InvalidPipeline: it would be.
    """
    if arrival.move_to is None or is_remote(arrival.from_):
        return
    from_, to = (os.path.realpath(without_scheme(path)) for path in (arrival.from_, arrival.move_to))
    if may_list(from_, to):
        raise InvalidPipeline(f"{arrival.move_to} is in the landing zone, {to}: nothing is moved there")
