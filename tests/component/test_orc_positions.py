"""ORC files whose columns are all named `_col0`, `_col1` ...: Spark reads them by position."""

from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

from tests.harness.ingester import Ingester


def orc_file(path: Path, **columns: list[object]) -> str:
    orc.write_table(pa.table(columns), str(path))
    return str(path)


def hive_file(path: Path) -> str:
    return orc_file(path, _col0=[1], _col1=[20])


@pytest.mark.parametrize("schema", ["_col1 BIGINT, _col0 BIGINT", "_COL1 BIGINT, _col0 BIGINT"])
def test_a_schema_in_another_order_is_refused(schema: str, job: Ingester) -> None:
    path = hive_file(job.folder / "a.orc")
    refused = job.refused({"path": path, "schema": schema})
    assert f"{path}: the names of all columns begin with `_col`, so that Spark reads them by their position" in refused
    assert "in this order, before those of other files: _col0, _col1" in refused


@pytest.mark.parametrize("other", [{"_col1": [21], "_col0": [2]}, {"_col1": [21]}, {"id": [1], "_col0": [2]}])
def test_files_in_another_order_are_refused(other: dict[str, list[object]], job: Ingester) -> None:
    hive_file(job.folder / "a.orc")
    path = orc_file(job.folder / "b.orc", **other)
    refused = job.refused({"path": f"{job.folder}/*.orc"})
    assert path in refused and "begin with `_col`" in refused and "load them in runs of their own" in refused


def test_files_and_schemas_in_the_same_order_are_loaded(job: Ingester) -> None:
    path = hive_file(job.folder / "a.orc")
    orc_file(job.folder / "b.orc", _col0=[2], _col1=[21], _col2=["more"])
    transform = "SELECT _col1 AS v, _col0 AS id FROM source"
    job({"path": path, "schema": "_col0 BIGINT, _col1 BIGINT"}, transform=transform)
    job({"path": f"{job.folder}/*.orc"}, transform=transform, mode="overwrite")
    assert job.rows() == [{"v": 20, "id": 1}, {"v": 21, "id": 2}]


def test_times_without_names_are_verified_in_their_own_column(job: Ingester) -> None:
    path = orc_file(job.folder / "a.orc", _col0=[-5], _col1=[datetime(2026, 1, 5, 10, 0, 0, 500)])
    job({"path": path}, transform="SELECT _col0 AS id, _col1 AS at FROM source")
    assert [row["at"] for row in job.rows()] == [datetime(2026, 1, 5, 10, 0, 0, 500, timezone.utc)]
    nanoseconds = pa.array([1_700_000_000_000_000_001], pa.timestamp("ns"))
    orc.write_table(pa.table({"_col0": [1], "_col1": nanoseconds}), path)
    assert "_col1: 1 value" in job.refused({"path": path}, transform="SELECT _col0 AS id, _col1 AS at FROM source")


def test_a_column_of_folders_has_no_position(job: Ingester) -> None:
    (job.folder / "day=1").mkdir()
    hive_file(job.folder / "day=1" / "a.orc")
    source = {"path": str(job.folder), "format": "orc", "schema": "day INT, _col0 BIGINT, _col1 BIGINT"}
    job(source, transform="SELECT _col1 AS v, _col0 AS id, day FROM source")
    assert job.rows() == [{"v": 20, "id": 1, "day": 1}]
