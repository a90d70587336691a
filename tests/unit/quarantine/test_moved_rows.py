"""Rows that a worker moves into a quarantine table by rewriting their data files."""

import datetime
import uuid
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from lakehouse.catalog import TableCommit
from lakehouse.iceberg.table_state import TableState
from lakehouse.quarantine.moved_rows import RowMove
from sluice.pipeline.table_properties import deletes_files
from sluice.publishing.bad_rows import BadRow, count_broken_checks
from sluice.publishing.commit_properties import RUN_ID

AT = datetime.datetime(2026, 12, 1, 12, 30, 0, 123456, datetime.timezone.utc)
MARKS = {RUN_ID: "r", "sluice.attempt": "1"}
KINDS: dict[str, tuple[IcebergType, list[Any]]] = {
    "id": (LongType(), [1, 2, 3, 4]),
    "i": (IntegerType(), [-(2**31), None, 0, 2**31 - 1]),
    "flag": (BooleanType(), [True, None, False, True]),
    "f": (FloatType(), [0.1, None, float("inf"), -0.0]),
    "d": (DoubleType(), [5e-324, None, -1e308, 0.1]),
    "amount": (DecimalType(38, 18), [Decimal("0.000000000000000001"), None, Decimal(-1), Decimal(10**19)]),
    "day": (DateType(), [datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31), datetime.date(2026, 1, 31)]),
    "at": (TimestamptzType(), [AT, None, AT.replace(year=1582), AT.replace(year=9999)]),
    "local": (TimestampType(), [AT.replace(tzinfo=None), None, datetime.datetime(1, 1, 1), None]),
    "text": (StringType(), ["", None, "é\u2028\x00", "x" * 10_000]),
    "bytes": (BinaryType(), [b"", None, b"\xff\x00", b"x"]),
    "four": (FixedType(4), [b"abcd", None, b"\x00\x00\x00\x00", b"\xff\xff\xff\xff"]),
}
CHECKS = {"quarantined_checks": ListType(100, StringType(), element_required=False)}
ADDED = {**CHECKS, "quarantined_run": StringType(), "quarantined_at": TimestamptzType()}


class Tables:
    """A table with one data file for each batch of rows, and its quarantine table."""

    def __init__(self, folder: Path) -> None:
        uri = f"sqlite:///{folder}/catalog.db"
        self._catalog = SqlCatalog("t", uri=uri, warehouse=folder.as_uri())
        self._catalog.create_namespace("t")

    def create(
        self, name: str, types: dict[str, IcebergType], spec: PartitionSpec, properties: dict[str, str]
    ) -> Table:
        fields = [NestedField(number, name, type) for number, (name, type) in enumerate(types.items(), 1)]
        return self._catalog.create_table(f"t.{name}", Schema(*fields), partition_spec=spec, properties=properties)

    def move(
        self,
        *batches: pa.Table,
        types: dict[str, IcebergType] | None = None,
        kept: dict[str, IcebergType] | None = None,
        by: str = "",
        properties: dict[str, str] | None = None,
    ) -> RowMove:
        """Return the move for a table that a run created, and for an empty quarantine table."""
        types = types or {name: type for name, (type, _) in KINDS.items()}
        number = [*types].index(by) + 1 if by else 0
        spec = PartitionSpec(PartitionField(number, 1000, IdentityTransform(), by)) if by else PartitionSpec()
        name = uuid.uuid4().hex[:8]
        table = self.create(name, types, spec, properties or {})
        for batch in batches:
            table.append(batch.cast(table.schema().as_arrow()))
        quarantine = self.create(
            f"{name}__quarantine", {**(types if kept is None else kept), **ADDED}, PartitionSpec(), {}
        )
        return RowMove(f"t.{name}", _state(table), f"t.{name}__quarantine", _state(quarantine))


def _state(table: Table) -> TableState:
    return TableState(StaticTable.from_metadata(table.metadata_location), None)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


def rows_of(*ids: int) -> pa.Table:
    types = {name: type for name, (type, _) in KINDS.items()}
    schema = Schema(*(NestedField(number, name, type) for number, (name, type) in enumerate(types.items(), 1)))
    records = [{name: values[(id - 1) % 4] for name, (_, values) in KINDS.items()} | {"id": id} for id in ids]
    return pa.Table.from_pylist(records, schema=schema.as_arrow())


def files(move: RowMove) -> list[str]:
    return [entry.data_file.file_path for entry in move.table.live.added]


def made(commit: TableCommit) -> StaticTable:
    """Return the table to which a commit points."""
    assert commit.version
    table = StaticTable.from_metadata(commit.version.metadata_location)
    assert table.metadata.current_snapshot_id == commit.version.snapshot_id
    return table


def read(commit: TableCommit) -> list[dict[str, Any]]:
    table = made(commit)
    rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: int(row["id"]))


@pytest.mark.parametrize("by", ["", "day", "flag"])
def test_good_rows_stay_and_bad_rows_move_with_every_value_as_it_was(tables: Tables, by: str) -> None:
    move = tables.move(rows_of(1, 2, 3, 4), by=by)
    assert move.is_possible
    bad = [
        BadRow(file, position, ["not_null(i)", "unique"][: 1 + position % 2])
        for file, ids in _ids_by_file(move).items()
        for position, id in enumerate(ids)
        if id in (2, 3)
    ]
    kept, moved = move.commits(bad, "r", AT, MARKS)
    assert (kept.name, moved.name) == (move.name, move.quarantine_name)
    assert read(kept) == rows_of(1, 4).to_pylist()
    quarantined = read(moved)
    assert [{name: row[name] for name in KINDS} for row in quarantined] == rows_of(2, 3).to_pylist()
    assert {(row["quarantined_run"], row["quarantined_at"]) for row in quarantined} == {("r", AT)}
    assert sorted(len(row["quarantined_checks"]) for row in quarantined) == sorted(len(each.checks) for each in bad)
    for commit in (kept, moved):
        snapshot = made(commit).current_snapshot()
        assert snapshot and snapshot.summary and MARKS.items() <= snapshot.summary.additional_properties.items()


def _ids_by_file(move: RowMove) -> dict[str, list[int]]:
    """Return the ids of the rows of each data file, in the order of the file."""
    return {path: parquet.read_table(path.removeprefix("file://"))["id"].to_pylist() for path in files(move)}


def test_only_the_files_with_bad_rows_are_rewritten(tables: Tables) -> None:
    move = tables.move(rows_of(1, 2), rows_of(3, 4), rows_of(5))
    by_id = {ids[0]: file for file, ids in _ids_by_file(move).items()}
    kept, moved = move.commits([BadRow(by_id[1], 1, ["a"]), BadRow(by_id[5], 0, ["a", "b"])], "r", AT, MARKS)
    after = {task.file.file_path for task in made(kept).scan().plan_files()}
    assert by_id[3] in after and not {by_id[1], by_id[5]} & after and len(after) == 2
    assert [row["id"] for row in read(kept)] == [1, 3, 4]
    assert [row["id"] for row in read(moved)] == [2, 5]


def test_a_file_with_many_row_groups(tables: Tables) -> None:
    move = tables.move(rows_of(*range(1, 2_001)), properties={"write.parquet.row-group-limit": "64"})
    (file,) = files(move)
    bad = {*range(1, 2_001, 7)}
    kept, moved = move.commits([BadRow(file, id - 1, ["a"]) for id in sorted(bad, key=str)], "r", AT, MARKS)
    assert [row["id"] for row in read(moved)] == sorted(bad)
    assert [row["id"] for row in read(kept)] == [id for id in range(1, 2_001) if id not in bad]


def test_the_first_rows_create_the_quarantine_table(tables: Tables) -> None:
    kept = [name for name in KINDS if name != "four"]
    move = tables.move(rows_of(1, 2, 3).select(kept), types={name: KINDS[name][0] for name in kept})
    move = replace(move, quarantine=None)
    assert move.is_possible
    (file,) = files(move)
    good, moved = move.commits([BadRow(file, 1, ["a"])], "r", AT, MARKS)
    assert [row["id"] for row in read(good)] == [1, 3]
    (row,) = read(moved)
    assert {name: row[name] for name in kept} == rows_of(2).select(kept).to_pylist()[0]
    table = made(moved)
    assert [field.name for field in table.schema().fields] == [*kept, *ADDED]
    assert not any(field.required for field in table.schema().fields)
    assert table.properties["comment"] == "Rows that broke a check" and not deletes_files(table.properties)
    other = made(move.commits([BadRow(file, 1, ["a"])], "r", AT, MARKS)[1])
    assert other.metadata.location != table.metadata.location, "a dropped table may have been there"


def test_spark_creates_a_quarantine_table_with_bytes_of_a_fixed_number(tables: Tables) -> None:
    move = tables.move(rows_of(1))
    assert move.is_possible and not replace(move, quarantine=None).is_possible


NESTED = {"id": LongType(), "list": ListType(9, LongType(), element_required=False)}


@pytest.mark.parametrize(
    "given",
    [
        {"kept": {"id": LongType()}},
        {"kept": {name: type for name, (type, _) in KINDS.items() if name != "text"} | {"text": LongType()}},
        {"types": NESTED},
        {"properties": {"format-version": "1"}},
        {"types": {"id": LongType(), "quarantined_run": StringType()}, "kept": {"id": LongType()}},
    ],
    ids=["a column is missing", "another type", "nested values", "another format", "a reserved name"],
)
def test_other_rows_are_left_to_spark(tables: Tables, given: dict[str, Any]) -> None:
    assert not tables.move(**given).is_possible


def test_the_checks_with_the_most_rows_come_first() -> None:
    rows = [BadRow("f", 0, ["b"]), BadRow("f", 1, ["a", "c"]), BadRow("g", 0, ["c"])]
    assert list(count_broken_checks(rows).items()) == [("c", 2), ("a", 1), ("b", 1)]
