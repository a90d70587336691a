"""REST catalogs that require a token: by OAuth2 or fixed, expired or wrong, and never shown."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.settings import open_iceberg_catalog
from sluice.errors import BadEnvironment
from sluice.settings import read_settings
from tests.harness.guarded_iceberg import CLIENT, SECRET, GuardedIceberg
from tests.harness.iceberg_lake import IcebergLake, WriterJob
from tests.harness.iceberg_rest import IcebergRestServer

pytestmark = pytest.mark.slow
BOTH = ("one", "two")


@pytest.fixture
def guarded(iceberg_rest: IcebergRestServer) -> Iterator[GuardedIceberg]:
    server = GuardedIceberg(iceberg_rest.uri)
    yield server
    server.stop()


def open_by_settings(server: GuardedIceberg, warehouse: Path, *properties: str) -> IcebergCatalog:
    """Open the catalog as a worker does, from a file with these properties that the settings name."""
    file = warehouse / "catalog.properties"
    file.write_text("\n".join(properties))
    given = {
        "CATALOG": "rest",
        "ICEBERG_URI": server.uri,
        "WAREHOUSE": warehouse.as_uri(),
        "ICEBERG_PROPERTIES_FILE": str(file),
    }
    return open_iceberg_catalog(read_settings(given))


def by_credential(server: GuardedIceberg, warehouse: Path) -> IcebergCatalog:
    properties = (f"credential={CLIENT}:{SECRET}", f"oauth2-server-uri={server.token_uri}")
    return open_by_settings(server, warehouse, *properties)


@pytest.mark.parametrize("ended_before", ["", "read", "create", "commit", "transaction", "publish"])
def test_a_token_that_expires_in_a_publish_is_renewed(
    ended_before: str,
    guarded: GuardedIceberg,
    iceberg_rest: IcebergRestServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    catalog = by_credential(guarded, tmp_path)
    lake = IcebergLake(catalog, iceberg_rest.open(), *BOTH)
    job = WriterJob(lake, tmp_path)
    for table in BOTH:
        job.append(table, 3)
    created = f"{lake.namespace}.created"
    job.open().create_table(created, lake.table("one").schema()).append(lake.table("one").scan().to_arrow())
    head = job.record()
    guarded.end_tokens_before = ended_before
    assert lake.publish(job.branch, head).merged
    assert [lake.rows(table) for table in (*BOTH, "created")] == [[1, 2, 3], [1, 2, 3], [1, 2]]
    assert set(guarded.refused) == ({ended_before} if ended_before else set())  # a read is tried twice before that
    shown = [caplog.text, repr(catalog.__dict__), *job.properties.values()]
    assert not [text for text in shown if SECRET in text or any(token in text for token in guarded.issued)]


def test_a_fixed_token_is_used_until_it_ends(guarded: GuardedIceberg, tmp_path: Path) -> None:
    guarded.tokens.add("fixed-secret")
    catalog = open_by_settings(guarded, tmp_path, "token=fixed-secret")
    assert catalog.initialize_main()
    guarded.tokens.clear()
    with pytest.raises(BadEnvironment, match="does not accept the identity") as raised:
        catalog.head("main")
    assert "fixed-secret" not in str(raised.value) and not guarded.issued


def test_a_wrong_secret_is_one_message(guarded: GuardedIceberg, tmp_path: Path) -> None:
    guarded.secret = "another"
    with pytest.raises(BadEnvironment, match="invalid_client: unknown client or wrong secret") as raised:
        by_credential(guarded, tmp_path)
    assert SECRET not in str(raised.value)


def test_a_secret_that_was_withdrawn_meanwhile_is_one_message(guarded: GuardedIceberg, tmp_path: Path) -> None:
    catalog = by_credential(guarded, tmp_path)
    catalog.initialize_main()
    guarded.secret = "another"
    guarded.tokens.clear()
    with pytest.raises(BadEnvironment, match="invalid_client") as raised:
        catalog.head("main")
    assert SECRET not in str(raised.value)


def test_no_token_is_one_message(guarded: GuardedIceberg, tmp_path: Path) -> None:
    with pytest.raises(BadEnvironment, match="does not accept the identity of this process"):
        open_by_settings(guarded, tmp_path)
