"""The notice that a command waits for a worker."""

import asyncio

import pytest

from runtime import worker_answer
from runtime.worker_answer import notice_if_slow, waiting_for_worker


async def _wait(seconds: float) -> None:
    with waiting_for_worker():
        await asyncio.sleep(seconds)


def test_there_is_one_notice_however_many_answers_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_answer, "_QUIET", 0.01)
    printed: list[str] = []

    async def command() -> None:
        notice_if_slow(lambda: printed.append("waiting"))
        await _wait(0)
        await asyncio.sleep(0.1)
        assert printed == []
        await asyncio.gather(_wait(0.1), _wait(0.1))
        await _wait(0.1)

    asyncio.run(command())
    assert printed == ["waiting"]
