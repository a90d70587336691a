"""The DuckDB scan is locked: SQL that passes the validation by mistake reaches only the audited data files."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow
import pytest
from pyarrow import parquet

from engine.duckdb_session import DuckDBSession, ParquetView
from sluice.checks.base import CheckQuery
from sluice.contracts.spark_jobs import ScanAnswer
from sluice.metadata.statistics import SchemaField

_FIELDS = [SchemaField(1, "id", "long")]


def data_file(path: Path) -> str:
    schema = pyarrow.schema([pyarrow.field("id", pyarrow.int64(), metadata={"PARQUET:field_id": "1"})])
    parquet.write_table(pyarrow.table({"id": [1, 2, 3]}, schema=schema), path)
    return str(path)


@pytest.fixture
def audited(tmp_path: Path) -> str:
    return data_file(tmp_path / "audited.parquet")


@pytest.fixture
def other(tmp_path: Path) -> str:
    return data_file(tmp_path / "other.parquet")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[DuckDBSession]:
    with DuckDBSession("256MB", tmp_path / "scratch") as session:
        yield session


def answer(session: DuckDBSession, sql: str, *paths: str) -> ScanAnswer:
    """Run a user's query without any validation."""
    view = ParquetView("sluice_rows", _FIELDS, paths)
    types = {"id": "long"}
    return session.answer([view], {"k": CheckQuery(user_query=sql)}, types, with_other_rows=False, sample_rows=5)["k"]


READS = [
    "SELECT * FROM read_text('/etc/hostname')",
    "SELECT * FROM read_blob('/proc/self/environ')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd.csv'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM read_parquet('{other}')",
    "SELECT * FROM read_parquet('{folder}/*.parquet')",
    "SELECT * FROM read_parquet('{folder}/../{name}/other.parquet')",
    "SELECT * FROM read_parquet('{audited}/../other.parquet')",
    "SELECT * FROM read_parquet('s3://bucket/other.parquet')",
    "SELECT * FROM read_parquet('http://127.0.0.1:1/other.parquet')",
    "SELECT * FROM query('SELECT * FROM read_text(''/etc/hostname'')')",
    "SELECT * FROM python_rows",
]
"""Queries that are one SELECT, as a check may use."""

STATEMENTS = [
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY sluice_rows FROM '/etc/passwd'",
    "COPY (SELECT 1) TO '{audited}'",
    "EXPORT DATABASE '{folder}/out'",
    "ATTACH '{folder}/out.db' AS out",
    "SET threads = 1",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET allowed_directories = ['/']",
    "RESET allowed_paths",
    "PRAGMA profiling_output = '{folder}/out'",
    "CALL enable_logging(storage = 'file', storage_path = '{folder}/out')",
    "INSTALL httpfs",
    "FORCE INSTALL httpfs FROM community",
    "LOAD httpfs",
    "LOAD '{folder}/any.duckdb_extension'",
    "CREATE PERSISTENT SECRET s (TYPE http)",
]
"""Statements that no check may use."""


def written(sql: str, audited: str, other: str) -> str:
    folder = Path(audited).parent
    return sql.format(audited=audited, other=other, folder=folder, name=folder.name)


def test_the_audited_files_are_read(session: DuckDBSession, audited: str, other: str) -> None:
    sql = "SELECT * FROM sluice_rows WHERE id > 1"
    assert [row["id"] for row in answer(session, sql, audited).sample] == [2, 3]
    assert answer(session, sql, f"file://{audited}", f"file:{other}").metrics["failed"] == 4
    assert answer(session, sql).metrics["failed"] == 0


@pytest.mark.parametrize("sql", READS)
def test_nothing_else_is_read(session: DuckDBSession, audited: str, other: str, sql: str) -> None:
    python_rows = pyarrow.table({"id": [1]})
    assert python_rows.num_rows
    with pytest.raises((duckdb.PermissionException, duckdb.CatalogException)):
        answer(session, written(sql, audited, other), audited)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_locked_database_itself_refuses_what_is_no_query(
    session: DuckDBSession, audited: str, other: str, sql: str, tmp_path: Path
) -> None:
    """The configuration refuses them; the statements are not examined."""
    before = sorted(tmp_path.iterdir())
    connection = session._open([audited])
    with pytest.raises((duckdb.PermissionException, duckdb.InvalidInputException, duckdb.CatalogException)):
        connection.execute(written(sql, audited, other))
    assert sorted(tmp_path.iterdir()) == before


def test_a_secret_is_not_kept(session: DuckDBSession) -> None:
    with pytest.raises(duckdb.Error):
        session._open([]).execute("CREATE PERSISTENT SECRET s IN local_file (TYPE http, BEARER_TOKEN 'x')")


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{scratch}/out.csv'",
        "ATTACH ':memory:' AS m",
        "CREATE TABLE t (id INT)",
        "SELECT 1; SELECT 2",
    ],
)
def test_only_one_select_is_run(session: DuckDBSession, tmp_path: Path, sql: str) -> None:
    """A session also refuses statements that its database would permit."""
    scratch = session._config["temp_directory"]
    with pytest.raises(duckdb.PermissionException, match="one SELECT"):
        session._run(session._open([]), sql.format(scratch=scratch))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_an_answer_cannot_read_the_files_of_the_answer_before(session: DuckDBSession, audited: str, other: str) -> None:
    sql = f"SELECT * FROM read_parquet('{other}')"
    assert answer(session, sql, other).metrics["failed"] == 3
    with pytest.raises(duckdb.PermissionException):
        answer(session, sql, audited)


def test_two_sessions_share_no_scratch_and_leave_none(tmp_path: Path) -> None:
    with DuckDBSession("64MB", tmp_path) as one, DuckDBSession("64MB", tmp_path) as another:
        assert one._config["temp_directory"] != another._config["temp_directory"]
        assert len(list(tmp_path.iterdir())) == 2
    assert not list(tmp_path.iterdir())


def test_a_hundred_thousand_files_may_be_read(session: DuckDBSession, audited: str) -> None:
    paths = [f"{Path(audited).parent}/data/{number:06}-0-5f3a.parquet" for number in range(100_000)]
    connection = session._open([*paths, audited])
    assert connection.execute(f"SELECT count(*) FROM read_parquet('{audited}')").fetchall() == [(3,)]
