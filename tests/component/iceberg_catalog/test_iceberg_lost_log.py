"""A dropped commit log: each process refuses to work until the log is back, or a person requests a new one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.connect import open_iceberg
from sluice.contracts.references import RunRef
from sluice.errors import CatalogChanged
from sluice.publishing.branch_properties import marks
from tests.harness.iceberg_lake import IcebergLake, WriterJob, ids
from tests.harness.iceberg_rest import IcebergRestServer

LOG = "sluice.commits"
RUN = RunRef(run_id="r1", workflow_id="w1", pipeline="p", label="p", attempt=1)
Open = Callable[[], IcebergCatalog]


@pytest.fixture(params=["sql", pytest.param("rest", marks=pytest.mark.slow)])
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """A function that opens the catalog as another process would."""
    if request.param == "sql":
        uri = f"sqlite:///{tmp_path}/catalog.db"
        return lambda: open_iceberg("lake", "sql", uri, tmp_path.as_uri(), {})
    server = IcebergRestServer(tmp_path)  # a server of its own: the log of another test must not be dropped
    request.addfinalizer(server.stop)
    return lambda: open_iceberg("lake", "rest", server.uri, server.warehouse.as_uri(), {})


@pytest.fixture
def lake(another: Open, tmp_path: Path) -> IcebergLake:
    catalog = another()
    reader = catalog._branches.tables.catalog
    return IcebergLake(catalog, reader, "t")


def publish(lake: IcebergLake, folder: Path) -> None:
    job = WriterJob(lake, folder / "jobs")
    job.open().load_table(lake.name("t")).append(ids(3), snapshot_properties=marks(RUN))
    assert lake.publish(job.branch, job.record()).merged


def test_a_dropped_log_is_not_begun_again_and_can_be_registered_again(
    lake: IcebergLake, another: Open, tmp_path: Path
) -> None:
    identity, head = lake.catalog.identity(), lake.catalog.head("main")
    under_way = lake.branch()
    location = lake.reader.load_table(LOG).metadata_location
    lake.reader.drop_table(LOG)
    for catalog in (lake.catalog, another()):
        with pytest.raises(CatalogChanged, match=f"missing, although its namespace remembers it .{identity}"):
            catalog.check_identity(identity)
        with pytest.raises(CatalogChanged, match="is missing"):
            catalog.initialize_main()
        with pytest.raises(CatalogChanged, match="is missing"):
            catalog.publish(under_way, head, "ana", "late", {})
    assert not lake.reader.table_exists(LOG)
    lake.reader.register_table(LOG, location)
    for catalog in (lake.catalog, another()):
        catalog.check_identity(identity)
        assert catalog.head("main") == head and catalog.find_head(under_way.name) == head


def test_a_dropped_namespace_is_noticed_by_what_runs_published(
    lake: IcebergLake, another: Open, tmp_path: Path
) -> None:
    publish(lake, tmp_path)
    lake.reader.drop_table(LOG)
    lake.reader.drop_namespace("sluice")
    for catalog in (lake.catalog, another()):
        with pytest.raises(CatalogChanged, match=f"missing, although runs published {lake.name('t')}"):
            catalog.head("main")
    assert not lake.reader.namespace_exists("sluice")
    lake.reader.create_namespace("sluice", {LOG: "begin again"})
    another().initialize_main()
    lake.catalog.initialize_main()
    assert lake.catalog.identity() == another().identity()
    assert lake.reader.load_namespace_properties("sluice")[LOG] == lake.catalog.identity()


def test_a_person_begins_again_on_purpose(lake: IcebergLake, another: Open, tmp_path: Path) -> None:
    before, under_way = lake.catalog.identity(), lake.branch()
    lake.reader.drop_table(LOG)
    lake.reader.update_namespace_properties("sluice", updates={LOG: "begin again"})
    new = another()
    new.initialize_main()
    assert new.identity() != before
    for catalog in (lake.catalog, new):
        with pytest.raises(CatalogChanged, match="another commit log"):
            catalog.check_identity(under_way.catalog_id)


def test_a_log_in_place_of_another_one_is_refused(lake: IcebergLake, another: Open) -> None:
    lake.reader.drop_table(LOG)
    empty = lake.reader.create_table(LOG, lake.table("t").schema())
    for catalog in (lake.catalog, another()):
        with pytest.raises(CatalogChanged, match="another commit log"):
            catalog.initialize_main()
    assert lake.reader.load_table(LOG).metadata == empty.metadata  # the process wrote nothing to it


def test_a_catalog_that_keeps_no_properties_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NotImplementedError("no properties")

    monkeypatch.setattr(SqlCatalog, "update_namespace_properties", refuse)
    catalog = open_iceberg("lake", "sql", f"sqlite:///{tmp_path}/catalog.db", tmp_path.as_uri(), {})
    assert catalog.initialize_main() and "does not remember the commit log" in caplog.text


def test_a_log_of_before_is_remembered_from_now_on(lake: IcebergLake, another: Open) -> None:
    lake.reader.update_namespace_properties("sluice", removals={LOG, f"{LOG}.location"})
    identity = another().identity()
    assert lake.reader.load_namespace_properties("sluice")[LOG] == identity
