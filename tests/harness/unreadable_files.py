"""Make files of a landing zone unreadable for its listings, or for its runs alone."""

from pathlib import Path
from typing import Any

import pytest

from activities.run import prepare_run
from lakehouse.arrivals import identify_arrived
from sluice.errors import InvalidInput


def make_unreadable(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return a set: `a.csv` in it makes this file unreadable for listings, and `run a.csv` for runs."""
    names, inspect, find = set[str](), prepare_run.PrepareRunActivity._inspect, identify_arrived._find

    def inspect_or_fail(self: Any, input: Any, progress: Any) -> Any:
        if any(f"run {Path(each).name}" in names for each in input.files or ()):
            raise InvalidInput("permission denied")
        return inspect(self, input, progress)

    def find_or_fail(source: Any, files: Any, progress: Any) -> Any:
        if any(Path(each.path).name in names for each in files):
            raise InvalidInput("access denied")
        return find(source, files, progress)

    monkeypatch.setattr(prepare_run.PrepareRunActivity, "_inspect", inspect_or_fail)
    monkeypatch.setattr(identify_arrived, "_find", find_or_fail)
    return names
