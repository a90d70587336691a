"""Collect arrivals: list a landing zone, and make batches of its ready files that no run has loaded."""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lakehouse.arrivals.arrival_order import ArrivalOrder
from lakehouse.arrivals.batch_store import BatchStore
from lakehouse.arrivals.copy_memory import CopyMemory
from lakehouse.arrivals.file_loads import FileLoads, name_run
from lakehouse.arrivals.finish_memory import FinishMemory
from lakehouse.arrivals.held_files import HeldFiles
from lakehouse.arrivals.identify_arrived import groups_to_read, identify_arrived, identity_of
from lakehouse.arrivals.named_load import NamedLoad
from lakehouse.arrivals.zone_files import MarkedFile
from lakehouse.arrivals.zone_memory import ZoneMemory
from lakehouse.arrivals.zone_rules import digest_of_rules
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.source_files import OnProgress
from lakehouse.source_files.arriving import ArrivingFile, file_exists, find_arriving, list_arriving
from sluice.arrivals.batching import WaitingFile, plan_batches, why_waiting
from sluice.arrivals.judging import judge
from sluice.contracts.arrivals import (
    ArrivedFile,
    BatchRef,
    CollectArrivalsInput,
    CollectArrivalsResult,
    FileStatus,
    KeptOutFile,
    ListArrivalsInput,
    ListArrivalsResult,
)
from sluice.contracts.zone_loads import LoadPlan, PlanLoadInput
from sluice.errors import InvalidPipeline
from sluice.input.held_files import WantedFile
from sluice.pipeline.model import Pipeline
from sluice.redaction import redacted

_MOST_REPORTED, _REPORTED_EVERY, _LONGEST_REASON = 20, 1000, 500
_MOST_BATCHES = 50
"""Maximum number of batches per listing. The others follow in the next listing, which is due at once."""
_FOLDER = "arrivals"


def _silent(_: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class ArrivalCollector:
    """Collector of the files of landing zones into batches.

    Requires the loaded files of main, the store of batches, and a folder for the memories of zones.
    """

    loaded_files: LoadedFiles
    batches: BatchStore
    home: Path
    installation: str = ""
    clock: Callable[[], float] = time.time
    most_waiting: int = 20_000
    """Maximum number of files planned at a time. The others follow in the next listing, which is due at once."""
    longest_listing: float = 120.0
    """Time limit for beginning batches after a listing, in seconds, so that the finished ones load soon."""

    def memory(self, pipeline: str) -> ZoneMemory:
        """Return the memory of the landing zone of a pipeline."""
        return ZoneMemory(self.memory_path(pipeline))

    def memory_path(self, pipeline: str) -> Path:
        """Return the file of a zone's memory. Each installation and each catalog has its own."""
        key = f"{self.installation}\0{self.loaded_files.key}\0{pipeline}"
        return self.home / _FOLDER / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.sqlite"

    def collect(
        self, pipeline: Pipeline, input: CollectArrivalsInput, on_progress: OnProgress = _silent
    ) -> CollectArrivalsResult:
        """List the zone of a pipeline; write and return the batches that can be loaded now.

        Args:
            on_progress: called repeatedly with the progress. Any error that it raises stops the work.

        Raises:
            InvalidInput: the zone cannot be listed.
            ServiceUnavailable: its store, or main, does not answer.
        """
        return _ZoneListing(self, pipeline, input, on_progress).collect(input)

    def list_arrivals(
        self, pipeline: Pipeline, input: ListArrivalsInput, on_progress: OnProgress = _silent
    ) -> ListArrivalsResult:
        """List the zone of a pipeline, and return its files with their status. No batch is made.

        Args:
            on_progress: as in `collect`.

        Raises:
            InvalidInput: the zone cannot be listed.
            ServiceUnavailable: its store, or main, does not answer.
        """
        return _ZoneListing(self, pipeline, input, on_progress).list_files(input)

    def plan_load(self, pipeline: Pipeline, input: PlanLoadInput, on_progress: OnProgress = _silent) -> LoadPlan:
        """List a zone; write a batch of those named files that can be loaded. Raises the errors of `collect`."""
        return _ZoneListing(self, pipeline, input, on_progress).plan_load(input.paths)


class _ZoneListing:
    """One listing of one zone, with the work that follows it."""

    def __init__(
        self,
        collector: ArrivalCollector,
        pipeline: Pipeline,
        input: CollectArrivalsInput | ListArrivalsInput | PlanLoadInput,
        on_progress: OnProgress,
    ) -> None:
        if pipeline.arrival is None or pipeline.write.source is None:
            raise InvalidPipeline(f"the pipeline {pipeline.name!r} has no `arrival`")
        self._collector, self._pipeline, self._on_progress = collector, pipeline, on_progress
        self._loads = FileLoads.of(collector.loaded_files, pipeline)
        self._arrival, self._source = pipeline.arrival, pipeline.write.source
        path = collector.memory_path(pipeline.name)
        self._memory, self._finished, self._copies = ZoneMemory(path), FinishMemory(path), CopyMemory(path)
        self._held = HeldFiles(collector.batches, input.held, input.states)
        self._identity_of = cache(lambda file: identity_of(self._source, file, on_progress))
        self._listed_files: dict[str, WaitingFile] = {}
        self._latest_arrival: float | None = None
        self._ends_at, self._is_other, self._loaded, self._marked = 0.0, False, set[WantedFile](), list[MarkedFile]()
        self._order = ArrivalOrder(self._arrival, self._held, matters=self._loads.order_matters)

    def collect(self, input: CollectArrivalsInput) -> CollectArrivalsResult:
        """Return the batches that can be loaded now, and the state of the zone."""
        now, room = self._collector.clock(), min(input.room, _MOST_BATCHES)
        is_current = input.files is not None and self._memory.is_current(input.received)
        waiting, manifests = self._list(now, input.files if is_current else None)
        plan = plan_batches(
            self._order.ready(waiting), manifests, self._arrival, now, [] if self._is_other else input.limits
        )
        batches, judged = self._make_batches(plan.batches[:room])
        has_more = judged < len(plan.batches) or (plan.batches and len(waiting) == self._collector.most_waiting)
        list_at = now if room and has_more and not self._order.is_blocked else plan.list_at
        kept_out, number, mark = self._memory.to_report(input.received, _MOST_REPORTED)
        done = self._arrival.done
        self._memory.confirm_recheck()
        return CollectArrivalsResult(
            batches=batches,
            loaded=self._held.loaded(self._loaded),
            kept_out=[KeptOutFile(path=path, reason=reason) for path, reason in kept_out],
            more_kept_out=number - len(kept_out),
            mark=mark,
            counts=self._memory.counts(),
            in_batches=self._memory.in_batches(),
            look_in=None if list_at is None else max(0.0, list_at - self._collector.clock()),
            latest_arrival=self._latest_arrival,
            to_finish=self._finished.count_to_finish(done, self._collector.clock()) if done else 0,
            is_another_history=self._is_other,
            put_off=self._finished.count_put_off() if done else 0,
        )

    def list_files(self, input: ListArrivalsInput) -> ListArrivalsResult:
        """Return files of the zone. Mark settled files that are loaded or in a batch, but make no batch."""
        now = self._collector.clock()
        waiting, manifests = self._list(now)
        settled = [file for file in waiting if file.changed_at + self._arrival.settle <= now]
        for group in groups_to_read(settled):
            self._sort(group, reports=False)
            if time.monotonic() >= self._ends_at:
                break
        listed = self._memory.files(input.status, input.file, input.limit)
        loads = self._loads.by_identity(sorted({file.identity for file in listed if file.status == "loaded"}))
        files = []
        for file in listed:
            detail, copied = file.detail, ""
            if file.status == "waiting":
                detail = why_waiting(file.path, file.changed_at, manifests, self._arrival, now, has_room=input.has_room)
            elif load := loads.get(file.identity):
                detail = name_run(load)
                copied = load.file.path if load.in_effect and load.file.path != file.path else ""
            files.append(file.entry(detail, copied))
        counts, in_batches = self._memory.counts(), self._memory.in_batches()
        runs = self._held.runs(self._pipeline.name)
        return ListArrivalsResult(files=files, counts=counts, in_batches=in_batches, runs=runs)

    def plan_load(self, paths: Sequence[str]) -> LoadPlan:
        """Write a batch of those named files that can be loaded; return it with the outcome of each file."""
        now = self._collector.clock()
        self._list(now)
        judge, known = NamedLoad(self._source, self._arrival, self._loads, self._held, now), self._memory.known
        files, chosen = judge.plan(paths, known, self._identity_of, self._copies.identities(paths), self._on_progress)
        self._listed_files |= {path: each.waiting for path, each in known(paths).items()}
        return LoadPlan(files=files, batch=self._write_batch(chosen, chosen) if chosen else None)

    def _list(self, now: float, named: list[str] | None = None) -> tuple[list[WaitingFile], dict[str, float]]:
        """Return the waiting files, and the time since when each folder has its manifest.

        Args:
            named: files to examine besides the waiting ones; None lists the whole zone.
        """
        if named is None:
            self._memory.record_listing(self._listed(), now, self._arrival.settle)
        self._memory.release_batches(self._held.ids, self._held.set_aside, self._held.kept_out)
        self._loaded = self._loads.held_whole(self._held.files)
        self._memory.judge_again(self._held.paths_to_load(self._loaded))
        latest = self._memory.latest_head()
        head, is_history = self._loads.loaded_files.follow(latest)
        if latest and is_history and head != latest:
            is_history = not self._loads.loaded_files.were_dropped(self._loads.tables, latest)
        rules, tables = digest_of_rules(self._pipeline), " ".join(sorted(self._pipeline.tables))
        self._is_other = self._memory.recheck(rules, tables, head, now, is_another_history=not is_history)
        if named is not None:
            self._record_files(named, now)
        self._ends_at = time.monotonic() + self._collector.longest_listing  # however long the listing took
        if not self._arrival.manifest:
            self._order.begin(self._memory, {})
            return self._memory.waiting(self._collector.most_waiting), {}
        folders = self._memory.waiting_folders()
        are_complete = {folder: file_exists(f"{folder}/{self._arrival.manifest}") for folder in folders}
        manifests = self._memory.record_manifests(are_complete, now)
        self._order.begin(self._memory, manifests)
        return self._memory.waiting(self._collector.most_waiting, with_manifest=True), manifests

    def _record_files(self, named: list[str], now: float) -> None:
        """Record the named and the waiting files. If they cannot be examined one by one, list the whole zone."""
        waiting = self._memory.waiting_paths(self._collector.most_waiting)
        asked = [path for path in {*named, *waiting} if not self._is_manifest(path)]
        there = find_arriving(self._arrival.from_, asked, follow_links=self._arrival.follow_links)
        if there is None:
            self._memory.record_listing(self._listed(), now, self._arrival.settle)
        else:
            self._memory.record_files(asked, there, now, self._arrival.settle)

    def _is_manifest(self, path: str) -> bool:
        return path.rsplit("/", 1)[-1] == self._arrival.manifest

    def _listed(self) -> Iterator[ArrivingFile]:
        """Yield the files of the zone, without manifests, and report their number as progress."""
        files = list_arriving(self._arrival.from_, follow_links=self._arrival.follow_links)
        for number, file in enumerate(files, 1):
            if number % _REPORTED_EVERY == 0:
                self._on_progress(f"listed {number:,} files")
            if not self._is_manifest(file.path):
                yield file

    def _make_batches(self, planned: Sequence[Sequence[WaitingFile]]) -> tuple[list[BatchRef], int]:
        """Make batches while time is left; return them, and the number of planned batches that were judged."""
        made: list[BatchRef] = []
        for number, files in enumerate(planned):
            if number and (self._order.is_blocked or time.monotonic() >= self._ends_at):
                return made, number
            if batch := self._make_batch(files):
                made.append(batch)
        return made, len(planned)

    def _make_batch(self, files: Sequence[WaitingFile]) -> BatchRef | None:
        """Write the batch of the files that are not loaded yet. A copy of one waits for the end of that batch too."""
        if not (new := self._sort(files, reports=True)):
            return None
        chosen = list({file.identity: file for file in reversed(new)}.values())[::-1]
        own = {file.path for file in chosen}
        self._copies.record((file.path, file.identity) for file in new if file.path not in own)
        batch = self._write_batch(chosen, new)
        self._held.add(batch.id, chosen)
        arrivals = [self._listed_files[file.path].arrived_at for file in chosen]
        self._latest_arrival = max(self._latest_arrival or 0.0, *arrivals)
        return batch

    def _write_batch(self, chosen: Sequence[ArrivedFile], files: Sequence[ArrivedFile]) -> BatchRef:
        """Write a batch of the chosen files, and mark all given files as files of it."""
        ages = self._order.ages([self._listed_files[file.path] for file in chosen])
        batch = self._collector.batches.write(self._pipeline.name, chosen, ages)
        for file in files:
            self._mark(file, "in a batch", batch.id)
        self._record_marks()
        return batch

    def _sort(self, files: Sequence[WaitingFile], *, reports: bool) -> list[ArrivedFile]:
        """Return the files that are not loaded yet; mark the others with their status.

        Args:
            reports: True to report files that are kept out; otherwise such files wait for a listing that reports them.
        """
        self._listed_files |= {file.path: file for file in files}
        identified, refused = identify_arrived(self._source, files, self._on_progress)
        if reports:
            for each in refused:
                self._keep_out(each.path, "refused", each.reason, reports=each.is_reported)
        identified = self._loads.with_sent_again(
            identified, self._memory.known, self._identity_of, self._arrival.settle
        )
        known = self._loads.known(identified, self._held, self._copies.identities([file.path for file in identified]))
        self._copies.record(
            (file.path, file.identity) for file in identified if self._held.is_copy(file, known[file.path].held)
        )
        new: list[ArrivedFile] = []
        for file in identified:
            if self._order.is_behind_another(self._listed_files[file.path]):
                break
            judged = judge(known[file.path], self._arrival.overwritten)
            held = known[file.path].held
            if judged.status == "loaded" and held and held.is_renamed and self._held.has_others(file):
                continue  # the rows of that content may be replaced
            if judged.status is None:
                new.append(file)
                self._held.expect(file)
            elif judged.status in ("loaded", "in a batch"):
                self._order.note(self._listed_files[file.path], judged.detail)
                self._mark(file, judged.status, judged.detail, file.identity if judged.status == "loaded" else "")
            elif reports:
                self._keep_out(file.path, judged.status, judged.detail, reports=judged.is_reported)
        self._record_marks()
        return new

    def _mark(self, file: ArrivedFile, status: FileStatus, detail: str, identity: str = "") -> None:
        changed_at = self._listed_files[file.path].changed_at
        self._marked.append(MarkedFile(file.path, changed_at, status, detail, identity))

    def _record_marks(self) -> None:
        self._memory.mark(self._marked)
        self._marked = []

    def _keep_out(self, path: str, status: FileStatus, reason: str, *, reports: bool = True) -> None:
        changed_at, now = self._listed_files[path].changed_at, self._collector.clock()
        self._memory.keep_out(path, changed_at, status, redacted(reason)[:_LONGEST_REASON], now, reports=reports)
