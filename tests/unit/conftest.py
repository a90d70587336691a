"""Fixtures of several modules: a lake in memory, a landing folder, and a landing zone."""

from pathlib import Path

import pytest
from obstore.store import MemoryStore

from lakehouse.source_files import object_store
from tests.harness.loading_run import Folder
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.memory_zone import Zone


@pytest.fixture
def catalog() -> MemoryCatalog:
    return MemoryCatalog()


@pytest.fixture
def lake(catalog: MemoryCatalog, tmp_path: Path) -> MemoryLake:
    """A lake whose catalog is in memory, and whose tables are in a folder."""
    return MemoryLake(catalog, tmp_path / "tables")


@pytest.fixture
def folder(lake: MemoryLake, tmp_path: Path) -> Folder:
    """A landing folder, and the runs that load its files."""
    return Folder(lake, tmp_path / "landing")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """A store in memory, which every address of a store leads to."""
    store = MemoryStore()
    monkeypatch.setattr(object_store, "open_store", lambda _: store)
    return store


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    """A landing zone of real files."""
    return Zone(tmp_path)
