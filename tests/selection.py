"""Which tests `make test` runs: every test is either quick, slow or of the matrix, by its folder and its markers.

Quick are those of the first folders, but for those marked `slow`; of the others, those marked `sentinel`.
Processes share the quick tests by kind, longest kind first: one process begins with the whole runs and another with the
component tests, so that neither starts what it does not need. Modules of the other folders then go to whichever process
is free. Each process has a Temporal server and a catalog of its own.
"""

from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

QUICK_FOLDERS = ("unit", "workflow", "component", "e2e")
SLOW_FOLDERS = ("system", "faults")
WHOLE_RUNS = ("e2e", "system", "faults")
"""The folders whose tests need a worker with a warm Spark; those of tests/component need a Spark session."""
ORDER = ("e2e", "system", "faults", "component", "workflow", "unit")
"""The folders in the order in which their tests are given out: long tests first, so that no process ends late."""
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
    """Gives the whole runs to one process, the component tests to one, and other modules to the one that is free."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # a kind is not long because it has many tests

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def group_of(nodeid: str) -> str:
    """Return the name of the group of tests that one process runs together."""
    folder = nodeid.split("/")[1]
    if folder in WHOLE_RUNS:
        return "whole runs"
    return folder if folder == "component" else nodeid.split("::", maxsplit=1)[0]


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
    items.sort(key=lambda item: ORDER.index(folder_of(item.path)))  # a stable sort
    for item in items:
        selection = selection_of(item)
        item.add_marker(selection)
        sentinel = item.get_closest_marker("sentinel")
        config.stash[SELECTED].append((folder_of(item.path), selection, sentinel.args[0] if sentinel else ""))
