"""The page of a lake in memory, and commands that reach the same Temporal."""

import pytest

from tests.harness.lake_client import reach
from tests.harness.lake_on_page import LakeOnPage
from tests.harness.memory_lake import MemoryLake
from tests.harness.quarantined_run import HERE


@pytest.fixture
def shown(lake: MemoryLake, monkeypatch: pytest.MonkeyPatch) -> LakeOnPage:
    """A lake, its page, and the command line."""
    shown = LakeOnPage(lake)
    reach(monkeypatch, shown.client, HERE)
    return shown
