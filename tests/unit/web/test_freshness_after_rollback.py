"""The freshness of a table whose latest load was rolled back: main lacks that load, and a roll-back brings nothing."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any, cast

from temporalio.client import WorkflowExecution, WorkflowExecutionStatus

from runtime.run.listed_run import ListedRun, listed_run
from sluice.contracts.arrivals import ZoneStatus
from sluice.contracts.starting import PipelineText
from web.lake.freshness import table_freshness
from workflows.search_attributes import ROLLS_BACK_MEMO

AT = datetime(2026, 11, 22, 7, 45, tzinfo=timezone.utc)
ZONE = ZoneStatus(
    name="orders", pipeline=PipelineText(name="orders.yml", text="", folder=""), batches=[], paused="", problem="",
    counts={}, latest_arrival=None, next_look="", expect=86400.0,
)  # fmt: skip


def published(day: int, *rolls_back: str) -> ListedRun:
    async def memo() -> dict[str, Any]:
        return {ROLLS_BACK_MEMO: list(rolls_back)} if rolls_back else {}

    at = AT + timedelta(days=day)
    execution = SimpleNamespace(
        id=f"orders-{day}", run_id=f"r{day}", start_time=at, close_time=at, status=WorkflowExecutionStatus.COMPLETED,
        search_attributes={"SluicePipeline": ["orders"], "SluiceOutcome": ["published"], "SluiceTable": ["t.orders"]},
        memo=memo,
    )  # fmt: skip
    return asyncio.run(listed_run(cast(WorkflowExecution, execution)))


def latest(runs: Sequence[ListedRun]) -> tuple[datetime, bool]:
    known = table_freshness(runs, [], [ZONE], AT + timedelta(days=10))["t.orders"]
    return known.published, known.is_late


def test_neither_a_rolled_back_run_nor_its_roll_back_is_a_publication() -> None:
    loads = [published(0), published(9)]
    assert latest(loads) == (AT + timedelta(days=9), False)
    back = published(10, "r9")
    assert latest([*loads, back]) == (AT, True)
    assert latest([*loads, back, published(11, "r10")]) == (AT + timedelta(days=9), False), "main has it again"
    assert table_freshness([published(9), back], [], [ZONE], AT + timedelta(days=10)) == {}
