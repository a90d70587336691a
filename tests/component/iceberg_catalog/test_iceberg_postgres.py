"""PostgreSQL as the database of a JDBC catalog: readers see no half-done publish at any isolation level; its errors."""

import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.connect import open_iceberg
from sluice.errors import BadEnvironment, ServiceUnavailable
from tests.harness.forked import forked_pool
from tests.harness.iceberg_lake import IcebergLake, WriterJob
from tests.harness.postgres_server import PASSWORD, USER, PostgresServer

pytestmark = pytest.mark.slow
BOTH = ("one", "two")
RUNS = 2
"""Minimum number of runs that each process publishes."""
SEEN_ENOUGH = "seen enough"
"""A file that exists as soon as readers have seen rows of several runs."""
_OVERTAKEN = re.compile("another process|others changed|meanwhile")
_LOCATIONS = "SELECT table_name, metadata_location FROM iceberg_tables WHERE table_namespace = %s ORDER BY table_name"


def open_catalog(uri: str, folder: Path) -> IcebergCatalog:
    """Open the catalog as another process would."""
    return open_iceberg("lake", "sql", uri, folder.as_uri(), {})


def open_lake(uri: str, folder: Path, *tables: str) -> IcebergLake:
    reader = SqlCatalog("lake", uri=uri.replace("postgresql:", "postgresql+psycopg:"), warehouse=folder.as_uri())
    return IcebergLake(open_catalog(uri, folder), reader, *tables)


def publish_runs(uri: str, folder: Path, namespace: str, process: int) -> list[int]:
    """Publish runs on both tables, each with a row of its own, until readers have seen enough; return the rows."""
    lake = open_lake(uri, folder)
    lake.namespace, published = namespace, list[int]()
    while len(published) < RUNS or not (folder / SEEN_ENOUGH).exists():
        row = (process + 1) * 100 + len(published)
        job = WriterJob(lake, folder)
        for table in BOTH:
            job.append(table, row)
        try:
            if lake.publish(job.branch, job.record()).merged:
                published.append(row)
        except ServiceUnavailable as error:
            assert _OVERTAKEN.search(str(error))  # overtaken, and never a broken transaction
    return published


def rows_as_readers_see_them(uri: str, namespace: str) -> list[list[int]]:
    """Return the rows of both tables, located by one statement of another program."""
    with psycopg.connect(uri) as connection:
        locations = [location for _, location in connection.execute(_LOCATIONS, (namespace,)).fetchall()]
    return [sorted(StaticTable.from_metadata(each).scan().to_arrow()["id"].to_pylist()) for each in locations]


@pytest.mark.parametrize("isolation", ["read committed", "serializable"])
def test_readers_see_no_half_while_two_processes_publish(
    isolation: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    uri = postgres_server.create_database()
    with psycopg.connect(uri, autocommit=True) as connection:
        name = sql.Identifier(uri.rpartition("/")[2])
        change = "ALTER DATABASE {} SET default_transaction_isolation = {}"
        connection.execute(sql.SQL(change).format(name, sql.Literal(isolation)))
    lake = open_lake(uri, tmp_path, *BOTH)
    with forked_pool(2) as pool:
        runs: list[Future[list[int]]] = [
            pool.submit(publish_runs, uri, tmp_path, lake.namespace, number) for number in range(2)
        ]
        seen = []
        while not all(run.done() for run in runs):
            seen.append(rows_as_readers_see_them(uri, lake.namespace))
            if len({len(one) for one, _ in seen}) > 2:
                (tmp_path / SEEN_ENOUGH).touch()
        published = [row for run in runs for row in run.result()]
    assert all(one == two for one, two in seen)
    assert (tmp_path / SEEN_ENOUGH).exists()  # the reader read while they published
    assert [lake.rows(table) for table in BOTH] == [[1, 2, *sorted(published)]] * 2


def test_two_publishes_that_meet_in_the_database_are_not_both_done(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """Both read the same rows of the database. The later one waits for the earlier; then its requirement fails."""
    uri = postgres_server.create_database()
    lake = open_lake(uri, tmp_path, *BOTH)
    jobs = [WriterJob(lake, tmp_path) for _ in range(2)]
    for number, job in enumerate(jobs):
        job.append("one", 10 + number)
        job.append("two", 10 + number)
    heads = [job.record() for job in jobs]

    def merged(job: WriterJob, head: str) -> bool:
        try:
            return lake.publish(job.branch, head, open_catalog(uri, tmp_path)).merged
        except ServiceUnavailable as error:
            assert _OVERTAKEN.search(str(error))
            return False

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(merged, jobs, heads)) == [False, True]
    assert lake.rows("one") == lake.rows("two") and len(lake.rows("one")) == 3


def test_a_server_that_was_started_again_is_used_at_once(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        lake = open_lake(server.create_database(), tmp_path, "one")
        job = WriterJob(lake, tmp_path)
        job.append("one", 3)
        head = job.record()
        server.restart()
        assert lake.publish(job.branch, head).merged and server.listens_on() == ["127.0.0.1"]
    finally:
        server.stop()
    with pytest.raises(ServiceUnavailable, match="does not answer") as raised:
        lake.catalog.head("main")
    assert PASSWORD not in str(raised.value)


def test_an_empty_database_that_many_processes_open_at_once(postgres_server: PostgresServer, tmp_path: Path) -> None:
    uri = postgres_server.create_database()

    def begin(_: int) -> str:
        for _ in range(3):
            try:
                return open_catalog(uri, tmp_path).initialize_main()
            except ServiceUnavailable as error:
                assert _OVERTAKEN.search(str(error))  # then an activity retries
        raise AssertionError("others were faster each time")

    with ThreadPoolExecutor(6) as threads:
        assert len(set(threads.map(begin, range(6)))) == 1


def _wrong_password(server: PostgresServer) -> str:
    return server.uri("postgres", "another-secret")


def _no_such_database(server: PostgresServer) -> str:
    return server.uri("nowhere")


def _no_right(server: PostgresServer) -> str:
    uri = server.create_database()
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'another-secret'")
    return uri.replace(f"{USER}:{PASSWORD}", "guest:another-secret")


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (_wrong_password, "password authentication failed"),
        (_no_such_database, 'database "nowhere" does not exist'),
        (_no_right, "permission denied"),
        (lambda _: "postgresql://ana:another-secret@db.example:port/lake", "is not an address of a database"),
        (lambda _: "mysql+pymysql://ana:another-secret@db.example/lake", "pymysql is not installed"),
    ],
)
def test_a_wrong_address_is_one_message_without_its_password(
    address: Callable[[PostgresServer], str], why: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    with pytest.raises(BadEnvironment, match=re.escape(why)) as raised:
        open_catalog(address(postgres_server), tmp_path).initialize_main()
    assert "secret" not in str(raised.value) and len(str(raised.value).splitlines()) <= 2
