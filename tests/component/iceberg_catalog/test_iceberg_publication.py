"""A publish of two tables on Iceberg's REST reference server and in a database, interrupted at every possible point."""

import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from devstack.stack import ROOT
from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.connect import open_iceberg
from lakehouse.iceberg_catalog.log_commits import PENDING
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.errors import NoSuchBranch, ServiceUnavailable, UnexpectedWrite
from tests.harness.iceberg_lake import IcebergLake, WriterJob, abandon_publications, before_moving
from tests.harness.iceberg_rest import IcebergRestServer
from tests.harness.processes import wait_for
from tests.harness.proxies import ICEBERG_FAULTS, Fault, IcebergProxy, once

BOTH = ("one", "two")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergRestServer]:
    """A server of this module, which the tests end and start again."""
    server = IcebergRestServer(tmp_path_factory.mktemp("rest"))
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def lake(server: IcebergRestServer) -> IcebergLake:
    return IcebergLake(open_rest(server), server.open(), *BOTH)


def open_rest(server: IcebergRestServer, uri: str = "") -> IcebergCatalog:
    """Open the catalog as another process would."""
    return open_iceberg("lake", "rest", uri or server.uri, server.warehouse.as_uri(), {})


def written(lake: IcebergLake, folder: Path, row: int = 3, tables: tuple[str, ...] = BOTH) -> tuple[BranchRef, str]:
    """Return a branch with its head, after a job added a row to tables."""
    job = WriterJob(lake, folder)
    for table in tables:
        job.append(table, row)
    return job.branch, job.record()


def rows(lake: IcebergLake) -> list[list[int]]:
    return [lake.rows(table) for table in BOTH]


def pending(lake: IcebergLake) -> list[str]:
    return [name for name in lake.reader.load_table("sluice.commits").refs() if name.startswith(PENDING)]


def assert_published_once(lake: IcebergLake, branch: BranchRef, head: str) -> None:
    """Assert that main of both tables moved by one commit, that the log agrees, and that a repeat finds the commit."""
    assert rows(lake) == [[1, 2, 3], [1, 2, 3]]
    merges = [commit for commit in lake.catalog.history("main") if commit.merged == head]
    assert len(merges) == 1 and pending(lake) == []
    main = lake.catalog.head("main")
    assert main == merges[0].hash  # main has nothing that the log lacks
    repeated = lake.publish(branch, head)
    assert (repeated.merged, repeated.main_after, lake.catalog.head("main")) == (True, main, main)


def in_thread(work: Callable[[], Any]) -> Future[Any]:
    """Start work in a thread; return a future of its result."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # raised in the test by `result`
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


# The server is killed


@pytest.mark.parametrize("committed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("who", ["the repeat", "another process"])
def test_a_server_killed_in_a_publish(
    committed: int,
    who: str,
    lake: IcebergLake,
    server: IcebergRestServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    branch, head = written(lake, tmp_path)
    server.halt_after(committed)
    with pytest.raises(ServiceUnavailable):
        lake.publish(branch, head)
    wait_for(lambda: not server.is_alive(), server.log.read_text)
    server.start_again()
    assert rows(lake) == [[1, 2, 3], [1, 2, 3] if committed == 2 else [1, 2]] and len(pending(lake)) == 1
    if who == "another process":
        other = open_rest(server)
        other.head("main")
        assert other.find_publication(head, branch.base) is None  # it has not waited long enough
        abandon_publications(monkeypatch)
        other.head("main")
        assert other.find_publication(head, branch.base)
    else:
        assert lake.publish(branch, head).merged
    assert_published_once(lake, branch, head)


def test_many_processes_settle_a_half_at_once(lake: IcebergLake, server: IcebergRestServer, tmp_path: Path) -> None:
    branch, head = written(lake, tmp_path)
    server.halt_after(1)
    with pytest.raises(ServiceUnavailable):
        lake.publish(branch, head)
    wait_for(lambda: not server.is_alive(), server.log.read_text)
    server.start_again()
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: lake.publish(branch, head, open_rest(server)), range(4)))
    assert all(each.merged for each in done) and len({each.main_after for each in done}) == 1
    assert_published_once(lake, branch, head)


# Another program moves a table between the two


@pytest.fixture
def paused(
    lake: IcebergLake, server: IcebergRestServer, tmp_path: Path
) -> Iterator[tuple[BranchRef, str, Future[Any]]]:
    """A publish that the server pauses between the two tables; `server.resume` continues it."""
    branch, head = written(lake, tmp_path)
    server.pause_after(1)
    try:
        future = in_thread(lambda: lake.publish(branch, head, open_rest(server)))
        wait_for(lambda: rows(lake) == [[1, 2, 3], [1, 2]], server.log.read_text)
        yield branch, head, future
    finally:
        (server.folder / "pause-after").unlink(missing_ok=True)


def test_a_half_is_taken_back_where_the_other_table_moved(
    lake: IcebergLake, server: IcebergRestServer, tmp_path: Path, paused: tuple[BranchRef, str, Future[Publication]]
) -> None:
    _, head, future = paused
    lake.append("two", 5)
    server.resume()
    result = future.result(60)
    assert (result.merged, result.conflicts) == (False, [lake.name("two")])
    assert rows(lake) == [[1, 2], [1, 2, 5]] and pending(lake) == []
    lake.catalog.head("main")
    assert lake.catalog.find_publication(head, "") is None
    again = written(lake, tmp_path)
    assert lake.publish(*again).merged and rows(lake) == [[1, 2, 3], [1, 2, 3, 5]]


def test_a_half_that_cannot_be_taken_back_is_loud(
    lake: IcebergLake, server: IcebergRestServer, tmp_path: Path, paused: tuple[BranchRef, str, Future[Publication]]
) -> None:
    _, head, future = paused
    lake.append("one", 4)
    lake.append("two", 5)
    server.resume()
    with pytest.raises(UnexpectedWrite, match=rf"{lake.name('one')} contains this run.*{lake.name('two')} was changed"):
        future.result(60)
    assert rows(lake) == [[1, 2, 3, 4], [1, 2, 5]] and pending(lake) == []
    again = written(lake, tmp_path, 6)
    assert lake.publish(*again).merged and rows(lake) == [[1, 2, 3, 4, 6], [1, 2, 5, 6]]
    assert lake.catalog.find_publication(head, "") is None


def test_a_branch_deleted_between_the_two_tables(
    lake: IcebergLake, server: IcebergRestServer, paused: tuple[BranchRef, str, Future[Publication]]
) -> None:
    branch, head, future = paused
    deleted = in_thread(lambda: open_rest(server).delete_branch(branch.name))
    wait_for(lambda: rows(lake) == [[1, 2, 3], [1, 2, 3]], server.log.read_text)
    server.resume()
    deleted.result(60)
    assert future.result(60).merged and lake.catalog.find_head(branch.name) is None
    assert_published_once(lake, branch, head)


# A process is paused before its request


def test_after_a_branch_was_deleted_nothing_more_is_published(
    lake: IcebergLake, server: IcebergRestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A publish is paused for long. The process that deletes the branch sees its final outcome."""
    branch, head = written(lake, tmp_path)
    seen: list[Publication | None] = []

    def delete() -> None:
        other = open_rest(server)
        other.delete_branch(branch.name)
        seen.append(other.find_publication(head, branch.base))

    before_moving(monkeypatch, delete)
    assert lake.publish(branch, head) == seen[0]
    assert_published_once(lake, branch, head)


def test_a_branch_that_was_deleted_before_is_not_published(lake: IcebergLake, tmp_path: Path) -> None:
    branch, head = written(lake, tmp_path)
    lake.catalog.delete_branch(branch.name)
    with pytest.raises(NoSuchBranch):
        lake.publish(branch, head)
    assert rows(lake) == [[1, 2], [1, 2]] and pending(lake) == []


def test_a_table_that_another_run_published_meanwhile_is_not_overwritten(
    lake: IcebergLake, server: IcebergRestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch, head = written(lake, tmp_path)
    theirs, their_head = written(lake, tmp_path, 7, ("one",))
    before_moving(monkeypatch, lambda: _assert_merged(lake.publish(theirs, their_head, open_rest(server))))
    result = lake.publish(branch, head)
    assert (result.merged, result.conflicts) == (False, [lake.name("one")])
    assert rows(lake) == [[1, 2, 7], [1, 2]] and pending(lake) == []


def test_another_run_published_another_table_meanwhile(
    lake: IcebergLake, server: IcebergRestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch, head = written(lake, tmp_path, 3, ("one",))
    theirs, their_head = written(lake, tmp_path, 3, ("two",))
    before_moving(monkeypatch, lambda: _assert_merged(lake.publish(theirs, their_head, open_rest(server))))
    assert lake.publish(branch, head).merged
    assert_published_once(lake, branch, head)


def test_a_publication_that_was_taken_back_is_not_done_by_a_late_process(
    lake: IcebergLake, server: IcebergRestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch, head = written(lake, tmp_path)

    def take_back() -> None:
        lake.append("two", 5)
        assert not lake.publish(branch, head, open_rest(server)).merged

    before_moving(monkeypatch, take_back)
    with pytest.raises(ServiceUnavailable, match="took the publication back"):
        lake.publish(branch, head)
    assert rows(lake) == [[1, 2], [1, 2, 5]] and pending(lake) == []
    assert lake.publish(branch, head).conflicts == [lake.name("two")]


def _assert_merged(result: Publication) -> None:
    assert result.merged


# Answers are lost


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["commit", "transaction", "publish"])
@pytest.mark.parametrize("fault", ICEBERG_FAULTS)
def test_a_fault_in_each_request_of_a_publish(
    kind: str, fault: Fault, lake: IcebergLake, server: IcebergRestServer, tmp_path: Path
) -> None:
    """A `commit` makes the publication pending, a `transaction` moves the tables, and a `publish` moves the log."""
    branch, head = written(lake, tmp_path)
    lake.catalog.head("main")
    proxy = IcebergProxy(server.uri, once(kind, fault))
    try:
        through = open_rest(server, proxy.uri)
        try:
            assert lake.publish(branch, head, through).merged
        except ServiceUnavailable:
            assert fault in ("refuse", "drop", "500", "504")
            assert lake.publish(branch, head, through).merged
    finally:
        proxy.stop()
    assert proxy.done == [("POST", kind, fault)]
    assert_published_once(lake, branch, head)


@pytest.mark.parametrize("fault", ["repeat", "409"])
def test_a_commit_on_a_branch_that_is_done_twice_or_said_to_conflict(
    fault: Fault, lake: IcebergLake, server: IcebergRestServer, tmp_path: Path
) -> None:
    branch, head = written(lake, tmp_path)
    proxy = IcebergProxy(server.uri, once("commit", fault))
    try:
        through = open_rest(server, proxy.uri)
        version = through.table_version(branch.name, lake.name("one"), head)
        assert version
        made = through.commit_tables(branch.name, head, "properties", properties={"a": "b"})
    finally:
        proxy.stop()
    assert proxy.done == [("POST", "commit", fault)]
    commits = [commit.hash for commit in lake.catalog.history(branch.name)]
    assert commits[:2] == [made, head]


# A database


KILLED = """
import os, signal, sys
from sqlalchemy import event
from lakehouse.iceberg_catalog.connect import open_iceberg
from sluice.contracts.references import BranchRef

uri, warehouse, name, base, identity, head, number = sys.argv[1:]
catalog = open_iceberg("lake", "sql", uri, warehouse, {})
done = []

def count(connection, cursor, statement, *more):
    if statement.lstrip().upper().startswith("UPDATE"):
        done.append(statement)
        if len(done) == int(number):
            os.kill(os.getpid(), signal.SIGKILL)

event.listen(catalog._branches.tables.catalog.engine, "after_cursor_execute", count)
catalog.publish(BranchRef(name=name, base=base, catalog_id=identity), head, "ana", "publish", {})
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_process_killed_between_the_statements_of_a_publish(number: int, tmp_path: Path) -> None:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", tmp_path.as_uri()
    catalog = open_iceberg("lake", "sql", uri, warehouse, {})
    lake = IcebergLake(catalog, SqlCatalog("lake", uri=uri, warehouse=warehouse), *BOTH)
    branch, head = written(lake, tmp_path)
    before = lake.locations()
    arguments = [uri, warehouse, branch.name, branch.base, branch.catalog_id, head, str(number)]
    program = [sys.executable, "-c", textwrap.dedent(KILLED), *arguments]
    killed = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert lake.locations() == before
    assert lake.publish(branch, head).merged
    assert_published_once(lake, branch, head)
