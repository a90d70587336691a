"""Leftovers of other programs, or of a publication that was taken back, outside a table's main, and later runs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from lakehouse.iceberg.table_state import load_table
from lakehouse.iceberg_catalog.connect import open_iceberg
from tests.harness.iceberg_lake import IcebergLake, ids
from tests.harness.iceberg_run import IcebergRun


def _write_on_a_branch(lake: IcebergLake) -> None:
    snapshot = lake.snapshot("t")
    assert snapshot
    lake.table("t").manage_snapshots().create_branch(snapshot, "theirs").commit()
    lake.table("t").append(ids(9), branch="theirs")


def _append_and_roll_back(lake: IcebergLake) -> None:
    snapshot = lake.snapshot("t")
    assert snapshot
    lake.append("t", 9)
    lake.table("t").manage_snapshots().rollback_to_snapshot(snapshot).commit()


def _expire(lake: IcebergLake) -> None:
    first = lake.table("t").snapshots()[0].snapshot_id
    lake.table("t").maintenance.expire_snapshots().by_id(first).commit()


@pytest.mark.parametrize("leave", [_write_on_a_branch, _append_and_roll_back, _expire])
def test_a_run_takes_what_is_beside_main_for_its_own_no_more(
    leave: Callable[[IcebergLake], None], tmp_path: Path
) -> None:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", tmp_path.as_uri()
    catalog = open_iceberg("lake", "sql", uri, warehouse, {})
    lake = IcebergLake(catalog, SqlCatalog("lake", uri=uri, warehouse=warehouse), "t")
    before = lake.catalog.head("main")
    version = lake.catalog.table_version("main", lake.name("t"))
    assert version and load_table(version, {}), "an earlier attempt read the table, and its file is in a cache"
    leave(lake)
    assert lake.catalog.head("main") == before, "readers see the same"
    run = IcebergRun(lake, tmp_path)
    run.append(3)
    branch, written = run.record()
    assert written.tables[lake.name("t")].added_rows == 1
    assert lake.publish(branch, written.head).merged
    assert lake.rows("t") == [1, 2, 3]
