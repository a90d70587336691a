"""Following a run or a backfill while nothing answers: the reason is printed once, and the state is read again."""

import asyncio
import io
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from cli.backfills import grid
from cli.context import CommandContext
from cli.run import watch
from sluice.contracts.backfill import BackfillState, BackfillStatus
from sluice.errors import ServiceUnavailable

STATUS = BackfillStatus(name="p", starter="ada", pipeline="p", progress=BackfillState(partitions=[]))


def _context() -> tuple[CommandContext, io.StringIO]:
    out = io.StringIO()
    context = SimpleNamespace(console=Console(file=out, width=100), client=None, installation_with_id=None)
    return cast(CommandContext, context), out


async def test_a_backfill_without_an_answer_is_read_again_and_the_reason_is_printed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context, out = _context()
    answers: list[Any] = [ServiceUnavailable("no worker answers"), ServiceUnavailable("no worker answers"), STATUS]

    async def read(*_: object) -> BackfillStatus:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return cast(BackfillStatus, answer)

    delays = [60, 60]
    """Seconds until each of the first answers of Temporal."""

    async def state(*_: object) -> str:
        await asyncio.sleep(delays.pop(0) if delays else 0)
        return "completed"

    monkeypatch.setattr(grid, "read_backfill", read)
    monkeypatch.setattr(grid, "_workflow_state", state)
    monkeypatch.setattr(grid, "_ASK_AGAIN", 0.05)
    assert await asyncio.wait_for(grid.follow_backfill(context, "p"), 5) == (STATUS, "completed")
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert lines == ["Temporal does not answer", "no worker answers", "a worker answers again"]


async def test_a_run_is_described_again_while_temporal_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    context, out = _context()
    answers = [60, 60, 0]

    async def describe() -> str:
        await asyncio.sleep(answers.pop(0))
        return "described"

    monkeypatch.setattr(watch, "_ASK_AGAIN", 0.05)
    handle = cast(Any, SimpleNamespace(describe=describe))
    shown = watch.ShownStatus(context.console)
    assert await asyncio.wait_for(watch.describe_patiently(handle, shown), 5) == "described"  # type: ignore[comparison-overlap]
    assert out.getvalue().count("Temporal does not answer") == 1
