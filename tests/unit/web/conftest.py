"""The page of a lake in memory, and commands that reach the same Temporal."""

import asyncio
from types import SimpleNamespace

import pytest

from cli import context
from tests.harness.lake_on_page import LakeOnPage
from tests.harness.memory_lake import MemoryLake
from tests.harness.quarantined_run import HERE


@pytest.fixture
def shown(lake: MemoryLake, monkeypatch: pytest.MonkeyPatch) -> LakeOnPage:
    """A lake, its page, and the command line."""
    shown = LakeOnPage(lake)
    reached = SimpleNamespace(client=shown.client, installation=HERE, hint="")
    monkeypatch.setattr(context, "connect_command", lambda _: asyncio.sleep(0, reached))
    return shown
