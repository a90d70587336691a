"""A REST server fails while it publishes several tables: a request is lost, or the server ends between two tables."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from tests.harness.faults import FaultHarness
from tests.harness.iceberg_rest import IcebergRestServer
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import wait_for
from tests.harness.proxies import ICEBERG_FAULTS, Fault, IcebergProxy, once
from tests.harness.rest_stack import RestStack

pytestmark = [
    pytest.mark.warm,
    pytest.mark.parametrize("catalog_kind", [pytest.param("rest", id=pytest.HIDDEN_PARAM)], indirect=True),
]


@pytest.fixture
def server(rest_stack: RestStack) -> IcebergRestServer:
    return rest_stack.server


def _names(name: str) -> list[str]:
    suffix = uuid.uuid4().hex[:8]
    return [f"t.{name}_{suffix}", f"t.{name}_{suffix}_too"]


@pytest.mark.matrix
@pytest.mark.parametrize("fault", ICEBERG_FAULTS)
@pytest.mark.parametrize("kind", ["create", "commit", "transaction", "publish"])
def test_one_request_to_a_rest_server_fails(kind: str, fault: Fault, faults: FaultHarness) -> None:
    """One request of a kind fails: two tables are published, once, by a server that commits one after the other."""
    proxy = IcebergProxy(faults.environment["ICEBERG_URI"], once(kind, fault, times=2))
    try:
        faults.start_worker(ICEBERG_URI=proxy.uri)
        result = faults.result(faults.start_tagged_pair(f"rest-{kind}-{fault}", _names(f"rest_{kind}_{fault}")))
        assert proxy.done
    finally:
        proxy.stop()
    assert (result["outcome"], result["reason"]) == ("published", ""), (result, proxy.done)
    assert not faults.problems([result])


@pytest.mark.parametrize("committed", [1, pytest.param(2, marks=pytest.mark.matrix)])
def test_the_server_is_killed_between_two_tables(
    committed: int, faults: FaultHarness, server: IcebergRestServer
) -> None:
    """The server is killed when it committed some tables of a publish: it comes back, and all are published, once."""
    faults.start_worker()
    server.halt_after(committed)
    run = faults.start_tagged_pair(f"halted-{committed}", _names("halted"))
    try:
        wait_for(lambda: not server.is_alive(), lambda: str(faults.status(run)))
        time.sleep(3)
    finally:
        if not server.is_alive():
            server.start_again()
    result = faults.result(run)
    assert (result["outcome"], result["reason"]) == ("published", ""), result
    assert not faults.problems([result])


@pytest.mark.matrix
def test_the_server_and_the_worker_are_killed_between_two_tables(
    faults: FaultHarness, server: IcebergRestServer
) -> None:
    """The server is killed between two tables, and the worker, too: the next worker publishes both, once."""
    worker = faults.start_worker()
    server.halt_after(1)
    run = faults.start_tagged_pair("halted-both", _names("halted_both"))
    try:
        wait_for(lambda: not server.is_alive(), lambda: str(faults.status(run)))
        worker.kill()
    finally:
        if not server.is_alive():
            server.start_again()
    faults.start_worker()
    result = faults.result(run)
    assert (result["outcome"], result["reason"]) == ("published", ""), result
    assert not faults.problems([result])


@pytest.mark.matrix
@pytest.mark.parametrize("stage", ["writing", "auditing", "publishing"])
def test_the_server_is_killed_and_comes_back(stage: str, faults: FaultHarness, server: IcebergRestServer) -> None:
    """The server is killed under a run and comes back: the run waits, and publishes once."""
    faults.start_worker()
    run = faults.start_tagged_pair(f"away-{stage}", _names(f"away_{stage}"))
    wait_for(lambda: faults.status(run).get("stage") in (stage, "ended"))
    server.kill()
    time.sleep(5)
    server.start_again()
    result = faults.result(run)
    assert (result["outcome"], result["reason"]) == ("published", ""), result
    assert not faults.problems([result])


@pytest.mark.matrix
def test_another_program_moves_a_table_between_two_tables(
    faults: FaultHarness, rest_stack: RestStack, server: IcebergRestServer
) -> None:
    """Another program moves the second table during a publish: the first goes back, the next attempt publishes."""
    faults.start_worker()
    tables = _names("raced")
    first = faults.result(faults.start_tagged_pair("raced-before", tables))
    server.pause_after(1)
    try:
        run = faults.start_tagged_pair("raced", tables)
        before = {table: len(faults.checker.tags(table)) for table in tables}
        wait_for(
            lambda: any(len(faults.checker.tags(table)) > before[table] for table in tables),
            lambda: str(faults.status(run)),
        )
        (other,) = (table for table in tables if len(faults.checker.tags(table)) == before[table])
        writable = server.open().load_table(other)
        writable.append(pa.Table.from_pylist([{"id": 99, "tag": "another"}], schema=writable.schema().as_arrow()))
    finally:
        server.resume()
    result = faults.result(run)
    assert (result["outcome"], result["reason"]) == ("published", ""), result
    assert [each["tables"] for each in result["conflicts"]] == [[other]]
    assert faults.checker.tags(other).count("another") == 1
    problems = [each for each in faults.problems([first, result]) if "another" not in each.lower()]
    assert not problems


def test_a_worker_waits_for_a_server_that_starts_after_it(faults: FaultHarness, server: IcebergRestServer) -> None:
    """A worker that starts before the REST server waits for it."""
    server.kill()
    try:
        with ThreadPoolExecutor(1) as pool:
            worker = pool.submit(faults.start_worker)
            wait_for(lambda: any("asking again" in log.read_text() for log in faults.folder.glob("worker-*.log")))
            server.start_again()
            assert worker.result().process.poll() is None
    finally:
        if not server.is_alive():
            server.start_again()


@pytest.mark.matrix
def test_a_rest_server_is_away_when_a_run_begins(faults: FaultHarness, tmp_path: Path) -> None:
    """The REST server is unavailable when a run begins: it gives up, and says so."""
    proxy = IcebergProxy(faults.environment["ICEBERG_URI"], lambda *_: None)
    faults.changeable |= {"ICEBERG_URI": proxy.uri, "SLUICE_OPEN_TIMEOUT": "3"}
    faults.start_worker()
    proxy.stop()
    source = csv_file(tmp_path / "in.csv", [{"id": 1}])
    ended = faults.run(pipeline("no-catalog", source), SLUICE_OPEN_TIMEOUT="3")
    assert (ended.code, ended.json["outcome"], ended.json["branch"]) == (7, "failed", None)
    assert "the Iceberg catalog does not answer" in ended.json["reason"]
