"""DuckDB on files of an object store: exactly the bytes that it requests, of the audited files alone, or an error."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest
from pyarrow import parquet

from engine.duckdb_scan import DuckDBScan, scan_groups_by
from engine.duckdb_session import DuckDBSession, ParquetView
from engine.scan_engines import in_process_engines
from engine.store_files import StoreFiles
from sluice.checks.base import CheckQuery
from sluice.contracts.spark_jobs import ScanAnswer
from sluice.errors import ServiceUnavailable
from sluice.metadata.statistics import DeleteFile, SchemaField
from sluice.settings import Settings
from tests.harness.folder_store import IO, FolderIO, in_store

ROWS = 300_000
FIELDS = [SchemaField(1, "id", "long"), SchemaField(2, "text", "string")]
THROTTLED = "AWS Error SLOW_DOWN during GetObject operation: Please reduce your request rate."


@pytest.fixture(autouse=True)
def no_errors() -> Iterator[None]:
    FolderIO.errors.clear()
    yield
    FolderIO.errors.clear()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[DuckDBSession]:
    with DuckDBSession("512MB", tmp_path / "scratch", threads=4, io=IO) as session:
        yield session


def data_file(path: Path) -> str:
    """Write rows in many row groups; return the address of the file in the store."""
    columns = [
        pyarrow.field("id", pyarrow.int64(), metadata={"PARQUET:field_id": "1"}),
        pyarrow.field("text", pyarrow.string(), metadata={"PARQUET:field_id": "2"}),
    ]
    rows = pyarrow.table({"id": range(ROWS), "text": [f"row {n}" for n in range(ROWS)]}, schema=pyarrow.schema(columns))
    parquet.write_table(rows, path, row_group_size=20_000)
    return in_store(str(path))


def answer(session: DuckDBSession, sql: str, *paths: str) -> ScanAnswer:
    view = ParquetView("sluice_rows", FIELDS, paths)
    queries = {"k": CheckQuery(user_query=sql)}
    return session.answer([view], queries, {"id": "long"}, with_other_rows=False, sample_rows=5)["k"]


WRONG = "SELECT * FROM sluice_rows WHERE text IS DISTINCT FROM 'row ' || id"


def test_rows_are_those_of_the_files_whatever_thread_reads_them(session: DuckDBSession, tmp_path: Path) -> None:
    paths = [data_file(tmp_path / f"{number}.parquet") for number in range(3)]
    for _ in range(5):
        assert answer(session, WRONG, *paths).metrics["failed"] == 0
    assert answer(session, "SELECT * FROM sluice_rows", *paths).metrics["failed"] == 3 * ROWS


def delete_file(folder: Path, *rows: tuple[str, int]) -> DeleteFile:
    """Write position deletes; return them in metadata's form."""
    columns = {"file_path": [path for path, _ in rows], "pos": pyarrow.array([pos for _, pos in rows], pyarrow.int64())}
    path = folder / "deletes.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    return DeleteFile(in_store(str(path)), "PARQUET", len(rows))


def test_rows_that_are_deleted_in_place_are_those_of_their_file_alone(session: DuckDBSession, tmp_path: Path) -> None:
    first, second, third = (data_file(tmp_path / f"{number}.parquet") for number in range(3))
    deletes = delete_file(tmp_path, (first, 0), (first, 250_000), (first, 250_000), (second, 7), ("s3://folder/x", 1))

    def left(deletes: DeleteFile, *applied: str) -> list[int]:
        by_path = {first: [], **{path: [deletes] for path in applied}}
        view = ParquetView("sluice_rows", FIELDS, [first, second, third], by_path)
        with session.tables([replace(view, name="t.x")], {}) as connection:
            rows = connection.sql("SELECT id FROM t.x WHERE id IN (0, 7, 250_000) ORDER BY id").fetchall()
        return [id for (id,) in rows]

    assert left(deletes, first, second) == [0, 0, 7, 7, 250_000, 250_000]
    assert left(deletes) == [0] * 3 + [7] * 3 + [250_000] * 3
    with pytest.raises(duckdb.InvalidInputException, match=f"names {first}, to which it does not apply"):
        left(deletes, second)
    with pytest.raises(duckdb.InvalidInputException, match="has 5 deletes, and its metadata 4"):
        left(replace(deletes, rows=4), first, second)
    with pytest.raises(duckdb.InvalidInputException, match="cannot be read"):
        left(replace(deletes, form="PUFFIN"), first, second)


def test_threads_that_share_an_open_file_do_not_move_one_another(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    content = bytes(number % 251 for number in range(1_000_000))
    path.write_bytes(content)
    files = StoreFiles(IO, [in_store(str(path))])
    opened = files.open(in_store(str(path)))
    together = threading.Barrier(8)

    def reads(start: int) -> bool:
        together.wait(10)
        same = True
        for offset in range(start, len(content) - 100, 997):
            opened.seek(offset)
            same &= opened.read(100) == content[offset : offset + 100]
        return same

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(reads, range(8)))
    assert (opened.seek(-10, 2), opened.read()) == (len(content) - 10, content[-10:])
    assert (opened.seek(-10, 1), opened.tell()) == (len(content) - 10, len(content) - 10)
    assert files.size(in_store(str(path))) == len(content)


@pytest.mark.parametrize("sql", [
    "SELECT * FROM read_parquet('{other}')",
    "SELECT * FROM read_text('{other}')",
    "SELECT * FROM read_parquet('{folder}/*.parquet')",
    "SELECT * FROM read_parquet('{audited}/../other.parquet')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_parquet('s3://bucket/other.parquet')",
])  # fmt: skip
def test_nothing_but_the_audited_objects_is_read(session: DuckDBSession, tmp_path: Path, sql: str) -> None:
    audited, other = data_file(tmp_path / "audited.parquet"), data_file(tmp_path / "other.parquet")
    assert answer(session, WRONG, audited).metrics["failed"] == 0
    with pytest.raises((duckdb.PermissionException, duckdb.CatalogException)):
        answer(session, sql.format(audited=audited, other=other, folder=in_store(str(tmp_path))), audited)


def test_the_file_system_refuses_what_its_database_would_allow(tmp_path: Path) -> None:
    audited, other = data_file(tmp_path / "audited.parquet"), data_file(tmp_path / "other.parquet")
    files = StoreFiles(IO, [audited])
    assert files.exists(audited) and not files.exists(other) and files.glob(other) == []
    for path, mode in ((other, "rb"), (audited, "wb"), (audited, "r+b")):
        with pytest.raises(PermissionError, match="is not read here"):
            files.open(path, mode)


@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (OSError(THROTTLED), True),
        (OSError("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 28, Timeout was reached"), True),
        (OSError("AWS Error UNKNOWN (HTTP status 500) during HeadObject operation"), True),
        (FileNotFoundError("Path does not exist"), False),
        (PermissionError("AWS Error ACCESS_DENIED"), False),
        (OSError("AWS Error UNKNOWN (HTTP status 400) during HeadObject operation: ExpiredToken"), False),
    ],
)
def test_a_store_that_is_away_is_waited_for_and_a_refusal_is_left_to_spark(
    session: DuckDBSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, waits: bool
) -> None:
    path = data_file(tmp_path / "a.parquet")
    group: Any = type("Group", (), {"table": type("Table", (), {"name": "n.t"})})
    monkeypatch.setattr("engine.duckdb_scan.scan_group", lambda session, _: {"k": answer(session, WRONG, path)})
    FolderIO.errors[:] = [error]
    if waits:
        with pytest.raises(ServiceUnavailable, match=r"the object store does not serve n\.t: AWS Error"):
            scan_groups_by(session, [group])
    else:
        assert scan_groups_by(session, [group]) == {}
    assert scan_groups_by(session, [group])["k"].metrics["failed"] == 0, "the next try is not troubled by this one"


def test_the_engine_reads_the_lake_by_the_properties_of_the_worker(tmp_path: Path) -> None:
    (engine,) = in_process_engines(Settings.of(sluice_home=tmp_path).scan, IO)
    assert isinstance(engine, DuckDBScan) and engine.io == IO
