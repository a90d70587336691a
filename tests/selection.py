"""Which tests `make test` runs: every test is either quick, slow or of the matrix, by its folder and its markers.

Quick are those of the first folders, but for those marked `slow`; of the others, those marked `sentinel`.
The quick tests run in two processes: one for whole runs, one for the rest, so that no process starts what it does not
need. Each has a Temporal server and a catalog of its own.
"""

from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

QUICK_FOLDERS = ("unit", "workflow", "component", "e2e")
SLOW_FOLDERS = ("system", "faults")
WHOLE_RUNS = ("e2e", "system", "faults")
"""The folders whose tests need a worker with a warm Spark; those of tests/component need a Spark session."""
SENTINELS = {
    "a cold run",
    "the worker killed in a write",
    "the worker killed after a merge",
    "a cancel in a write",
    "Nessie killed",
    "a browser",
    "the permissions of Nessie",
}
"""What `make test` tries of the slow kinds; a test names what it stands for: `sentinel("a cold run")`."""
SELECTED = pytest.StashKey[list[tuple[str, str, str]]]()
"""Of each test that was collected: its folder, its selection, and what it is a sentinel of."""


class ByKind(LoadScopeScheduling):  # type: ignore[misc]
    """Gives one process the whole runs, and another one the rest."""

    def _split_scope(self, nodeid: str) -> str:
        return "whole runs" if nodeid.split("/")[1] in WHOLE_RUNS else "parts"


def folder_of(path: Path) -> str:
    """Return the folder of tests/ that a test is in."""
    return path.relative_to(Path(__file__).parent).parts[0]


def selection_of(item: pytest.Item) -> str:
    """Return which selection a test belongs to: `quick`, `slow` or `matrix`."""
    if item.get_closest_marker("matrix"):
        return "matrix"
    if item.get_closest_marker("slow"):
        return "slow"
    if folder_of(item.path) in QUICK_FOLDERS or item.get_closest_marker("sentinel"):
        return "quick"
    return "slow"


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its selection."""
    config.stash[SELECTED] = []
    for item in items:
        selection = selection_of(item)
        item.add_marker(selection)
        sentinel = item.get_closest_marker("sentinel")
        config.stash[SELECTED].append((folder_of(item.path), selection, sentinel.args[0] if sentinel else ""))
