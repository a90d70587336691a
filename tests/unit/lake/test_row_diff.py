"""The keyed diff of two versions of a table, compared with a naive one in Python."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.duckdb_session import DuckDBSession, ParquetView
from engine.queries.row_diff import RowDiff, register_partitions
from engine.queries.specification import DiffedVersion, DiffSpecification
from sluice.contracts.table_diffs import ChangedCell, RowDifferences
from sluice.diff.columns import match_columns, with_field_names
from sluice.metadata.statistics import DeleteFile, SchemaField

FIELDS = [SchemaField(1, "id", "long"), SchemaField(2, "name", "string"), SchemaField(3, "amount", "double")]
TYPES = {"long": pa.int64(), "int": pa.int32(), "string": pa.string(), "double": pa.float64(), "float": pa.float32()}
Row = tuple[Any, ...]
NAN = float("nan")


def write(path: Path, fields: Sequence[SchemaField], rows: Sequence[Row]) -> str:
    schema = pa.schema([pa.field(f.name, TYPES[f.type], metadata={"PARQUET:field_id": str(f.id)}) for f in fields])
    columns = [pa.array([row[index] for row in rows], TYPES[f.type]) for index, f in enumerate(fields)]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path)
    return str(path)


class Diff:
    """Compares two lists of rows, each in a file of its own, with a DuckDB in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def compare(
        self,
        before: Sequence[Row],
        after: Sequence[Row],
        key: Sequence[int] = (1,),
        fields: tuple[Sequence[SchemaField], Sequence[SchemaField]] = (FIELDS, FIELDS),
        rows: int = 10,
        partitions: tuple[str, str] | None = None,
    ) -> RowDifferences:
        names, contents = ("before_files", "after_files"), (before, after)
        files = [
            write(self.folder / f"{name}.parquet", each, content)
            for name, each, content in zip(names, fields, contents, strict=True)
        ]
        versions = [
            DiffedVersion(
                files=ParquetView(name, with_field_names(each), [file], with_position=True),
                marked=ParquetView(f"{name}_marked", with_field_names(each), [], with_position=True),
                partitions={file: partitions[number]} if partitions else {},
            )
            for number, (name, each, file) in enumerate(zip(names, fields, files, strict=True))
        ]
        return self.run(versions, key, fields, rows)

    def run(
        self,
        versions: Sequence[DiffedVersion],
        key: Sequence[int],
        fields: tuple[Sequence[SchemaField], Sequence[SchemaField]] = (FIELDS, FIELDS),
        rows: int = 10,
    ) -> RowDifferences:
        specification = DiffSpecification(
            before=versions[0],
            after=versions[1],
            columns=match_columns(*fields),
            key=key,
            rows=rows,
            sample_bytes=100_000,
        )
        views = [view for each in versions for view in (each.files, each.marked)]
        with (
            DuckDBSession("256MB", self.folder / "scratch", threads=1) as session,
            session.tables(views, {}) as connection,
        ):
            register_partitions(connection, specification)
            return RowDiff(connection, specification, {}).answer()


@pytest.fixture(scope="module")
def diff(tmp_path_factory: pytest.TempPathFactory) -> Diff:
    return Diff(tmp_path_factory.mktemp("diff"))


def numbers(rows: RowDifferences) -> tuple[int, int, int, int]:
    return rows.added, rows.removed, rows.changed, rows.rewritten


def test_rows_are_matched_by_key_and_cells_compared(diff: Diff) -> None:
    before = [(1, "a", 1.0), (2, "b", 2.0), (3, "c", NAN), (4, None, None), (5, "e", 5.0)]
    after = [(1, "a", 1.0), (2, "B", 2.5), (3, "c", NAN), (4, None, 4.0), (6, "f", 6.0)]
    rows = diff.compare(before, after)
    assert numbers(rows) == (1, 1, 2, 2)
    assert [(each.column, each.cells) for each in rows.columns] == [("amount", 2), ("name", 1)]
    assert rows.added_rows == [{"id": 6, "name": "f", "amount": 6.0}]
    assert rows.removed_rows == [{"id": 5, "name": "e", "amount": 5.0}]
    second, fourth = rows.changed_rows
    assert second.key == {"id": 2}
    assert second.cells == {
        "name": ChangedCell(before="b", after="B"), "amount": ChangedCell(before=2.0, after=2.5)
    }  # fmt: skip
    assert fourth.cells == {"amount": ChangedCell(before=None, after=4.0)}


def test_without_a_key_rows_are_added_and_removed(diff: Diff) -> None:
    rows = diff.compare([(1, "a", 1.0), (1, "a", 1.0)], [(1, "a", 1.0), (2, "b", NAN), (2, "b", NAN)], key=())
    assert numbers(rows) == (2, 1, 0, 1)
    assert rows.added_rows == [{"id": 2, "name": "b", "amount": "nan"}] * 2
    assert rows.compared_by_value == 0


def test_repeated_and_null_keys_never_count_as_changed(diff: Diff) -> None:
    before = [(1, "a", 1.0), (1, "b", 1.0), (None, "n", 1.0), (3, "c", 1.0)]
    after = [(1, "a", 1.0), (1, "x", 1.0), (None, "m", 1.0), (3, "d", 1.0)]
    rows = diff.compare(before, after)
    assert numbers(rows) == (2, 2, 1, 1)
    assert (rows.repeated_keys, rows.null_keys, rows.compared_by_value) == (1, 2, 6)
    assert [each.key for each in rows.changed_rows] == [{"id": 3}]


def test_columns_are_matched_by_field_id(diff: Diff) -> None:
    """A column was renamed and promoted, one dropped, and one added under the dropped one's name."""
    old = [SchemaField(1, "id", "int"), SchemaField(2, "name", "string"), SchemaField(3, "amount", "float")]
    new = [SchemaField(1, "key", "long"), SchemaField(3, "price", "double"), SchemaField(4, "NAME", "long")]
    before, after = [(1, "a", 1.5), (2, "b", 2.5)], [(1, 1.5, None), (2, 2.5, 7), (3, 1.0, 8)]
    rows = diff.compare(before, after, fields=(old, new))
    assert numbers(rows) == (1, 0, 1, 1)
    assert rows.changed_rows[0].cells == {"NAME": ChangedCell(before=None, after=7)}
    assert rows.added_rows == [{"key": 3, "price": 1.0, "NAME": 8}]


def test_rows_count_in_their_partitions(diff: Diff) -> None:
    rows = diff.compare([(1, "a", 1.0), (2, "b", 2.0)], [(1, "z", 1.0), (3, "c", 3.0)], partitions=("m=1", "m=2"))
    by_partition = {each.partition: (each.added, each.removed, each.changed) for each in rows.partitions}
    assert by_partition == {"m=2": (1, 0, 1), "m=1": (0, 1, 0)}


def test_samples_are_bounded_by_number_and_by_size(diff: Diff) -> None:
    rows = diff.compare([], [(number, "x" * 5_000, 0.0) for number in range(50)], rows=3)
    assert rows.added == 50 and len(rows.added_rows) == 3
    assert all(len(row["name"]) <= 121 for row in rows.added_rows)
    wide = [SchemaField(number, f"c{number}", "string") for number in range(1, 401)]
    row = tuple("y" * 120 for _ in wide)
    rows = diff.compare([], [row], key=(), fields=(wide, wide))
    assert rows.added == 1 and rows.added_rows == []


def test_only_rows_that_one_version_deletes_are_read(diff: Diff) -> None:
    data = write(diff.folder / "data.parquet", FIELDS, [(number, "r", 0.0) for number in range(6)])
    deletes = []
    for name, positions in (("old", [0, 1]), ("new", [1, 2, 3])):
        file = diff.folder / f"{name}-deletes.parquet"
        pq.write_table(pa.table({"file_path": [data] * len(positions), "pos": positions}), file)
        deletes.append(DeleteFile(str(file), "PARQUET", len(positions)))
    added = write(diff.folder / "added.parquet", FIELDS, [(3, "changed", 0.0)])
    fields = with_field_names(FIELDS)
    versions = [
        DiffedVersion(
            files=ParquetView(f"{name}_files", fields, own, with_position=True),
            marked=ParquetView(f"{name}_marked", fields, [data], with_position=True),
            deletes={data: [file]},
        )
        for name, own, file in (("before", [], deletes[0]), ("after", [added], deletes[1]))
    ]
    rows = diff.run(versions, key=(1,))
    assert numbers(rows) == (1, 1, 1, 0)
    assert [row["id"] for row in rows.added_rows] == [0] and [row["id"] for row in rows.removed_rows] == [2]
    assert rows.changed_rows[0].cells == {"name": ChangedCell(before="r", after="changed")}


def comparable(row: Row) -> Row:
    """Return a row in which NaN equals NaN, and 0.0 equals -0.0."""
    return tuple("NaN" if isinstance(each, float) and math.isnan(each) else each for each in row)


def naive(before: Sequence[Row], after: Sequence[Row]) -> tuple[tuple[int, int, int, int], Counter[int]]:
    """Compare rows by the first value, as a person would with two lists."""
    old, new = [comparable(row) for row in before], [comparable(row) for row in after]
    counts = [Counter(row[0] for row in side) for side in (old, new)]
    unique = {key for key in {*counts[0], *counts[1]} if key is not None and max(each[key] for each in counts) == 1}
    by_key = [{row[0]: row for row in side if row[0] in unique} for side in (old, new)]
    loose = [Counter(row for row in side if row[0] not in unique) for side in (old, new)]
    added = len(by_key[1].keys() - by_key[0].keys()) + (loose[1] - loose[0]).total()
    removed = len(by_key[0].keys() - by_key[1].keys()) + (loose[0] - loose[1]).total()
    pairs = [(by_key[0][key], by_key[1][key]) for key in by_key[0].keys() & by_key[1].keys()]
    cells = Counter(index for a, b in pairs for index in range(len(a)) if a[index] != b[index])
    changed = sum(a != b for a, b in pairs)
    return (added, removed, changed, len(old) - removed - changed), cells


VALUES = st.tuples(
    st.one_of(st.none(), st.integers(0, 6)),
    st.one_of(st.none(), st.sampled_from(["", "a", "b", "é\n"])),
    st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, NAN, math.inf])),
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.lists(VALUES, max_size=12), after=st.lists(VALUES, max_size=12))
def test_any_rows_as_in_python(diff: Diff, before: list[Row], after: list[Row]) -> None:
    expected, cells = naive(before, after)
    rows = diff.compare(before, after, rows=100)
    assert numbers(rows) == expected
    assert {each.column: each.cells for each in rows.columns} == {
        FIELDS[index].name: count for index, count in cells.items()
    }
    assert (len(rows.added_rows), len(rows.removed_rows), len(rows.changed_rows)) == expected[:3]
