"""Ended runs: each is listed once, none is lost, and those that Temporal forgot disappear."""

import re
from collections.abc import AsyncIterator
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from web.run import ended_runs
from web.run.ended_runs import EndedRuns


class Temporal:
    """The part of a client that lists runs. It lists those that ended since the time in the query."""

    def __init__(self) -> None:
        self.ended: dict[str, datetime] = {}
        self.listed: list[int] = []
        """Number of runs in each list."""

    def end(self, *run_ids: str, ago: timedelta = timedelta()) -> None:
        self.ended.update(dict.fromkeys(run_ids, datetime.now(timezone.utc) - ago))

    async def list_workflows(self, query: str, limit: int, page_size: int) -> AsyncIterator[Any]:
        (since,) = re.findall(r'CloseTime >= "([^"]+)"', query)
        assert 'SluiceOutcome = "published"' in query
        newest = sorted(self.ended.items(), key=lambda each: each[1], reverse=True)
        matching = [each for each in newest if each[1] >= datetime.fromisoformat(since)][:limit]
        self.listed.append(0)
        for run_id, closed in matching:
            self.listed[-1] += 1
            yield SimpleNamespace(
                id="p-0123456789ab", run_id=run_id, status=WorkflowExecutionStatus.COMPLETED, start_time=closed,
                close_time=closed, search_attributes={"SluiceOutcome": ["published"]}, memo=_no_memo,
            )  # fmt: skip


async def _no_memo() -> dict[str, Any]:
    return {}


async def ids(runs: EndedRuns) -> list[str]:
    return [each.run_id for each in await runs.read()]


@pytest.fixture
def temporal() -> Temporal:
    return Temporal()


@pytest.fixture
def runs(temporal: Temporal) -> EndedRuns:
    return EndedRuns(cast(Client, temporal), 5, state="published", within=timedelta(hours=1))


async def test_a_run_is_listed_until_all_that_ended_with_it_are(temporal: Temporal, runs: EndedRuns) -> None:
    temporal.end("a", ago=timedelta(minutes=30))
    temporal.end("b", ago=timedelta(minutes=20))
    assert await ids(runs) == ["b", "a"]
    temporal.end("late", ago=timedelta(minutes=21))  # Temporal listed it after a run that ended later
    temporal.end("c", ago=timedelta(minutes=10))
    assert await ids(runs) == ["c", "b", "late", "a"]
    assert await ids(runs) == ["c", "b", "late", "a"]
    assert temporal.listed == [2, 3, 1]


async def test_the_newest_are_kept_and_old_ones_left_out(temporal: Temporal, runs: EndedRuns) -> None:
    temporal.end("old", ago=timedelta(minutes=61))
    for number in range(7):
        temporal.end(f"{number}", ago=timedelta(minutes=10 * number))
    assert await ids(runs) == ["0", "1", "2", "3", "4"]
    temporal.end("new")
    assert set(await ids(runs)) == {"new", "0", "1", "2", "3"}


async def test_nothing_has_ended_yet(temporal: Temporal, runs: EndedRuns) -> None:
    assert await ids(runs) == []
    temporal.end("first", ago=timedelta(minutes=50))
    assert await ids(runs) == ["first"], "a clock that differs from that of Temporal hides no run"


async def test_a_burst_is_listed_once(temporal: Temporal) -> None:
    """Reading a listed run takes long, and all of a burst ended lately."""
    runs = EndedRuns(cast(Client, temporal), 500, state="published")
    for number in range(400):
        temporal.end(f"{number}", ago=timedelta(milliseconds=number + 1))
    assert len(await ids(runs)) == 400
    temporal.end("new")
    assert set(await ids(runs)) == {"new", *map(str, range(400))} and temporal.listed == [400, 51]


async def test_runs_that_temporal_forgot_disappear(
    temporal: Temporal, runs: EndedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporal.end("a", "b", ago=timedelta(minutes=30))
    assert set(await ids(runs)) == {"a", "b"}
    del temporal.ended["a"]
    assert set(await ids(runs)) == {"a", "b"}
    monkeypatch.setattr(ended_runs, "_WHOLE_AFTER", 0.0)
    assert await ids(runs) == ["b"]
