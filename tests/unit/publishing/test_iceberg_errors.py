"""Errors and addresses of the catalog `iceberg`: files of properties, unavailable servers, and sentences for people."""

from pathlib import Path

import pytest
import requests
from pyiceberg.exceptions import (
    BadRequestError,
    CommitStateUnknownException,
    ForbiddenError,
    OAuthError,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
)
from sqlalchemy.exc import OperationalError

from lakehouse.iceberg_catalog.connect import load_pyiceberg, open_iceberg
from lakehouse.iceberg_catalog.errors import explain_absence, translate_catalog_errors
from lakehouse.iceberg_catalog.settings import open_iceberg_catalog
from lakehouse.iceberg_catalog.transactions import CommitConflict
from lakehouse.open_catalog import catalog_address, open_catalog
from sluice.errors import BadEnvironment, CatalogRefused, ServiceUnavailable
from sluice.settings import Settings, read_settings
from tests.harness.http_receiver import HttpReceiver
from tests.harness.rest_catalog import RestCatalogServer

# Settings


def opened(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "catalog.properties"
    if content is not None:
        file.write_bytes(content)
    environment = {"CATALOG": "sql", "SLUICE_HOME": str(tmp_path), "ICEBERG_PROPERTIES_FILE": str(file)}
    open_iceberg_catalog(read_settings(environment))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        (b"a=b\n\n# c\nhunter2hunter2\n", "line 4: this is not a property: write key=value"),
        (b"=hunter2\n", "line 1: this is not a property"),
        (b"a=hunter2\n a = hunter2\n", "line 2: a occurs twice"),
        (b"a=\xff\xfe\x00hunter2", "is not text in UTF-8"),
    ],
)
def test_a_file_of_properties_that_is_wrong(content: bytes | None, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadEnvironment, match=message) as refused:
        opened(tmp_path, content)
    assert "hunter2" not in str(refused.value) and "catalog.properties" in str(refused.value)


def test_a_folder_for_a_file_of_properties(tmp_path: Path) -> None:
    (tmp_path / "catalog.properties").mkdir()
    with pytest.raises(BadEnvironment, match="cannot be read: Is a directory"):
        opened(tmp_path, None)


def test_a_file_of_properties_of_any_make(tmp_path: Path) -> None:
    opened(tmp_path, "\ufeff# ours\r\n\r\npool.size = a=b=c\r\n".encode())


# Errors


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (requests.ConnectionError(), ServiceUnavailable),
        (requests.Timeout(), ServiceUnavailable),
        (ServerError("500"), ServiceUnavailable),
        (ServiceUnavailableError("503"), ServiceUnavailable),
        (TooManyRequestsError("429"), ServiceUnavailable),
        (CommitStateUnknownException("504"), ServiceUnavailable),
        (CommitConflict("moved"), ServiceUnavailable),
        (OperationalError("select", {}, Exception("database is locked")), ServiceUnavailable),
        (UnauthorizedError("401"), BadEnvironment),
        (ForbiddenError("403"), BadEnvironment),
        (OAuthError("token"), BadEnvironment),
        (BadRequestError("400"), CatalogRefused),
        (KeyError("a mistake of ours"), KeyError),
    ],
)
def test_what_clients_raise_becomes_the_domains_errors(raised: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected), translate_catalog_errors():
        raise raised


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"iceberg_uri": "sqlite:///{folder}/a-file"}, "DatabaseError: .*file is not a database"),
        ({"iceberg_uri": "sqlite:///{folder}/a-file/x/catalog.db"}, "NotADirectoryError"),
        ({"iceberg_uri": "nonsense://ana:hunter2pass@127.0.0.1:1/x"}, "is not an address of a database"),
        ({"iceberg_uri": "postgresql+nonsense://ana:hunter2pass@127.0.0.1:1/x"}, "is not an address of a database"),
        ({"catalog": "rest"}, "needs the server's address"),
        ({"catalog": "rest", "iceberg_uri": "localhost:8181"}, "InvalidSchema: No connection adapters"),
        ({"catalog": "rest", "iceberg_uri": "{other}"}, "ValidationError"),
    ],
)
def test_a_catalog_that_cannot_be_opened_is_one_line_with_the_settings_to_look_at(
    changed: dict[str, str], message: str, tmp_path: Path
) -> None:
    """Any error of the layers below becomes one line, which a starting worker prints before it ends."""
    (tmp_path / "a-file").write_text("no database, and long enough to be looked at as one")
    other = HttpReceiver()
    other.answer = lambda number: 200  # another kind of server
    named = {key: value.format(folder=tmp_path, other=other.url) for key, value in changed.items()}
    settings = Settings.of(**{"catalog": "sql", "sluice_home": tmp_path, **named})
    with pytest.raises(BadEnvironment, match=message) as refused:
        open_catalog(settings)
    other.close()
    text = str(refused.value)
    assert "ICEBERG_URI" in text and "\n" not in text and "hunter2" not in text


def test_a_database_that_cannot_be_written_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    open_iceberg("lake", "sql", f"sqlite:///{tmp_path}/c.db", tmp_path.as_uri(), {}).initialize_main()
    read_only = f"sqlite:///file:{tmp_path}/c.db?mode=ro&uri=true"
    catalog = open_iceberg("lake", "sql", read_only, tmp_path.as_uri(), {})
    with pytest.raises(ServiceUnavailable, match="readonly database: give the worker's user write access to its file"):
        catalog.create_branch("wap/x/a1", catalog.head("main"))
    assert not [*Path().iterdir()], "the address is none of a file in the current folder"
    full = OperationalError("insert", {}, Exception("database or disk is full\n[SQL: INSERT]"))
    with pytest.raises(ServiceUnavailable, match=r"full: free space on its disk$"), translate_catalog_errors():
        raise full


def test_a_jobs_output_tells_of_an_absent_catalog() -> None:
    lines = ["INFO all is well", "org.sqlite.SQLiteException: [SQLITE_BUSY] The database file is locked"]
    assert "SQLITE_BUSY" in (explain_absence(lines) or "") and explain_absence(lines[:1]) is None


def test_the_address_that_people_are_shown_has_no_password() -> None:
    given = {"CATALOG": "sql", "ICEBERG_URI": "postgresql+psycopg://ana:p@ss/word@db.example:5432/lake"}
    assert catalog_address(read_settings(given)) == "postgresql+psycopg://db.example:5432/lake"


def test_a_catalog_without_an_address_is_shown_by_its_kind() -> None:
    assert catalog_address(read_settings({"CATALOG": "glue"})) == "glue"


@pytest.mark.parametrize("kind", ["rest", "hive"])
def test_a_server_without_an_address_is_refused(kind: str) -> None:
    with pytest.raises(BadEnvironment, match="set ICEBERG_URI"):
        open_iceberg_catalog(read_settings({"CATALOG": kind}))


def test_a_catalog_that_is_not_known_is_one_message() -> None:
    with pytest.raises(BadEnvironment) as refused:
        read_settings({"CATALOG": "iceberg"})
    assert str(refused.value) == "CATALOG: input should be 'nessie', 'sql', 'rest', 'glue' or 'hive'"


def test_a_read_that_fails_is_repeated_and_a_change_is_not() -> None:
    with RestCatalogServer() as server:
        answers = iter([503, 500])
        catalog = load_pyiceberg("lake", {"type": "rest", "uri": server.uri})
        server.fail = lambda request: next(answers, None)
        assert catalog.list_namespaces() == []
        assert server.requests[1:] == ["GET /v1/namespaces"] * 3
        answers = iter([503])
        with pytest.raises(ServiceUnavailableError):
            catalog.create_namespace("t")
        assert server.requests[4:] == ["POST /v1/namespaces"]
        server.fail = lambda request: 504
        with translate_catalog_errors(), pytest.raises(ServerError):
            catalog.list_namespaces()
        assert len(server.requests) == 9
