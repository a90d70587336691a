"""The selections of tests: `quick` (`make test`), `slow` (`make test ALL=1`) or `matrix`, by folder and markers.

Tests in the first folders are quick, except those marked `slow`. In the other folders, those marked `sentinel` are.
Processes share the tests by module. The first process begins with the whole runs, the second with the component
tests, and the third with what needs neither a worker nor a Spark session, so that few processes start those. Then each
takes modules that need neither, and last what is left. Each process has a Temporal server and a catalog of its own.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

QUICK_FOLDERS = ("unit", "workflow", "component", "e2e")
SLOW_FOLDERS = ("system", "faults")
WHOLE_RUNS = ("e2e", "system", "faults")
"""The folders whose tests need a worker with a warm Spark.

Modules in tests/component need a Spark session, those in its subfolders do not.
"""
_WHOLE_RUN, _COMPONENT, _OTHER = "whole run", "component", "other"
_KINDS = (
    (_WHOLE_RUN, _OTHER, _COMPONENT),
    (_COMPONENT, _OTHER, _WHOLE_RUN),
    (_OTHER, _COMPONENT, _WHOLE_RUN),
)
"""The kinds of modules that a process takes, in their order, by the number of the process."""
ORDER = ("system", "faults", "e2e", "workflow", "component", "unit")
"""The folders in the order of their distribution, after the long modules.

The workflow tests wait for timers. They come early, while the first two processes keep both cores busy.
"""
LONG = (
    "e2e/test_page.py",
    "system/test_connect_server.py",
    "e2e/test_bad_rows.py",
    "e2e/test_backfill_together.py",
    "system/test_demo.py",
    "faults/test_crashes.py",
)
"""The modules that take minutes. A process takes those of its kind first, so that none ends late."""
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
    """A scheduler that gives each process modules of the kind that it began with, as long as there are any."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the number of its tests does not make a module long

    def _split_scope(self, nodeid: str) -> str:
        return module_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        number = int(node.gateway.id.removeprefix("gw"))
        self.workqueue.move_to_end(next_module(list(self.workqueue), number), last=False)
        super()._assign_work_unit(node)


def module_of(nodeid: str) -> str:
    """Return the path of the module of a test."""
    return nodeid.split("::", maxsplit=1)[0]


def next_module(modules: Sequence[str], process: int) -> str:
    """Return the module that a process takes next: one of its kind, else one of any process, else the first.

    Args:
        process: number of the process, from 0.
    """
    kinds = _KINDS[process % len(_KINDS)]
    return min(modules, key=lambda module: kinds.index(_kind_of(module)))


def _kind_of(module: str) -> str:
    folder, *rest = module.split("/")[1:]
    if folder in WHOLE_RUNS:
        return _WHOLE_RUN
    return _COMPONENT if folder == "component" and len(rest) == 1 else _OTHER


def folder_of(path: Path) -> str:
    """Return the folder of tests/ that contains a test."""
    return path.relative_to(Path(__file__).parent).parts[0]


def _order(item: pytest.Item) -> tuple[int, int]:
    """Return the key by which tests are sorted: long modules first, then by folder."""
    module = module_of(item.nodeid).removeprefix("tests/")
    return LONG.index(module) if module in LONG else len(LONG), ORDER.index(folder_of(item.path))


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
    """Mark each test with its selection, and sort the tests."""
    config.stash[SELECTED] = []
    items.sort(key=_order)  # the sort is stable
    for item in items:
        selection = selection_of(item)
        item.add_marker(selection)
        sentinel = item.get_closest_marker("sentinel")
        config.stash[SELECTED].append((folder_of(item.path), selection, sentinel.args[0] if sentinel else ""))
