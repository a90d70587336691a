"""The hint about partitions that split a write into many small files."""

from pathlib import Path

import pytest

from lakehouse.iceberg.table_state import TableState
from sluice.publishing.small_files import Partition, describe_small_files
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake

KIB = 1024


@pytest.mark.parametrize(
    ("partitions", "advice"),
    [
        ([("ordered_on", "date", "identity")], "consider month(ordered_on)"),
        ([("ordered_at", "timestamptz", "identity")], "consider month(ordered_at)"),
        ([("ordered_at", "timestamp", "hour")], "consider day(ordered_at)"),
        ([("ordered_at", "timestamp", "day")], "consider month(ordered_at)"),
        ([("ordered_at", "timestamp", "month")], "consider year(ordered_at)"),
        ([("country", "string", "identity"), ("day", "date", "day")], "consider month(day)"),
        ([("country", "string", "identity")], "consider bucket(8, country), or no partition by country"),
        ([("id", "long", "bucket[64]")], "consider fewer buckets of id"),
        ([("name", "string", "truncate[4]")], "consider fewer partitions"),
    ],
)
def test_a_coarser_partition_is_proposed(partitions: list[tuple[str, str, str]], advice: str) -> None:
    hint = describe_small_files([Partition(*each) for each in partitions], 80, 90, 135 * KIB)
    assert hint == f"90 files of 1.5 KiB: {advice}"


@pytest.mark.parametrize(
    ("partitions", "written", "files", "size"),
    [
        ([], 90, 90, 90 * KIB),
        ([Partition("day", "date", "identity")], 19, 19, 19 * KIB),
        ([Partition("day", "date", "identity")], 90, 90, 90 * 1024 * KIB),
        ([Partition("day", "date", "identity")], 45, 90, 90 * KIB),
        ([Partition("day", "date", "identity")], 0, 0, 0),
    ],
)
def test_no_hint_where_it_would_not_help(partitions: list[Partition], written: int, files: int, size: int) -> None:
    assert describe_small_files(partitions, written, files, size) == ""


def test_the_change_of_a_table_has_the_hint(tmp_path: Path) -> None:
    lake = MemoryLake(MemoryCatalog(), tmp_path)
    lake.catalog.initialize_main()
    lake.change("main", "t.orders", lambda table: table.update_spec().add_identity("id").commit())
    before = lake.catalog.table_version("main", "t.orders")
    lake.append("main", "t.orders", range(30))
    after = lake.catalog.table_version("main", "t.orders")
    assert before and after
    change = TableState.load(after, before, {}).change()
    assert change.added_files == 30
    assert change.hint.startswith("30 files of ")
    assert change.hint.endswith(": consider bucket(8, id), or no partition by id")
