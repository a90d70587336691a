"""The harness of the time-skipping server locks the time as often as it unlocks it."""

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import skipped_time


class SlowService:
    """A test service that counts its locks. The caller could be cancelled before an unlock is answered."""

    def __init__(self) -> None:
        self.locks = 1
        self.unlocking = asyncio.Event()

    async def unlock_time_skipping(self, _: Any) -> None:
        self.locks -= 1
        self.unlocking.set()
        await asyncio.sleep(0.05)

    async def lock_time_skipping(self, _: Any) -> None:
        self.locks += 1


async def test_a_result_that_comes_during_an_unlock_leaves_the_time_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skipped_time, "_STUCK", 0.01)
    monkeypatch.setattr(skipped_time, "_FREED", 0.01)
    service = SlowService()
    environment: Any = SimpleNamespace(time_skipping_unlocked=nullcontext, client=SimpleNamespace(test_service=service))
    skipped_time.free_stuck_time(environment)
    async with environment.time_skipping_unlocked():
        await service.unlocking.wait()
    assert service.locks == 1
