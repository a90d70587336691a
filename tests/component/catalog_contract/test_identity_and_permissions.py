"""The contract of catalogs: permissions on main, identity, capabilities, and properties for Spark."""

from pathlib import Path

import pytest

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg_catalog.connect import open_iceberg
from sluice.errors import BadEnvironment, CatalogChanged
from sluice.publishing.capabilities import Guarantee
from tests.harness.contract_lake import Lake
from tests.harness.iceberg_rest import IcebergRestServer

# Permissions on main


def test_a_writer_cannot_commit_to_main(lake: Lake, writer: BranchCatalog) -> None:
    lake.published("a1", lake.put(1))
    before = lake.catalog.head(lake.catalog.main)
    assert writer.identity() == lake.catalog.identity()
    with pytest.raises(BadEnvironment):
        writer.commit_tables(writer.main, before, "bypass", [lake.put(2)])
    assert (lake.catalog.head(lake.catalog.main), lake.on_main()) == (before, lake.version(1))


def test_a_writer_cannot_publish(lake: Lake, writer: BranchCatalog) -> None:
    branch, head = lake.open("a1", lake.put(1))
    before = lake.catalog.head(lake.catalog.main)
    with pytest.raises(BadEnvironment):
        writer.publish(branch, head, "ana", "bypass", {})
    assert (lake.catalog.head(lake.catalog.main), lake.on_main()) == (before, None)


def test_a_writer_can_commit_to_the_branch_of_an_attempt(lake: Lake, writer: BranchCatalog) -> None:
    branch, head = lake.open("a1", lake.put(1))
    newer = writer.commit_tables(branch.name, head, "write", [lake.put(2)])
    assert lake.catalog.table_version(branch.name, lake.table(), newer) == lake.version(2)


# Identity, capabilities, Spark


def test_another_identity_is_noticed(lake: Lake) -> None:
    identity = lake.catalog.identity()
    assert lake.catalog.identity() == identity
    lake.catalog.check_identity(identity)
    with pytest.raises(CatalogChanged):
        lake.catalog.check_identity(f"not {identity}")


def test_what_is_declared_of_several_tables_holds_when_it_is_tried(lake: Lake) -> None:
    before = lake.catalog.head(lake.catalog.main)
    detail = lake.catalog.probe()
    assert not detail or lake.catalog.capabilities.guarantee in detail
    assert lake.catalog.head(lake.catalog.main) == before


def test_a_rest_server_without_the_endpoint_for_several_tables_commits_them_one_by_one(
    iceberg_rest: IcebergRestServer,
) -> None:
    def guarantee(several: Guarantee | None = None) -> str:
        catalog = open_iceberg("lake", "rest", iceberg_rest.uri, iceberg_rest.warehouse.as_uri(), {}, several=several)
        return catalog.capabilities.guarantee

    assert guarantee() == "checked"  # the server lists the endpoint
    assert [guarantee("one by one"), guarantee("atomic")] == ["one by one", "atomic"]


def test_capabilities_are_declared(lake: Lake) -> None:
    capabilities = lake.catalog.capabilities
    assert capabilities.repeated_publish in ("merge parent", "commit property")
    assert 0 <= capabilities.commit_timeout < 60


def test_spark_is_bound_to_a_branch_or_pinned_to_a_hash(lake: Lake, tmp_path: Path) -> None:
    branch, head = lake.open("a1", lake.put(1))
    bound = lake.catalog.spark_properties("lake", branch.name, None, tmp_path)
    _, pinned = lake.catalog.audited_catalog("audited", branch.name, head, tmp_path)
    pinned |= lake.catalog.spark_properties("lake", branch.name, head, tmp_path)
    assert all(key.startswith("spark.sql.catalog.") for key in bound | pinned)
    assert bound and pinned and bound != pinned


def test_output_without_a_refusal_explains_none(lake: Lake) -> None:
    assert lake.catalog.explain_refused_write(["java.lang.OutOfMemoryError: Java heap space", ""]) is None
