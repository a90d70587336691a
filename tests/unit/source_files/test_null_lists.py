"""Lists and maps of structs that are NULL stay NULL when rows are read."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.io import pyarrow as reader
from pyiceberg.table import StaticTable

from lakehouse.iceberg.file_rows import read_batches, scan_tasks
from lakehouse.iceberg.null_lists import NullKeepingVisitor

POINT = pa.struct({"x": pa.int32()})
COLUMNS = {
    "id": (pa.int32(), [1, 2, 3, 4]),
    "points": (pa.list_(POINT), [[{"x": 1}, None], None, [], [{"x": 2}]]),
    "by_name": (pa.map_(pa.string(), POINT), [[("a", {"x": 1})], None, [], [("b", None)]]),
    "inner": (pa.struct({"of": pa.list_(POINT)}), [{"of": None}, None, {"of": []}, {"of": [{"x": 3}]}]),
    "plain": (pa.list_(pa.int32()), [[1], None, [], [None]]),
}
ROWS = pa.table({name: pa.array(values, type) for name, (type, values) in COLUMNS.items()})


@pytest.fixture
def table(tmp_path: Path) -> StaticTable:
    """A table with one data file. PyIceberg writes by the same conversion as it reads."""
    catalog = InMemoryCatalog("memory", warehouse=tmp_path.as_uri())
    catalog.create_namespace("t")
    written = catalog.create_table("t.points", schema=ROWS.schema)
    written.append(ROWS)
    return StaticTable.from_metadata(written.metadata_location)


def rows_of(read: Any) -> list[dict[str, Any]]:
    return sorted(read.to_pylist(), key=lambda row: int(row["id"]))


def test_nulls_stay_nulls(table: StaticTable) -> None:
    expected = ROWS.to_pylist()
    files = [task.file for task in table.scan().plan_files()]
    batches = list(read_batches(table, table.schema(), scan_tasks(table, files, with_deletes=False), 2**20))
    assert rows_of(pa.Table.from_batches(batches)) == expected
    assert rows_of(table.scan(row_filter="id >= 2").to_arrow()) == expected[1:]


def test_pyiceberg_still_loses_them(table: StaticTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete `lakehouse/iceberg/null_lists.py` when this fails."""
    (original,) = NullKeepingVisitor.__bases__
    monkeypatch.setattr(reader, "ArrowProjectionVisitor", original)
    assert rows_of(table.scan().to_arrow())[1]["points"] == []
