"""Files of a landing zone as its memory stores them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from lakehouse.source_files.arriving import ArrivingFile
from sluice.arrivals.batching import WaitingFile, folder_of
from sluice.contracts.arrivals import ArrivalEntry, FileStatus

_NEVER = 1e15
"""Time of the next try for a file that the listing refused: never, unless its state changes."""


@dataclass(frozen=True)
class RememberedFile:
    """A file of the zone, or one that was moved out of it."""

    path: str
    size: int
    arrived_at: float
    status: FileStatus
    detail: str
    after: str
    changed_at: float
    identity: str
    state: str = ""
    """State reported by its file system or store."""
    listed_at: float = 0.0
    written_at: float = 0.0

    @property
    def waiting(self) -> WaitingFile:
        """The file as one that waits for a batch."""
        times = (self.arrived_at, self.changed_at, self.state, self.listed_at, self.written_at)
        return WaitingFile(self.path, self.size, *times)

    def entry(self, detail: str, copy_of: str) -> ArrivalEntry:
        """Return the entry of the file for people."""
        fields = {"path": self.path, "size": self.size, "arrived_at": self.arrived_at, "status": self.status}
        return ArrivalEntry.model_validate({**fields, "detail": detail, "copy_of": copy_of, "after": self.after})


class MarkedFile(NamedTuple):
    """A file with its new status."""

    path: str
    changed_at: float
    """Time of the first listing with the present state. A file that changed since is not marked."""
    status: FileStatus
    detail: str
    identity: str = ""
    """Identity of a file to be tagged or moved once it is loaded on main; else empty."""


def row_of(file: ArrivingFile, now: float, listing: int | None) -> dict[str, Any]:
    """Return the fields of a file that is listed now with another state than before."""
    status = "refused" if file.refused else "ignored" if file.ignored else "waiting"
    return {
        **{"path": file.path, "folder": folder_of(file.path), "size": file.size, "state": file.state},
        **{"detail": file.refused or file.ignored, "reported": file.refused},
        **{"report": (listing or 0) if file.refused else 0, "try_at": _NEVER if file.refused else 0},
        **{"now": now, "written_at": file.written_at, "status": status, "listing": listing},
    }
