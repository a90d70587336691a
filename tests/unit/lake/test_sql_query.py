"""People's SQL: each query can read only its tables, and has memory and time of its own."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from devstack.stack import ROOT
from engine.queries.runner import QueryRunner
from sluice.contracts.lake_queries import MAX_RESULT_BYTES, QueryRows
from sluice.errors import InvalidInput, ServiceUnavailable
from tests.harness.processes import wait_for
from tests.harness.queries import MEMORY, SECONDS, BlockingQueries, blocking_queries, query_processes

RESULTS = pa.table({"run_id": ["a", "b"], "columns": [["x"], None], "failed_rows": [0, 3]})
ENDLESS = "WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t) SELECT count(*) FROM t WHERE a < 0"
MEBIBYTE = 1024**2


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingQueries]:
    with blocking_queries(tmp_path_factory.mktemp("queries")) as queries:
        yield queries


def run(queries: BlockingQueries, sql: str, rows: pa.Table = RESULTS) -> QueryRows:
    return queries.read(sql, {"results": rows})


def test_a_query_returns_columns_and_rows(queries: BlockingQueries) -> None:
    answer = run(queries, "SELECT run_id, columns, sum(failed_rows) AS bad FROM results GROUP BY ALL ORDER BY 1")
    assert answer.columns == ["run_id", "columns", "bad"]
    assert answer.rows == [["a", ["x"], "0"], ["b", None, "3"]]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{file}')",
        "COPY results TO '{file}'",
        "SELECT * FROM results_of_python",
        "SET enable_external_access = true",
        "ATTACH '{file}'",
        "INSTALL httpfs",
    ],
)
def test_a_query_reaches_nothing_else(queries: BlockingQueries, sql: str, tmp_path: Path) -> None:
    file = tmp_path / "file.csv"
    file.write_text("secret\n")
    with pytest.raises(InvalidInput):
        run(queries, sql.format(file=file))
    assert file.read_text() == "secret\n"


@pytest.mark.parametrize(("sql", "message"), [("SELECT", "SELECT clause"), ("", "returns no rows")])
def test_what_is_no_query_is_refused_with_a_reason(queries: BlockingQueries, sql: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        run(queries, sql)


def test_a_value_in_a_later_row_that_cannot_be_cast_is_the_user_s_error(queries: BlockingQueries) -> None:
    rows = pa.table({"observed": ["1"] * 5000 + ["x"]})
    with pytest.raises(InvalidInput, match=r"^Could not convert string 'x'") as raised:
        run(queries, "SELECT observed::INT FROM results", rows)
    assert "\n" not in str(raised.value)


def test_a_result_that_temporal_cannot_carry_is_refused(queries: BlockingQueries) -> None:
    with pytest.raises(InvalidInput, match=r"larger than 1 MiB.*LIMIT"):
        run(queries, f"SELECT repeat('x', {MAX_RESULT_BYTES}) FROM results")
    with pytest.raises(InvalidInput, match=r"larger than 1 MiB.*LIMIT"):
        run(queries, f'SELECT 1 AS "{"x" * MAX_RESULT_BYTES}"')


BOMBS = {
    "a long text": "SELECT repeat('x', 3000000000)",
    "a long text that is measured": "SELECT length(repeat('x', 3000000000))",
    "a padded text": "SELECT lpad('x', 2000000000, 'y')",
    "texts that are joined": "SELECT string_agg(repeat('abc', 100), ',') FROM range(100000000)",
    "a list": "SELECT list(range) FROM range(10000000000)",
    "a cross join of ranges": "SELECT * FROM range(100000000000) a, range(100000000) b ORDER BY random()",
    "a recursion that doubles": "WITH RECURSIVE t AS (SELECT 'x' AS a UNION ALL SELECT a || a FROM t) SELECT a FROM t",
    "a regex that grows": "SELECT regexp_replace(repeat('a', 100000000), 'a', repeat('b', 100), 'g')",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_query_that_takes_too_much_memory_ends_by_itself(queries: BlockingQueries, bomb: str) -> None:
    with pytest.raises(InvalidInput, match=r"used more than 366\.2 MiB of memory.*LIMIT.*SLUICE_SCAN_MEMORY"):
        run(queries, BOMBS[bomb])
    assert run(queries, "SELECT 1").rows == [[1]]


@pytest.mark.parametrize(
    "sql",
    ["SELECT " + "(" * 50_000 + "1" + ")" * 50_000, "SELECT " + "abs(" * 3000 + "1" + ")" * 3000],
    ids=["parentheses", "functions"],
)
def test_sql_that_is_nested_too_deeply_ends_no_worker(queries: BlockingQueries, sql: str) -> None:
    with pytest.raises(InvalidInput, match="nested too deeply"):
        queries.wait_for(queries.runner.tables_in(sql))
    with pytest.raises(InvalidInput, match=r"nested too deeply|depth|memory"):
        run(queries, sql)


def test_nothing_is_left_of_queries(queries: BlockingQueries) -> None:
    assert not list(queries.scratch.glob("query-*"))
    wait_for(lambda: not query_processes(os.getpid()))


async def _start(runner: QueryRunner, sql: str) -> tuple["asyncio.Task[QueryRows]", psutil.Process]:
    """Start a query; return it with its process."""
    task = asyncio.create_task(runner.read(sql))
    while not (processes := query_processes(os.getpid())):
        await asyncio.sleep(0.02)
        assert not task.done()
    return task, processes[0]


def test_the_system_limits_the_process_of_a_query(queries: BlockingQueries) -> None:
    async def look() -> tuple[int, int, int]:
        task, process = await _start(queries.runner, ENDLESS)
        try:
            while process.rlimit(psutil.RLIMIT_AS)[1] == resource.RLIM_INFINITY:
                await asyncio.sleep(0.02)
            limits = [process.rlimit(each)[1] for each in (psutil.RLIMIT_AS, psutil.RLIMIT_CPU, psutil.RLIMIT_CORE)]
            return limits[0], limits[1], limits[2]
        finally:
            task.cancel()
            await asyncio.wait([task])

    memory, seconds, core = queries.wait_for(look())
    assert 366 * MEBIBYTE < memory < 2048 * MEBIBYTE, f"{MEMORY} and half as much, beside what Python itself has"
    assert SECONDS <= seconds <= 4 * SECONDS
    assert core == 0


@pytest.mark.parametrize("ended_by", ["a cancel", "its guard"])
def test_a_query_ends_with_what_waits_for_it(queries: BlockingQueries, ended_by: str) -> None:
    async def end() -> psutil.Process:
        task, process = await _start(queries.runner, ENDLESS)
        if ended_by == "a cancel":
            task.cancel()
        else:
            os.kill(os.getsid(process.pid), signal.SIGKILL)
        await asyncio.wait([task])
        assert task.cancelled() or isinstance(task.exception(), InvalidInput)
        return process

    process = queries.wait_for(end())
    wait_for(lambda: not _runs(process))  # the system ends it after its guard
    assert not list(queries.scratch.glob("query-*"))


def _runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_a_query_ends_with_a_worker_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom engine.queries.runner import QueryRunner\n"
        f"asyncio.run(QueryRunner({MEMORY!r}, Path(sys.argv[1])).read({ENDLESS!r}))\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT)
    try:
        _wait_for(lambda: query_processes(worker.pid))
        processes = psutil.Process(worker.pid).children(recursive=True)
    finally:
        worker.kill()
        worker.wait()
    _wait_for(lambda: not any(map(_runs, processes)))


def _wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_query_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    ended = pytest.raises(InvalidInput, match="took longer than 1 seconds, and was ended")
    with blocking_queries(tmp_path, seconds=1) as queries, ended:
        run(queries, ENDLESS)
    wait_for(lambda: not query_processes(os.getpid()))


def test_queries_take_slots(tmp_path: Path) -> None:
    async def both(runner: QueryRunner) -> None:
        first = asyncio.create_task(runner.read(ENDLESS))
        await asyncio.sleep(0)  # the first query takes the slot
        with pytest.raises(ServiceUnavailable, match="runs 1 other queries: run the command again"):
            await runner.read("SELECT 1")
        first.cancel()
        await asyncio.wait([first])

    with blocking_queries(tmp_path, at_once=1, queue_timeout=0.01) as queries:
        queries.wait_for(both(queries.runner))


def test_what_a_killed_worker_left_is_removed(queries: BlockingQueries) -> None:
    left, recent = queries.scratch / "query-left", queries.scratch / "query-recent"
    for folder in (left, recent):
        folder.mkdir()
        (folder / "rows-0.arrow").write_text("rows")
    os.utime(left, (0, 0))
    run(queries, "SELECT 1")
    assert not left.exists() and recent.exists()
    (recent / "rows-0.arrow").unlink()
    recent.rmdir()
