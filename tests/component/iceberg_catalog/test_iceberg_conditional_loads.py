"""Loads of tables of a REST catalog: unchanged metadata are not sent again, and every change is noticed."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError

from lakehouse.iceberg_catalog.conditional_loads import ConditionalLoads
from lakehouse.iceberg_catalog.connect import open_iceberg
from tests.harness.iceberg_lake import SCHEMA, IcebergLake, ids
from tests.harness.iceberg_rest import IcebergRestServer
from tests.harness.proxies import IcebergProxy
from tests.harness.rest_catalog import RestCatalogServer


@pytest.fixture
def lake(iceberg_rest: IcebergRestServer) -> IcebergLake:
    catalog = open_iceberg("lake", "rest", iceberg_rest.uri, iceberg_rest.warehouse.as_uri(), {})
    return IcebergLake(catalog, iceberg_rest.open(), "t")


@pytest.fixture
def without_etag() -> Iterator[RestCatalogServer]:
    server = RestCatalogServer()
    try:
        yield server
    finally:
        server.close()


def answers(catalog: RestCatalog) -> list[int]:
    """Return a list that collects the status of each future answer."""
    statuses: list[int] = []
    catalog._session.hooks["response"].append(lambda answer, **_: statuses.append(answer.status_code))
    return statuses


def test_metadata_that_did_not_change_are_not_sent_again(lake: IcebergLake, iceberg_rest: IcebergRestServer) -> None:
    client = iceberg_rest.open()
    loads, identifier, statuses = ConditionalLoads(client), (lake.namespace, "t"), answers(client)
    first = loads.load(identifier)
    assert loads.load(identifier) is first and statuses == [200, 304]
    lake.append("t", 3)
    changed = loads.load(identifier)
    assert changed.ref("main") == lake.snapshot("t") != first.ref("main")
    assert changed.location == lake.table("t").metadata_location
    assert loads.load(identifier) is changed and statuses == [200, 304, 200, 304]


def test_a_table_that_was_dropped_or_made_again_is_not_the_one_of_before(
    lake: IcebergLake, iceberg_rest: IcebergRestServer
) -> None:
    loads, identifier = ConditionalLoads(iceberg_rest.open()), (lake.namespace, "t")
    before = loads.load(identifier)
    lake.reader.drop_table(identifier)
    with pytest.raises(NoSuchTableError):
        loads.load(identifier)
    lake.reader.create_table(identifier, SCHEMA).append(ids(7))
    assert loads.load(identifier).uuid == str(lake.table("t").metadata.table_uuid) != before.uuid


def test_a_look_at_main_sees_what_others_did_after_looks_that_were_answered_by_304(lake: IcebergLake) -> None:
    head = lake.catalog.head("main")
    assert lake.catalog.head("main") == head
    lake.append("t", 3)
    moved = lake.catalog.head("main")
    assert moved != head and lake.catalog.diff(head, "main", moved)[0].name == lake.name("t")


def test_a_server_without_etag_is_asked_each_time(
    lake: IcebergLake, without_etag: RestCatalogServer, tmp_path: Path
) -> None:
    client = RestCatalog("other", uri=without_etag.uri)
    client.create_namespace("n")
    client.register_table(("n", "t"), lake.table("t").metadata_location)
    loads, statuses = ConditionalLoads(client), answers(client)
    assert loads.load(("n", "t")).ref("main") == lake.snapshot("t")
    lake.append("t", 3)
    without_etag.tables["n", "t"] = lake.table("t").metadata_location
    assert loads.load(("n", "t")).ref("main") == lake.snapshot("t") and statuses == [200, 200]


@pytest.mark.parametrize(("lost", "is_loaded"), [(1, True), (2, True), (3, False)])
def test_a_load_is_repeated_when_its_connection_breaks(
    lake: IcebergLake, iceberg_rest: IcebergRestServer, lost: int, *, is_loaded: bool
) -> None:
    """Main is observed by one load for each table, so one lost connection in thirty failed nearly every look."""
    proxy = IcebergProxy(iceberg_rest.uri, lambda _, kind, number: "drop" if 1 < number <= 1 + lost else None)
    try:
        loads = ConditionalLoads(RestCatalog("through", uri=proxy.uri))  # asks once for the server's settings
        expected = nullcontext() if is_loaded else pytest.raises(requests.ConnectionError)
        with expected:
            assert loads.load((lake.namespace, "t")).ref("main") == lake.snapshot("t")
        assert len(proxy.done) == lost
    finally:
        proxy.stop()


def test_a_load_that_takes_too_long_is_not_repeated(
    iceberg_rest: IcebergRestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, asked = iceberg_rest.open(), []

    def time_out(url: str, **_: object) -> None:
        asked.append(url)
        raise requests.ReadTimeout

    monkeypatch.setattr(client._session, "get", time_out)
    with pytest.raises(requests.ReadTimeout):
        ConditionalLoads(client).load(("n", "t"))
    assert len(asked) == 1
