"""The columns that the built-in write job reads: those of several files, of folders, and those without a type."""

from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

from sluice.errors import InvalidInput
from tests.harness.ingester import ROWS, Ingester
from tests.harness.pipelines import csv_file


def test_columns_are_matched_by_name(job: Ingester) -> None:
    job({"path": str(csv_file(job.folder / "1.csv", ROWS))})
    job({"path": str(csv_file(job.folder / "2.csv", [{"ratio": 9.5, "id": 9, "name": "z"}]))})
    assert job.rows()[-1] == {"id": 9, "name": "z", "ratio": 9.5}


@pytest.mark.parametrize("format", ["csv", "parquet", "json"])
def test_names_that_look_like_patterns_are_read_once_beside_others(job: Ingester, format: str) -> None:
    names = ["a[1]", "b{c}", "d*?", "e\\f", "g #h%25", "plain", "a1"]
    for number, name in enumerate(names):
        path = job.folder / "in" / f"{name}.{format}"
        path.parent.mkdir(exist_ok=True)
        if format == "parquet":
            parquet.write_table(pa.table({"id": pa.array([number], pa.int64())}), path)
        else:
            path.write_text(f"id\n{number}\n" if format == "csv" else f'{{"id": {number}}}\n')
    job({"path": str(job.folder / "in"), "format": format})
    assert [row["id"] for row in job.rows()] == [*range(len(names))]


def test_a_column_that_only_some_parquet_files_have_is_kept(job: Ingester) -> None:
    parquet.write_table(pa.table({"id": [1]}), job.folder / "1.parquet")
    parquet.write_table(pa.table({"id": [2], "extra": ["x"]}), job.folder / "2.parquet")
    job({"path": f"{job.folder}/*.parquet"})
    assert job.rows() == [{"id": 1, "extra": None}, {"id": 2, "extra": "x"}]


def test_a_column_of_parquet_files_that_states_no_type_takes_that_of_later_files(job: Ingester) -> None:
    def file(number: int, fee: pa.Array, **more: pa.Array) -> str:
        path = job.folder / f"{number}.parquet"
        columns = {"fee": fee, "id": pa.array([number], pa.int64()), "note": pa.nulls(1)}
        parquet.write_table(pa.table({**columns, **more}), path)
        return str(path)

    job({"path": file(1, pa.nulls(1))})
    assert job.rows() == [{"id": 1}]  # a column without a type is not added to the new table
    fees = [file(2, pa.array([2.5])), file(3, pa.nulls(1)), file(4, pa.array([None], pa.float64()))]
    job({"path": fees})
    job({"path": file(5, pa.nulls(1))})
    assert [(row["id"], row["fee"]) for row in job.rows()] == [(1, None), (2, 2.5), (3, None), (4, None), (5, None)]
    assert "note" not in job.rows()[0]
    assert "has no column 'other'" in job.refused({"path": file(6, pa.nulls(1), other=pa.array([1]))})
    other = [file(7, pa.array([1.5])), file(8, pa.array(["x"]))]
    assert f"{other[1]}: fee is string, and {job.table} has double" in job.refused({"path": other})
    other[1] = file(8, pa.array(["x"]), note=pa.array(["y"]))
    refused = "fee is double in some files and string in others: write the files with one type, or load them in runs"
    assert refused in job.refused({"path": other})
    transformed = "SELECT id, coalesce(fee, 0.5) AS fee FROM source"
    job({"path": file(11, pa.nulls(1))}, transform=transformed)
    assert job.rows()[-1] == {"id": 11, "fee": 0.5}


def test_a_column_whose_name_changes_its_capital_letters_keeps_its_values(job: Ingester) -> None:
    def file(number: int, **columns: pa.Array) -> str:
        path = job.folder / f"{number}.parquet"
        parquet.write_table(pa.table({"id": pa.array([number], pa.int64()), **columns}), path)
        return str(path)

    fee = pa.array([1.5])
    job({"path": [file(1, airport_fee=pa.nulls(1)), file(2, Airport_fee=fee), file(3, AIRPORT_FEE=fee)]})
    assert [list(row.values()) for row in job.rows()] == [[1, None], [2, 1.5], [3, 1.5]]
    job.table += "_later"
    job({"path": file(4, airport_fee=pa.nulls(1))})
    job({"path": [file(5, Airport_fee=fee), file(6, airport_fee=pa.nulls(1))]})
    assert [row.get("Airport_fee") for row in job.rows()] == [None, 1.5, None]


def test_a_folder_is_a_column_also_where_files_have_an_untyped_one_of_its_name(job: Ingester) -> None:
    for day, fee in (("2026-01-01", pa.nulls(1)), ("2026-01-02", pa.array([2.5]))):
        folder = job.folder / "in" / f"day={day}"
        folder.mkdir(parents=True)
        columns = {"id": pa.array([int(day[-1])], pa.int64()), "fee": fee, "day": pa.nulls(1)}
        parquet.write_table(pa.table(columns), folder / "a.parquet")
    job({"path": str(job.folder / "in"), "format": "parquet"})
    assert [(row["id"], str(row["day"]), row["fee"]) for row in job.rows()] == [
        (1, "2026-01-01", None),
        (2, "2026-01-02", 2.5),
    ]


def test_numbers_that_some_parquet_files_write_as_others(job: Ingester) -> None:
    def file(number: int, seats: pa.Array) -> str:
        path = job.folder / f"{number}.parquet"
        parquet.write_table(pa.table({"id": pa.array([number], pa.int64()), "seats": seats}), path)
        return str(path)

    whole, gaps = file(1, pa.array([4], pa.int64())), file(2, pa.array([3.0]))
    job({"path": [whole, gaps, file(3, pa.array([2], pa.int32())), file(4, pa.nulls(1))]})
    assert [(row["id"], row["seats"]) for row in job.rows()] == [(1, 4.0), (2, 3.0), (3, 2.0), (4, None)]
    large = file(5, pa.array([2**53 + 1], pa.int64()))
    refused = f"seats: 1 value of type bigint ({large}) cannot be stored as double without being rounded or cut: "
    assert job.refused({"path": [gaps, large]}).startswith(f"{refused}change the type of the column")
    job.table += "_new"
    assert job.refused({"path": [gaps, large]}).startswith(f"{refused}state a type that fits all values")
    job.table += "_whole"
    job({"path": whole})
    job({"path": [gaps, file(6, pa.array([7], pa.int32()))]})
    assert [(row["id"], row["seats"]) for row in job.rows()] == [(1, 4), (2, 3), (6, 7)]
    assert f"({file(7, pa.array([2.5]))}) cannot be stored as bigint" in job.refused(
        {"path": [whole, file(7, pa.array([2.5]))]}
    )


def test_a_table_of_columns_without_a_type(job: Ingester) -> None:
    parquet.write_table(pa.table({"id": pa.array([1]), "fee": pa.nulls(1)}), job.folder / "a.parquet")
    source = {"path": str(job.folder / "a.parquet")}
    with pytest.raises(InvalidInput, match=r"(?s)'fee'.*name all columns and their types in source.schema"):
        job(source, {"partition_by": ["fee"]})
    job({**source, "schema": "id BIGINT, fee DECIMAL(10, 2)"})
    assert job.rows() == [{"id": 1, "fee": None}]


def test_folders_named_after_values_are_columns(job: Ingester) -> None:
    for day in ("2024-01-01", "2024-01-02"):
        csv_file(job.folder / "lake" / f"day={day}" / "part.csv", [{"id": int(day[-1])}])
    job({"path": str(job.folder / "lake"), "format": "csv"})
    assert [str(row["day"]) for row in job.rows()] == ["2024-01-01", "2024-01-02"]


def test_folder_columns_of_files_in_groups(job: Ingester) -> None:
    for part, value in (("1", pa.array([4], pa.int64())), ("abc", pa.array([0.5]))):
        folder = job.folder / "in" / f"part={part}"
        folder.mkdir(parents=True)
        parquet.write_table(pa.table({"id": pa.array([len(part)], pa.int64()), "v": value}), folder / "a.parquet")
    source = {"path": str(job.folder / "in"), "format": "parquet"}
    job(source)
    job(source)
    assert [(row["part"], row["v"]) for row in job.rows()] == [("1", 4.0)] * 2 + [("abc", 0.5)] * 2
    job.table += "_stated"
    job({**source, "schema": "part STRING, v DECIMAL(3, 1), id BIGINT"})
    assert [(row["part"], row["v"]) for row in job.rows()] == [("1", Decimal("4.0")), ("abc", Decimal("0.5"))]


def test_a_variant_column_is_converted_by_a_transform_or_refused(job: Ingester) -> None:
    path = job.folder / "a.parquet"
    with duckdb.connect() as db:
        db.execute(f"COPY (SELECT 1 AS id, '{{\"a\": 1}}'::JSON::VARIANT AS v) TO '{path}'")
    assert "the column v is VARIANT" in job.refused({"path": str(path)})
    left = job.refused({"path": str(path)}, transform="SELECT id, struct(v) AS w FROM source")
    assert "the column 'w' is VARIANT" in left and "to_json(w)" in left
    job({"path": str(path)}, transform="SELECT id, to_json(v) AS v FROM source")
    assert job.rows() == [{"id": 1, "v": '{"a":1}'}]
