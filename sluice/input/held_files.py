"""Decide whether main holds a file: the one rule for runs, releases and landing zones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sluice.pipeline.scope import NO_SCOPE, LoadScope


@dataclass(frozen=True)
class WantedFile:
    """A file that is to be loaded."""

    path: str
    identity: str
    scope: LoadScope = NO_SCOPE


@dataclass(frozen=True)
class LoadedFile:
    """The load of a file on main: which run loaded it into which table, under which path, and since when."""

    table: str
    path: str
    run_id: str
    workflow_id: str
    commit: str
    at: str
    """When it was published, in ISO 8601."""
    identity: str = ""
    scope: LoadScope = NO_SCOPE


@dataclass(frozen=True)
class HeldFile:
    """A file that main holds, or of which main holds something else than is wanted."""

    wanted: WantedFile
    load: LoadedFile
    is_partly: bool = False
    """Whether the load is of a partition of the file and the whole is wanted, or the reverse."""


class LoadsOfTable:
    """The loads of one table that are in effect."""

    def __init__(self, loads: Sequence[LoadedFile], *, order_matters: bool) -> None:
        """Take the loads.

        Args:
            loads: those of the identities that are asked for, and where the order matters, of the paths, too. The
                oldest is first.
            order_matters: whether rows of a later load take the place of those of an earlier one.
        """
        self._order_matters = order_matters
        self._by_identity: dict[str, list[LoadedFile]] = {}
        self._by_path: dict[str, list[LoadedFile]] = {}
        for load in loads:
            self._by_identity.setdefault(load.identity, []).append(load)
            self._by_path.setdefault(load.path, []).append(load)

    def find(self, wanted: WantedFile) -> HeldFile | None:
        """Return the load by which main holds a file; None where the file is to be loaded.

        Where the order matters, main no longer holds a file whose path was loaded with other content since.
        """
        loads = self._by_identity.get(wanted.identity, [])
        if load := next(_holding(loads, wanted), None):
            latest = next(_holding(self._by_path.get(wanted.path, []), wanted), load)
            if self._order_matters and latest.identity != wanted.identity:
                return None
            return HeldFile(wanted, load)
        partly = next((load for load in reversed(loads) if load.scope.overlaps_partly(wanted.scope)), None)
        return HeldFile(wanted, partly, is_partly=True) if partly else None


def _holding(loads: Sequence[LoadedFile], wanted: WantedFile) -> Iterator[LoadedFile]:
    """Yield the loads whose scope covers a file, the latest first."""
    for load in reversed(loads):
        if load.scope.covers(wanted.scope, is_same_path=load.path == wanted.path):
            yield load
