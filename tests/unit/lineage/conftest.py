"""Fixtures of OpenLineage events."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.lineage import LineageReceiver
from tests.harness.lineage_events import Lake


@pytest.fixture(autouse=True)
def _no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run each test in a folder and a home without configuration; undo the client's changes of variables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def receiver() -> Iterator[LineageReceiver]:
    with LineageReceiver() as server:
        yield server


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")
