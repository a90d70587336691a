"""Keep the files of a landing zone in the order of their arrival."""

from collections.abc import Collection, Mapping, Sequence

from lakehouse.arrivals.held_files import HeldFiles
from lakehouse.arrivals.zone_memory import ZoneMemory
from sluice.arrivals.batching import WaitingFile
from sluice.contracts.arrivals import Age, other_content_in
from sluice.pipeline.arrival import Arrival


class ArrivalOrder:
    """The order of the files of one listing, if rows of a later load replace those of an earlier one.

    If a file waits for the end of a batch that has its path with other content, younger files wait, too. They do not
    wait for a batch that a person has to decide about.
    """

    def __init__(self, arrival: Arrival, held: HeldFiles, *, matters: bool) -> None:
        self._arrival, self._manifests = arrival, dict[str, float]()
        undecided = {*held.ids} - {*held.kept_out, *held.set_aside} if matters else ()
        self._awaited = {other_content_in(id) for id in undecided}
        self._blocked_at: Age | None = None

    def begin(self, memory: ZoneMemory, manifests: Mapping[str, float]) -> None:
        """Read which files wait for the end of a batch.

        Args:
            memory: the memory of the zone.
            manifests: the time since which a folder has its manifest, by folder.
        """
        self._manifests = dict(manifests)
        for file in memory.behind(self._awaited):
            self._block(file)

    @property
    def is_blocked(self) -> bool:
        """True if a file waits for the end of a batch. That end causes a listing."""
        return self._blocked_at is not None

    def age(self, file: WaitingFile) -> Age:
        """Return the position of a file in the order of arrival."""
        return file.age(self._manifests, self._arrival)

    def ages(self, files: Collection[WaitingFile]) -> list[Age]:
        """Return the positions of files."""
        return [self.age(file) for file in files]

    def is_behind_another(self, file: WaitingFile) -> bool:
        """Return True if an older file waits for the end of a batch."""
        return self._blocked_at is not None and self.age(file) > self._blocked_at

    def ready(self, files: Sequence[WaitingFile]) -> list[WaitingFile]:
        """Return the files that may be loaded now."""
        return [file for file in files if not self.is_behind_another(file)]

    def note(self, file: WaitingFile, detail: str) -> None:
        """Record that a file is in a batch, or waits for the end of one.

        Args:
            file: the file.
            detail: the detail of its status.
        """
        if detail in self._awaited:
            self._block(file)

    def _block(self, file: WaitingFile) -> None:
        age = self.age(file)
        self._blocked_at = age if self._blocked_at is None else min(self._blocked_at, age)
