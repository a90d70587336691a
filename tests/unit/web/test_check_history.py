"""The verdicts of earlier runs on the page: the heat map of a table, and the line of a check."""

import asyncio
from datetime import datetime, timedelta, timezone
from typing import cast

import duckdb
import pytest
from temporalio.client import Client

from engine.queries.sql import read_rows
from sluice.contracts.lake_queries import QueryAuditResultsInput, QueryRows
from sluice.errors import ServiceUnavailable
from sluice.settings import Settings
from tests.harness.lake_client import LakeClient
from web.audit.history import CheckLines, HeatMap, VerdictHistory, heat_maps, verdicts_query
from web.timing import PageTiming

AT = datetime(2026, 11, 22, 7, 45, tzinfo=timezone.utc)
FIRST = ["t.x", "r1", "w", "2026-11-22T07:45:00+00:00", "published"]
SECOND = ["t.x", "r2", "w", "2026-11-23T07:45:00+00:00", "quarantined"]
ANSWER = QueryRows(
    columns=["table_name", "run_id", "workflow_id", "ended", "outcome", "verdicts"],
    rows=[
        [*FIRST, [["not_null", "id", "pass", ""], ["row_count", "", "fail", "0"], ["row_count", "", "pass", ""]]],
        [*SECOND, [["not_null", "id", "fail", "3"], ["unique", "id", "error", ""]]],
    ],
)


def test_the_query_returns_the_latest_runs_of_each_table() -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE results (table_name TEXT, run_id TEXT, workflow_id TEXT, ended_at TIMESTAMPTZ, outcome TEXT, "
            "check_name TEXT, columns TEXT[], check_label TEXT, verdict TEXT, observed TEXT)"
        )
        for number in range(32):
            run = [f"r{number:02}", "w", AT + timedelta(days=number), "published"]
            check = ["not_null", ["id", "day"], None, "pass", "0"]
            named = ["sql", [], "no orphans", "fail", "x" * 500]
            rows = [["t.x", *run, *check], ["t.x", *run, *named], ["t.o'y", *run, *check], ["t.z", *run, *check]]
            connection.executemany(f"INSERT INTO results VALUES ({', '.join('?' * 10)})", rows)
        answer = read_rows(connection, verdicts_query(["t.x", "t.o'y"]))
    runs = [run for table, run, *_ in answer.rows if table == "t.x"]
    assert runs == [f"r{number:02}" for number in range(2, 32)]
    assert {table for table, *_ in answer.rows} == {"t.x", "t.o'y"}
    shown = heat_maps(answer)["t.x"]
    assert [name for name, _ in shown.checks] == ["not_null(id, day)", "sql(no orphans)"]
    assert shown.runs[0] == ("/runs/w/r02", "2026-11-24 07:45 UTC: published", "published")
    passed, failed = (cells[0] for _, cells in shown.checks)
    assert passed.title == "2026-11-24 07:45 UTC: passed"
    assert failed.title == f"2026-11-24 07:45 UTC: failed, observed {'x' * 80}"


def test_a_heat_map_has_a_cell_for_each_check_in_each_run() -> None:
    shown = heat_maps(ANSWER)["t.x"]
    assert [outcome for _, _, outcome in shown.runs] == ["published", "quarantined"]
    assert {name: [each.look for each in cells] for name, cells in shown.checks} == {
        "not_null(id)": ["passed", "failed"],
        "row_count": ["failed", "notrun"],
        "unique(id)": ["notrun", "unanswered"],
    }
    titles = {name: [each.title for each in cells] for name, cells in shown.checks}
    assert titles["not_null(id)"][1] == "2026-11-23 07:45 UTC: failed, observed 3"
    assert titles["unique(id)"] == ["2026-11-22 07:45 UTC: not run", "2026-11-23 07:45 UTC: could not be answered"]
    assert {cells[0].link for _, cells in shown.checks} == {"/runs/w/r1"}


def test_the_line_of_a_check_is_its_row_of_the_heat_map() -> None:
    lines = CheckLines(heat_maps(ANSWER))
    line = lines.line("t.x", "unique(id)")
    assert line and line.cells == dict(lines.maps["t.x"].checks)["unique(id)"]
    assert line.summary == "last 2 runs: 1 could not be answered, 1 not run"
    assert lines.line("t.x", "unique(name)") is lines.line("t.y", "unique(id)") is None
    passed = heat_maps(QueryRows(columns=[], rows=ANSWER.rows[:1]))["t.x"]
    only = CheckLines({"t.x": passed}).line("t.x", "not_null(id)")
    assert only and only.summary == "last 1 run: all passed"


class Lake:
    """Answers the queries about the lake, and counts them."""

    def __init__(self) -> None:
        self.queries = 0
        self.error: Exception | None = None
        self.answers = asyncio.Event()
        self.answers.set()
        client = LakeClient({"query_audit_results": self._answer})
        self.reader = VerdictHistory(cast(Client, client), Settings().installation, PageTiming(patience=0.05))

    async def _answer(self, _: QueryAuditResultsInput) -> QueryRows:
        self.queries += 1
        await self.answers.wait()
        if self.error:
            raise self.error
        return ANSWER


@pytest.fixture
async def lake() -> Lake:
    return Lake()


async def test_readers_share_a_history(lake: Lake) -> None:
    read = lake.reader
    first, second = await asyncio.gather(read.lines(["t.x", "t.y"]), read.lines(["t.y", "t.x"]))
    assert first.maps == second.maps == heat_maps(ANSWER) and lake.queries == 1
    assert await read.lines([]) == CheckLines() and lake.queries == 1, "no check has a verdict yet"
    assert await read.heat_map("t.x") == heat_maps(ANSWER)["t.x"]
    assert await read.heat_map("t.y") == HeatMap()


async def test_a_run_is_shown_without_its_history(lake: Lake) -> None:
    read = lake.reader
    lake.answers.clear()
    assert "still being read" in (await read.lines(["t.x"])).problem
    lake.answers.set()
    assert (await read.lines(["t.x"])).maps and lake.queries == 1, "a reader that left did not cancel the query"
    lake.error = ServiceUnavailable("no worker")
    assert (await read.lines(["t.y"])).problem == "The verdicts of earlier runs are not known: no worker"
