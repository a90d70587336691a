"""Decide if main contains a file: the one rule for runs, releases and landing zones."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sluice.pipeline.scope import NO_SCOPE, LoadScope, larger_times


@dataclass(frozen=True)
class WantedFile:
    """A file to load."""

    path: str
    identity: str
    scope: LoadScope = NO_SCOPE
    is_sent_again: bool = False
    """True if it was written after main had got its content."""


@dataclass(frozen=True)
class LoadedFile:
    """The load of a file on main: its run, table, path, commit and time."""

    table: str
    path: str
    run_id: str
    workflow_id: str
    commit: str
    at: str
    """Time of the publication, in ISO 8601."""
    identity: str = ""
    scope: LoadScope = NO_SCOPE
    was_left_out: bool = False
    """True if the run left the file out, because main or the run itself had its content from another path."""


@dataclass(frozen=True)
class HeldFile:
    """A wanted file that main contains, or contains in another scope."""

    wanted: WantedFile
    load: LoadedFile
    is_partly: bool = False
    """True if a partition of the file was loaded and the whole is wanted, or the reverse."""
    is_renamed: bool = False
    """True if main has the content from other paths only, and no run left this path out as a copy.

    Also true if the file was sent again since.
    """
    overtaken_by: LoadedFile | None = None
    """First load of other content after that of a renamed file, if it may have replaced its rows."""
    is_intact: bool = False
    """True if other content was loaded after that of a renamed file, and main still has all rows of the renamed
    file."""


def overtaken_files(held: Sequence[HeldFile]) -> list[HeldFile]:
    """Return the renamed files whose content may be older than that of the table.

    Other content was loaded after theirs, and their content does not show if they are newer deliveries or old copies.
    The result is empty if the latest loaded content was renamed, too: the files were then moved together, and main
    already has the right rows.
    """
    if any(each.is_renamed and each.overtaken_by is None and not each.is_intact for each in held):
        return []
    return [each for each in held if each.overtaken_by]


class LoadsOfTable:
    """The loads of one table that are in effect."""

    def __init__(self, loads: Sequence[LoadedFile], *, order_matters: bool) -> None:
        """Index the loads by identity and path.

        Args:
            loads: loads of the wanted identities and, if the order matters, of the wanted paths; oldest first. Those of
                paths include files that runs left out.
            order_matters: True if rows of a later load replace those of an earlier one.
        """
        self._order_matters = order_matters
        self._by_identity: dict[str, list[LoadedFile]] = {}
        self._by_path: dict[str, list[LoadedFile]] = {}
        for load in loads:
            if not load.was_left_out:
                self._by_identity.setdefault(load.identity, []).append(load)
            self._by_path.setdefault(load.path, []).append(load)

    def find(self, wanted: WantedFile) -> HeldFile | None:
        """Return the load by which main contains a file, or None if the file is to be loaded.

        If the order matters, main no longer contains a file whose path was later loaded, or left out, with other
        content.
        """
        loads = self._by_identity.get(wanted.identity, [])
        if load := next(_holding(loads, wanted), None):
            latest = next(_holding(self._by_path.get(wanted.path, []), wanted), None)
            if self._order_matters and latest and latest.identity != wanted.identity:
                return None
            is_delivery = wanted.is_sent_again or latest is None
            return HeldFile(wanted, load, is_renamed=self._order_matters and is_delivery)
        partly = next((load for load in reversed(loads) if load.scope.overlaps_partly(wanted.scope)), None)
        return HeldFile(wanted, partly, is_partly=True) if partly else None


class LoadedPartitions:
    """Loads in effect of one pipeline, by the content of their scopes."""

    def __init__(self, loads: Iterable[LoadedFile]) -> None:
        self._loads: dict[str, list[LoadedFile]] = {}
        self._smaller: dict[str, list[LoadedFile]] = {}
        for load in loads:
            self._loads.setdefault(load.scope.content, []).append(load)
            for larger in larger_times(load.scope.content):
                self._smaller.setdefault(larger, []).append(load)

    def same(self, scope: LoadScope) -> list[LoadedFile]:
        """Return the loads of a partition itself."""
        return self._loads.get(scope.content, [])

    def overlapping(self, scope: LoadScope) -> list[LoadedFile]:
        """Return the loads of larger and of smaller partitions."""
        larger = [load for part in larger_times(scope.content) for load in self._loads.get(part, [])]
        return larger + self._smaller.get(scope.content, [])


def _holding(loads: Sequence[LoadedFile], wanted: WantedFile) -> Iterator[LoadedFile]:
    """Yield the loads whose scope covers a file, latest first."""
    for load in reversed(loads):
        if load.scope.covers(wanted.scope, is_same_path=load.path == wanted.path):
            yield load
