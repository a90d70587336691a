"""Plan batches of arrived files that can be loaded now, and the time of the next ones. Times are in seconds."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluice.contracts.arrivals import Age
from sluice.pipeline.arrival import Arrival

_MAX_PATH_BYTES = 256 * 1024
"""Maximum size of all paths of a batch, in bytes. The request of its run contains them."""


def folder_of(path: str) -> str:
    """Return the folder of a file, or the prefix of an object."""
    return path.rsplit("/", 1)[0]


@dataclass(frozen=True)
class WaitingFile:
    """A file that arrived and is in no batch."""

    path: str
    size: int
    arrived_at: float
    """Time when it was first listed."""
    changed_at: float
    """Time when it was last listed with another state than before."""
    state: str
    """State that its file system or store reported at that time."""
    listed_at: float = 0.0
    """`changed_at` with a fraction that orders the files of one listing: by delivery, and by name within a delivery."""
    written_at: float = 0.0
    """Time of its last modification, as its file system or store reports it."""

    def age(self, manifests: Mapping[str, float], arrival: Arrival) -> Age:
        """Return its position in the order of arrival.

        Args:
            manifests: as in `plan_batches`.
        """
        complete_at = manifests.get(self.folder) if arrival.manifest else self.listed_at
        if complete_at is None or self.changed_at > complete_at:
            complete_at = self.changed_at + arrival.settle
        return complete_at, self.listed_at

    @property
    def folder(self) -> str:
        """Folder that contains the file."""
        return folder_of(self.path)


@dataclass(frozen=True)
class Batching:
    """Plan for the files that wait."""

    batches: list[list[WaitingFile]]
    """Files to load now, each batch in the order of arrival."""
    list_at: float | None
    """Time when more files may be ready if nothing else arrives; None if no file waits for a time."""


def plan_batches(
    waiting: Sequence[WaitingFile],
    manifests: Mapping[str, float],
    arrival: Arrival,
    now: float,
    limits: Sequence[Age] = (),
) -> Batching:
    """Return the batches that are closed now, in the order of their files' ages.

    Args:
        waiting: the files that wait.
        manifests: the time since which a folder has its manifest, by folder, for an arrival that closes batches by
            manifests. A newer file has to settle.
        arrival: the rules of the landing zone.
        now: the present time.
        limits: ages in ascending order. No batch has both files older and files younger than one of them. Batches of
            files that are older than the last limit are closed at once.
    """
    files = sorted(waiting, key=lambda file: (file.age(manifests, arrival), file.arrived_at, file.path))
    groups = [bisect_right(limits, file.age(manifests, arrival)) for file in files]
    if arrival.manifest:
        return _plan_by_manifests(files, groups, manifests, arrival, now)
    settled: list[list[WaitingFile]] = [[] for _ in range(len(limits) + 1)]
    for file, group in zip(files, groups, strict=True):
        if file.changed_at + arrival.settle <= now:
            settled[group].append(file)
    older, parts = [part for some in settled[:-1] for part in _split(some, arrival)], _split(settled[-1], arrival)
    if not waiting:
        return Batching([], None)
    quiet_at = max(file.changed_at for file in waiting) + arrival.settle
    overdue_at = min((file.arrived_at for file in settled[-1]), default=now) + arrival.batch.wait
    if parts and not (quiet_at <= now or overdue_at <= now) and not _is_full(parts[-1], arrival):
        parts.pop()
    taken = sum(map(len, parts))
    times = [file.changed_at + arrival.settle for file in waiting if file.changed_at + arrival.settle > now]
    if taken < len(settled[-1]):
        times.append(min(quiet_at, overdue_at))
    return Batching(older + parts, min(times) if times else None)


def why_waiting(
    path: str, changed_at: float, manifests: Mapping[str, float], arrival: Arrival, now: float, *, has_room: bool = True
) -> str:
    """Return the reason why a file that waits is in no batch yet.

    Args:
        path: the file's path.
        changed_at: the time of its last change.
        manifests: as in `plan_batches`.
        has_room: true if the landing zone accepts another batch.
    """
    complete_at = manifests.get(folder_of(path)) if arrival.manifest else None
    if arrival.manifest and complete_at is None:
        return f"there is no {arrival.manifest} in its folder yet"
    late = f"it came after {arrival.manifest}, and " if complete_at is not None and changed_at > complete_at else ""
    if changed_at + arrival.settle > now and (late or not arrival.manifest):
        return f"{late or 'it '}settles for {max(0, changed_at + arrival.settle - now):.0f} s more"
    if not has_room:
        return "the landing zone is full: retry its batches or set them aside"
    return "its batch is not closed" if not arrival.manifest else "the next listing collects it"


def _plan_by_manifests(
    waiting: Sequence[WaitingFile],
    groups: Sequence[int],
    manifests: Mapping[str, float],
    arrival: Arrival,
    now: float,
) -> Batching:
    folders: dict[tuple[str, int], list[WaitingFile]] = {}
    settled_at: list[float] = []
    for file, group in zip(waiting, groups, strict=True):
        complete_at = manifests.get(file.folder)
        if complete_at is None:
            continue
        if file.changed_at <= complete_at or file.changed_at + arrival.settle <= now:
            folders.setdefault((file.folder, group), []).append(file)
        else:
            settled_at.append(file.changed_at + arrival.settle)
    parts = [part for files in folders.values() for part in _split(files, arrival)]
    return Batching(parts, min(settled_at) if settled_at else None)


def _split(files: Sequence[WaitingFile], arrival: Arrival) -> list[list[WaitingFile]]:
    """Split files into batches within the limits. A file that is larger than a batch gets one of its own."""
    parts: list[list[WaitingFile]] = []
    size = paths = 0
    for file in files:
        length = len(file.path.encode()) + 4
        fits = parts and len(parts[-1]) < arrival.batch.files
        if not fits or size + file.size > arrival.batch.bytes or paths + length > _MAX_PATH_BYTES:
            parts.append([])
            size = paths = 0
        parts[-1].append(file)
        size, paths = size + file.size, paths + length
    return parts


def _is_full(files: Sequence[WaitingFile], arrival: Arrival) -> bool:
    return len(files) >= arrival.batch.files or sum(file.size for file in files) >= arrival.batch.bytes
