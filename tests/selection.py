"""The selections of tests: `quick` (`make test`), `slow` or `matrix` for every test, by its folder and markers.

Tests in the first folders are quick, except those marked `slow`. In the other folders, those marked `sentinel` are.
Processes share the quick tests by kind, longest kind first: one process begins with the whole runs and another with the
component tests, so that neither starts services that it does not need. Modules of the other folders, and those in
subfolders of `component`, which need no Spark session, then go to any free process. Each process has a Temporal server
and a catalog of its own.
"""

from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

QUICK_FOLDERS = ("unit", "workflow", "component", "e2e")
SLOW_FOLDERS = ("system", "faults")
WHOLE_RUNS = ("e2e", "system", "faults")
"""The folders whose tests need a worker with a warm Spark. Tests in tests/component need a Spark session."""
ORDER = ("system", "faults", "e2e", "component", "workflow", "unit")
"""The folders in the order of their distribution: long tests first, so that no process ends late."""
SENTINELS = {
    "a cold run",
    "the worker killed in a write",
    "the worker killed after a merge",
    "a cancel in a write",
    "Nessie killed",
    "a browser",
    "the permissions of Nessie",
}
"""The slow kinds that `make test` samples. A test names the kind that it stands for: `sentinel("a cold run")`."""
SELECTED = pytest.StashKey[list[tuple[str, str, str]]]()
"""Folder, selection and sentinel kind of each collected test."""


class ByKind(LoadScopeScheduling):  # type: ignore[misc]
    """A scheduler that gives whole runs to one process, component tests to another, other modules to any free one."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the number of its tests does not make a kind long

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def group_of(nodeid: str) -> str:
    """Return the name of the group of tests that one process runs together."""
    module = nodeid.split("::", maxsplit=1)[0]
    folder, *rest = module.split("/")[1:]
    if folder in WHOLE_RUNS:
        return "whole runs"
    return folder if folder == "component" and len(rest) == 1 else module


def folder_of(path: Path) -> str:
    """Return the folder of tests/ that contains a test."""
    return path.relative_to(Path(__file__).parent).parts[0]


def selection_of(item: pytest.Item) -> str:
    """Return the selection of a test: `quick`, `slow` or `matrix`."""
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
    items.sort(key=lambda item: ORDER.index(folder_of(item.path)))  # the sort is stable
    for item in items:
        selection = selection_of(item)
        item.add_marker(selection)
        sentinel = item.get_closest_marker("sentinel")
        config.stash[SELECTED].append((folder_of(item.path), selection, sentinel.args[0] if sentinel else ""))
