"""A store in trouble: sources and audits wait, or fail with one message, and never give a wrong answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from pyiceberg.io import load_file_io

from engine.duckdb_scan import scan_groups_by
from engine.duckdb_session import DuckDBSession, ParquetView
from lakehouse.iceberg.file_io import file_io_properties
from lakehouse.iceberg.store_errors import explain_store_error
from lakehouse.source_files.object_store import describe_object, list_objects
from sluice.checks.base import CheckQuery
from sluice.contracts.spark_jobs import ScanAnswer
from sluice.errors import CredentialsExpired, InvalidInput, ServiceUnavailable
from sluice.metadata.statistics import DeleteFile, SchemaField
from sluice.settings import read_settings
from tests.harness.object_store import running_store, store_files
from tests.harness.store_proxy import StoreFault, StoreProxy

ROWS = 200_000
SOURCE = "s3://landing/orders/1.parquet"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A store with one file of rows."""
    with running_store(tmp_path_factory.mktemp("faults"), "landing") as variables:
        schema = pyarrow.schema([pyarrow.field("id", pyarrow.int64(), metadata={"PARQUET:field_id": "1"})])
        rows = pyarrow.table({"id": range(ROWS)}, schema=schema)
        parquet.write_table(rows, "landing/orders/1.parquet", filesystem=store_files(variables), row_group_size=20_000)
        yield variables


@pytest.fixture
def proxy(store: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreProxy]:
    """A proxy before the store, through which this process reads it."""
    proxy = StoreProxy(store["AWS_ENDPOINT_URL_S3"])
    for name, value in {**store, "AWS_ENDPOINT_URL_S3": proxy.uri}.items():
        monkeypatch.setenv(name, value)
    yield proxy
    proxy.stop()


def source_size() -> int:
    """List the source, and read its whole file."""
    return sum(len(piece) for file in list_objects("s3://landing/orders/*.parquet") for piece in file.read())


def audit(
    proxy: StoreProxy, folder: Path, monkeypatch: pytest.MonkeyPatch, *deletes: DeleteFile
) -> dict[str, ScanAnswer]:
    """Count the rows of the file as an audit does, without rows that delete files remove."""
    view = ParquetView("sluice_rows", [SchemaField(1, "id", "long")], [SOURCE], {SOURCE: deletes})
    query = {"rows": CheckQuery(user_query="SELECT * FROM sluice_rows")}

    def scan_group(session: DuckDBSession, _: object) -> dict[str, ScanAnswer]:
        return session.answer([view], query, {"id": "long"}, with_other_rows=False, sample_rows=1)

    monkeypatch.setattr("engine.duckdb_scan.scan_group", scan_group)
    group: Any = type("Group", (), {"table": type("Table", (), {"name": "sales.orders"})})
    io = file_io_properties(read_settings({"AWS_ENDPOINT_URL_S3": proxy.uri}).storage)
    with DuckDBSession("512MB", folder, io=io) as session:
        return scan_groups_by(session, [group])


@pytest.mark.parametrize("fault", ["SlowDown", "InternalError", "slow"])
def test_a_source_is_read_whole_after_passing_trouble(proxy: StoreProxy, fault: StoreFault) -> None:
    size = source_size()
    proxy.break_all(fault, "list", "read", first=2)
    assert source_size() == size > 100_000
    assert proxy.seen["list"] >= 1 and proxy.seen["read"] >= 1


@pytest.mark.parametrize("kind", ["list", "read"])
@pytest.mark.parametrize("fault", ["SlowDown", "InternalError"])
def test_a_source_of_a_store_that_stays_in_trouble_is_tried_again_later(
    proxy: StoreProxy, fault: StoreFault, kind: str
) -> None:
    proxy.break_all(fault, kind)
    with pytest.raises(ServiceUnavailable, match=r"the store of s3://landing/orders/.* does not answer"):
        source_size()
    assert proxy.seen[kind] == 6, "once, and five times again"


def test_a_source_file_that_vanishes_is_named(proxy: StoreProxy) -> None:
    listed = list(list_objects("s3://landing/orders/"))
    proxy.break_all("NoSuchKey", "read", "head")
    for read in (lambda: list(listed[0].read()), listed[0].state, lambda: describe_object(SOURCE)):
        with pytest.raises(InvalidInput, match=f"{SOURCE} was removed or renamed while the run read it"):
            read()


@pytest.mark.parametrize("kind", ["list", "read"])
def test_expired_credentials_of_a_source_are_named_at_once(proxy: StoreProxy, kind: str) -> None:
    proxy.break_all("ExpiredToken", kind)
    messages = set()
    for tries in (1, 2):
        with pytest.raises(
            CredentialsExpired, match=r"s3://landing/orders/.*: the store's credentials have expired"
        ) as refused:
            source_size()
        assert proxy.seen[kind] == tries
        messages.add(str(refused.value))
    if kind == "read":
        listed = list(list_objects("s3://landing/orders/"))
        proxy.break_all("ExpiredToken", "head")  # the answer to HEAD has no body
        with pytest.raises(CredentialsExpired):
            listed[0].state()
    (message,) = messages  # every other problem is notified
    assert "renew them" in message and "<" not in message and "\n" not in message


@pytest.mark.parametrize("fault", ["SlowDown", "InternalError", "ExpiredToken", "NoSuchKey"])
@pytest.mark.parametrize("is_read", [True, False])
def test_errors_of_the_lake_in_trouble(proxy: StoreProxy, fault: StoreFault, is_read: bool) -> None:
    proxy.break_all(fault, "head", "read", "write")
    io = load_file_io(
        file_io_properties(read_settings({"AWS_ENDPOINT_URL_S3": proxy.uri}).storage), "s3://landing/lake"
    )
    with pytest.raises(OSError) as raised:
        if is_read:
            io.new_input(SOURCE).open().read()
        else:
            with io.new_output("s3://landing/lake/x").create(overwrite=True) as file:
                file.write(b"x")
    explained = explain_store_error(raised.value)
    if fault == "NoSuchKey":
        assert explained is None
        return
    assert type(explained) is (CredentialsExpired if fault == "ExpiredToken" else ServiceUnavailable), raised.value
    assert "s3://landing/" in str(explained) and "\n" not in str(explained)


@pytest.mark.parametrize("fault", ["SlowDown", "InternalError"])
def test_an_audit_is_answered_after_passing_trouble(
    proxy: StoreProxy, fault: StoreFault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.break_all(fault, "head", "read", first=1)
    assert audit(proxy, tmp_path, monkeypatch)["rows"].metrics["failed"] == ROWS
    assert proxy.seen["head"] >= 2 and proxy.seen["read"] >= 2, "both were tried again"


@pytest.mark.parametrize("kind", ["head", "read"])
@pytest.mark.parametrize("fault", ["SlowDown", "InternalError"])
def test_an_audit_waits_for_a_store_that_stays_in_trouble(
    proxy: StoreProxy, fault: StoreFault, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.break_all(fault, kind)
    with pytest.raises(ServiceUnavailable, match=r"the object store does not serve sales\.orders"):
        audit(proxy, tmp_path, monkeypatch)


def test_rows_that_are_deleted_in_place_are_left_out_of_an_audit(
    proxy: StoreProxy, store: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pyarrow.table({"file_path": [SOURCE] * 2, "pos": pyarrow.array([0, 150_000], pyarrow.int64())})
    parquet.write_table(rows, "landing/deletes/1.parquet", filesystem=store_files(store))
    deletes = DeleteFile("s3://landing/deletes/1.parquet", "PARQUET", 2)
    assert audit(proxy, tmp_path, monkeypatch, deletes)["rows"].metrics["failed"] == ROWS - 2
    proxy.rule = lambda _, path, __: "SlowDown" if "deletes" in path else None
    with pytest.raises(ServiceUnavailable, match=r"the object store does not serve sales\.orders"):
        audit(proxy, tmp_path, monkeypatch, deletes)
    proxy.rule = lambda _, path, __: "NoSuchKey" if "deletes" in path else None
    assert audit(proxy, tmp_path, monkeypatch, deletes) == {}


@pytest.mark.parametrize("fault", ["NoSuchKey", "ExpiredToken"])
def test_an_audit_that_is_refused_is_left_to_spark(
    proxy: StoreProxy, fault: StoreFault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.break_all(fault, "head", "read")
    assert audit(proxy, tmp_path, monkeypatch) == {}


@pytest.mark.parametrize("fault", ["slow", "cut"])
def test_an_audit_never_counts_a_part(
    proxy: StoreProxy, fault: StoreFault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.break_all(fault, "read", first=3)
    try:
        answers = audit(proxy, tmp_path, monkeypatch)
    except ServiceUnavailable:
        return
    assert answers["rows"].metrics["failed"] == ROWS
