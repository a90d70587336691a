"""The built-in write job: formats, modes, and all its refusals. All tests share one warm session."""

import json
import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from pyspark.sql import SparkSession

from lakehouse.iceberg.table_state import TableState
from lakehouse.open_catalog import open_catalog
from sluice.errors import InvalidInput
from sluice.settings import read_settings
from tests.harness.ingester import Ingester
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file
from tests.harness.warm_branch import BRANCH

ROWS: list[dict[str, Any]] = [{"id": 1, "name": "a", "ratio": 0.5}, {"id": 2, "name": None, "ratio": 1.5}]


@pytest.fixture
def job(spark: SparkSession, lake: LakeReader, tmp_path: Path, request: pytest.FixtureRequest) -> Ingester:
    plain = "".join(character if character.isalnum() else "_" for character in request.node.name)
    return Ingester(spark, lake, f"i.{plain}", tmp_path)


def write_source(form: str, folder: Path) -> str:
    """Write ROWS in a format; return the path."""
    path = folder / f"in.{form}"
    if form == "csv":
        return str(csv_file(path, ROWS))
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif form == "json":
        path.write_text(json.dumps(ROWS, indent=2))
    elif form == "parquet":
        parquet.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        orc.write_table(pa.Table.from_pylist(ROWS), str(path))
    return str(path)


@pytest.mark.parametrize("form", ["csv", "jsonl", "json", "parquet", "orc"])
def test_every_format_creates_the_table_and_appends(form: str, job: Ingester) -> None:
    path = write_source(form, job.folder)
    for times in (1, 2):
        answer = job({"path": path})
        assert (answer.rows_read, answer.rows_written) == (2, 2)
        assert job.rows() == sorted(ROWS * times, key=lambda row: row["id"])


def test_the_table_is_made_as_the_pipeline_says(job: Ingester, stack: dict[str, str]) -> None:
    rows = [{"id": n, "on": f"2024-0{1 + n % 3}-05", "odd name": n, "city": f"c{n}"} for n in range(9)]
    table = {
        "partition_by": ["month(on)", "bucket(4, id)", "truncate(1, city)"],
        "comment": "a table",
        "comments": {"odd name": "it's odd"},
        "properties": {"write.format.default": "orc"},
    }
    job({"path": str(csv_file(job.folder / "in.csv", rows))}, table)
    version = open_catalog(read_settings(stack)).table_version(BRANCH, job.table)
    assert version
    made = TableState.load(version, None, {}).table
    transforms = [(field.name, str(field.transform)) for field in made.spec().fields]
    assert transforms == [("on_month", "month"), ("id_bucket", "bucket[4]"), ("city_trunc", "truncate[1]")]
    assert made.schema().find_field("odd name").doc == "it's odd"
    assert made.properties["comment"] == "a table"
    assert made.properties["write.format.default"] == "orc"
    assert len(job.rows()) == 9


def test_overwrite_replaces_everything(job: Ingester) -> None:
    job({"path": str(csv_file(job.folder / "1.csv", ROWS))})
    job({"path": str(csv_file(job.folder / "2.csv", [{"id": 9, "name": "z", "ratio": 2.5}]))}, mode="overwrite")
    assert job.rows() == [{"id": 9, "name": "z", "ratio": 2.5}]


def test_overwrite_partitions_replaces_only_those_of_the_input(job: Ingester) -> None:
    table = {"partition_by": ["name"]}
    job({"path": str(csv_file(job.folder / "1.csv", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]))}, table)
    job({"path": str(csv_file(job.folder / "2.csv", [{"id": 3, "name": "b"}]))}, table, mode="overwrite_partitions")
    assert job.rows() == [{"id": 1, "name": "a"}, {"id": 3, "name": "b"}]


def test_a_compaction_moves_files_into_the_present_partitions(job: Ingester, spark: SparkSession) -> None:
    """A compaction is the remedy that a write of partitions names when it meets older files."""
    rows = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    job({"path": str(csv_file(job.folder / "1.csv", rows))})
    spark.sql(f"ALTER TABLE nessie.{job.table} ADD PARTITION FIELD name")
    job({"path": str(csv_file(job.folder / "2.csv", [{"id": 3, "name": "b"}]))})

    def specs() -> list[int]:
        files = spark.sql(f"SELECT DISTINCT spec_id FROM nessie.{job.table}.data_files")
        return sorted(row[0] for row in files.collect())

    assert len(specs()) == 2
    job(mode="compact", options={"rewrite-all": "true"})
    assert len(specs()) == 1
    job({"path": str(csv_file(job.folder / "3.csv", [{"id": 4, "name": "b"}]))}, mode="overwrite_partitions")
    assert job.rows() == [rows[0], {"id": 4, "name": "b"}]


def test_merge_by_keys_updates_and_inserts(job: Ingester) -> None:
    job({"path": str(csv_file(job.folder / "1.csv", ROWS))}, mode="merge", keys=["id"])
    newer = [{"id": 2, "name": "b", "ratio": 2.5}, {"id": 3, "name": "c", "ratio": 3.5}]
    answer = job({"path": str(csv_file(job.folder / "2.csv", newer))}, mode="merge", keys=["id"])
    assert answer.rows_merged == 2
    assert job.rows() == [ROWS[0], *newer]
    twice = str(csv_file(job.folder / "3.csv", [newer[0], newer[0]]))
    assert "merge keys (id) occur more than once in the input" in job.refused(
        {"path": twice}, mode="merge", keys=["id"]
    )
    keyless = str(csv_file(job.folder / "4.csv", [{"id": None, "name": "b", "ratio": 1.5}]))
    refused = job.refused({"path": keyless}, mode="merge", keys=["id"])
    assert refused == "1 row without a value in a merge key (id)"


def test_statements_run_in_order(job: Ingester) -> None:
    job({"path": str(csv_file(job.folder / "in.csv", ROWS))})
    job(
        mode="sql",
        statements=[
            f"INSERT INTO {job.table} SELECT id + 10, name, ratio FROM {job.table}",
            f"UPDATE {job.table} SET name = 'late' WHERE id > 10",
            f"DELETE FROM {job.table} WHERE id = 12",
        ],
    )
    assert job.rows() == [*ROWS, {"id": 11, "name": "late", "ratio": 0.5}]


@pytest.mark.parametrize("condition", ["", "WHERE 1 = 1", "WHERE id = id OR id IS NULL", "WHERE id > 0"])
def test_a_delete_of_everything_deletes_everything(job: Ingester, condition: str) -> None:
    """The condition may be true for all rows, recognisably so for Spark or not."""
    job({"path": str(csv_file(job.folder / "in.csv", ROWS))})
    job(mode="sql", statements=[f"DELETE FROM {job.table} {condition}"])
    assert job.rows() == []


def test_transform_between_reading_and_writing(job: Ingester) -> None:
    source = {"path": str(csv_file(job.folder / "in.csv", ROWS))}
    answer = job(source, transform="SELECT id, upper(name) AS name FROM source WHERE name IS NOT NULL")
    assert (answer.rows_read, answer.rows_written) == (2, 1)
    assert job.rows() == [{"id": 1, "name": "A"}]


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


def test_a_header_that_does_not_match(job: Ingester) -> None:
    job({"path": str(csv_file(job.folder / "1.csv", ROWS))})
    wrong = str(csv_file(job.folder / "2.csv", [{"id": 1, "nane": "a", "ratio": 1.0}]))
    why = job.refused({"path": wrong})
    assert "has no column 'nane' (did you mean 'name'?)" in why
    assert "the input has no column 'name'" in why
    assert len(job.rows()) == 2


def test_files_whose_headers_differ(job: Ingester) -> None:
    csv_file(job.folder / "1.csv", [{"id": 1, "name": "a"}])
    csv_file(job.folder / "2.csv", [{"name": "a", "id": 1}])
    assert "header" in job.refused({"path": f"{job.folder}/*.csv"})


def test_a_value_that_cannot_be_cast(job: Ingester) -> None:
    job({"path": str(csv_file(job.folder / "1.csv", ROWS))})
    wrong = str(csv_file(job.folder / "2.csv", [{"id": "seven", "name": "a", "ratio": 1.0}]))
    assert job.refused({"path": wrong}) == f"{wrong}: id: 'seven' is not a valid int; 1 such row"
    typed = job.folder / "3.parquet"
    parquet.write_table(pa.table({"id": ["seven"], "name": ["a"], "ratio": [1.0]}), typed)
    assert "id" in job.refused({"path": str(typed)})
    assert len(job.rows()) == 2


@pytest.mark.parametrize(
    ("first", "then", "have", "want"),
    [
        (pa.array([1], pa.int32()), pa.array([2.5], pa.float64()), "double", "int"),
        (pa.array([1], pa.int64()), pa.array([Decimal("2.5")], pa.decimal128(10, 2)), "decimal(10,2)", "bigint"),
        (pa.array([Decimal("1.5")], pa.decimal128(10, 1)), pa.array([2.25], pa.float64()), "double", "decimal(10,1)"),
        (pa.array([1.5], pa.float64()), pa.array([2**53 + 1], pa.int64()), "bigint", "double"),
        (
            pa.array([date(2026, 1, 1)]),
            pa.array([datetime(2026, 1, 1, 5)]),
            "timestamp_ntz",
            "date",
        ),
        (
            pa.array([{"a": 1, "b": [1]}], pa.struct({"a": pa.int32(), "b": pa.list_(pa.int32())})),
            pa.array([{"b": [1.0, 1.5], "a": 1}], pa.struct({"b": pa.list_(pa.float64()), "a": pa.int32()})),
            "struct<b:array<double>,a:int>",
            "struct<a:int,b:array<int>>",
        ),
        (
            pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
            pa.array([[("a", 1.5)]], pa.map_(pa.string(), pa.float64())),
            "map<string,double>",
            "map<string,int>",
        ),
    ],
)
def test_a_value_that_would_be_rounded_or_cut(
    first: pa.Array, then: pa.Array, have: str, want: str, job: Ingester
) -> None:
    def of(name: str, value: pa.Array) -> dict[str, Any]:
        file = job.folder / f"{name}.parquet"
        parquet.write_table(pa.table({"id": pa.array([len(name)], pa.int64()), "value": value}), file)
        return {"path": str(file)}

    job(of("a", first))
    message = job.refused(of("lossy", then))
    path = job.folder / "lossy.parquet"
    if "<" in have:
        assert message == f"{path}: value is {have}, and {job.table} has {want}"
    else:
        assert message.startswith(f"value: 1 value of type {have} ({path}) cannot be stored as {want} without")
    assert "without being rounded or cut" in job.refused(of("by-query", then), transform="SELECT * FROM source")
    assert [row["id"] for row in job.rows()] == [1]
    job(of("ok", pa.nulls(1, then.type)))
    assert [row["id"] for row in job.rows()] == [1, 2]


def test_values_of_another_type_that_lose_nothing_are_stored(job: Ingester) -> None:
    def load(**columns: pa.Array) -> None:
        file = job.folder / f"{len(list(job.folder.iterdir()))}.parquet"
        parquet.write_table(pa.table(columns), file)
        job({"path": str(file)})

    load(id=pa.array([1], pa.int64()), seats=pa.array([4], pa.int32()), price=pa.array([Decimal("0.10")]))
    load(id=pa.array([2.0]), seats=pa.array([3.0]), price=pa.array([0.1]))
    assert [(row["id"], row["seats"], row["price"]) for row in job.rows()] == [
        (1, 4, Decimal("0.10")),
        (2, 3, Decimal("0.10")),
    ]


def parquet_files(job: Ingester, *values: pa.Array) -> list[str]:
    """Write a file for each of the values; return their paths. Ids continue from one call to the next."""
    paths = []
    for value in values:
        number = len(list(job.folder.glob("*.parquet"))) + 1
        path = job.folder / f"{number}.parquet"
        ids = pa.array(range(10 * number, 10 * number + len(value)), pa.int64())
        parquet.write_table(pa.table({"id": ids, "v": value}), path)
        paths.append(str(path))
    return paths


def values(job: Ingester, column: str = "v") -> list[Any]:
    return [row[column] for row in job.rows()]


def test_numbers_in_a_text_column_do_not_depend_on_the_files_of_the_batch(job: Ingester) -> None:
    job({"path": parquet_files(job, pa.array(["a"]))})
    whole, fraction, untyped = parquet_files(job, pa.array([5], pa.int64()), pa.array([0.5]), pa.nulls(1))
    job({"path": [whole, fraction, untyped]})
    assert values(job) == ["a", "5", "0.5", None]


def test_structs_of_files_in_groups_are_matched_by_name(job: Ingester) -> None:
    """A cast of structs would match fields by their order."""
    first = pa.table({"id": [1], "fee": pa.nulls(1), "v": pa.array([{"a": 1, "b": 2}])})
    second = pa.table({"id": [2], "fee": [0.5], "v": pa.array([{"b": 4, "a": 3, "c": 5}])})
    paths = [str(job.folder / f"{number}.parquet") for number in (1, 2)]
    for path, table in zip(paths, (first, second), strict=True):
        parquet.write_table(table, path)
    job({"path": paths})
    assert values(job) == [{"a": 1, "b": 2, "c": None}, {"a": 3, "b": 4, "c": 5}]
    parquet.write_table(pa.table({"id": [3], "fee": [1.5], "v": pa.array([{"a": 1.5}])}), paths[1])
    job.table += "_other"
    assert "v.a is bigint in some files and double in others: write" in job.refused({"path": paths})


def load_columns(job: Ingester, *columns: pa.Array) -> dict[str, Any]:
    """Return the source of a file with the columns `c0`, `c1`, ..., padded with NULL."""
    length = max(map(len, columns))
    padded = {
        f"c{n}": pa.concat_arrays([each, pa.nulls(length - len(each), each.type)]) for n, each in enumerate(columns)
    }
    path = job.folder / f"{len(list(job.folder.iterdir()))}.parquet"
    parquet.write_table(pa.table({"id": pa.array(range(length), pa.int64()), **padded}), path)
    return {"path": str(path)}


def test_values_at_the_limits_of_types(job: Ingester) -> None:
    float64, float32 = pa.array([1.5], pa.float64()), pa.array([1.5], pa.float32())
    int64, int32, tenths = pa.array([1], pa.int64()), pa.array([1], pa.int32()), pa.array([Decimal("1.5")])
    cases = [
        (float64, pa.array([2**63 - 1, 2**53 + 1], pa.int64())),
        (int64, pa.array([2.0**63], pa.float64())),
        (int64, pa.array([2.0**63], pa.float32())),
        (float32, pa.array([2**31 - 1, 2**24 + 1], pa.int32())),
        (float32, pa.array([2**63 - 1], pa.int64())),
        (int32, pa.array([2**31], pa.int64())),
        (int64, pa.array([2.5, 1e30, float("nan"), float("inf")])),
        (float32, pa.array([2.0**24 + 1, 1e300, -1e300, 1e-300])),
        (tenths, pa.array([1e30, 0.25])),
    ]
    job(load_columns(job, *(of_table for of_table, _ in cases)))
    source = load_columns(job, *(value for _, value in cases))
    refused = job.refused(source)
    for number, (_, value) in enumerate(cases):
        count = "1 value" if len(value) == 1 else f"{len(value)} values"
        assert f"c{number}: {count} of type " in refused
        assert f"write CAST(c{number} AS " in refused
    assert f"({source['path']}) cannot be stored as " in refused
    assert len(job.rows()) == 1


def test_values_within_the_limits_of_types(job: Ingester) -> None:
    float64, float32 = pa.array([1.5], pa.float64()), pa.array([1.5], pa.float32())
    cases = [
        (float64, pa.array([-(2**63), 2**62, None], pa.int64())),
        (pa.array([1], pa.int64()), pa.array([-(2.0**63), 2.0**62, -0.0], pa.float64())),
        (float32, pa.array([-(2**31), 2**24], pa.int32())),
        (float32, pa.array([0.1, 1e30, float("inf"), float("nan"), -0.0, 2.0**100, None])),
        (float64, pa.array([Decimal("0.10")])),
    ]
    job(load_columns(job, *(of_table for of_table, _ in cases)))
    job(load_columns(job, *(value for _, value in cases)), mode="overwrite")
    for number, (of_table, value) in enumerate(cases):
        wanted = value.cast(of_table.type, safe=False).to_pylist()
        assert repr(values(job, f"c{number}")[: len(wanted)]) == repr(wanted)


def test_a_cast_in_a_transform_rounds(job: Ingester) -> None:
    job({"path": parquet_files(job, pa.array([1], pa.int64()))})
    job({"path": parquet_files(job, pa.array([2.5]))}, transform="SELECT id, CAST(v AS BIGINT) AS v FROM source")
    assert values(job) == [1, 2]


@pytest.mark.parametrize("name", ["a-b", "x:int>, evil STRING, q struct<y", "tick`s", "a.b"])
def test_nested_names_of_files_are_names(name: str, job: Ingester) -> None:
    job.table = f"i.nested_{len(name)}_{ord(name[1])}"
    job({"path": parquet_files(job, pa.nulls(1))})
    job({"path": parquet_files(job, pa.array([[{name: 1, "c": [{name: 2}]}]]))})
    assert values(job)[1:] == [[{name: 1, "c": [{name: 2}]}]]
    assert set(job.rows()[0]) == {"id", "v"}


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


def test_stated_types_for_numbers_of_different_types(job: Ingester) -> None:
    types = ("DOUBLE", "BIGINT", "DECIMAL(10, 2)")
    columns = ", ".join(f"c{number} {type} COMMENT 'a fee'" for number, type in enumerate(types))
    stated = f"more STRING, id BIGINT, {columns}"
    contents = (pa.array([4], pa.int64()), pa.array([3.0]), pa.array([2], pa.int16()))
    whole, gaps, short = (load_columns(job, content, content, content)["path"] for content in contents)
    job({"path": [whole, gaps], "schema": stated})
    job({"path": short, "schema": stated})
    job({"path": whole, "schema": stated})
    for column in ("c0", "c1", "c2"):
        assert sorted(values(job, column)) == [2, 3, 4, 4]
    assert values(job, "more") == [None] * 4
    half = load_columns(job, *[pa.array([0.125])] * 3)["path"]
    large = load_columns(job, *[pa.array([2**53 + 1], pa.int64())] * 3)["path"]
    for lossy, names in ((half, "c[12]"), (large, "c[02]")):
        for batch in ([lossy], [whole, gaps, lossy]):
            assert re.search(f"{names}.* cannot be stored as ", job.refused({"path": batch, "schema": stated}))
    refused = job.refused({"path": [whole, gaps], "schema": "id BIGINT, c0 DOUBLE"})
    assert "source.schema does not have: c1, c2" in refused


def test_decimals_and_other_numbers(job: Ingester) -> None:
    files = parquet_files(
        job, pa.array([Decimal("1.25")], pa.decimal128(4, 2)), pa.array([Decimal("123.5")], pa.decimal128(4, 1))
    )
    job({"path": files})
    assert values(job) == [Decimal("1.25"), Decimal("123.50")]
    files += parquet_files(job, pa.array([2.0]))
    job.table += "_other"
    refused = job.refused({"path": files})
    assert "v is decimal(5,2) in some files and double in others: name its type in source.schema" in refused
    job({"path": files, "schema": "id BIGINT, v DOUBLE"})
    assert values(job) == [1.25, 123.5, 2.0]


def test_a_row_with_too_many_fields(job: Ingester) -> None:
    path = csv_file(job.folder / "in.csv", ROWS)
    path.write_text(path.read_text() + "3,c,1.5,surplus\n")
    assert job.refused({"path": str(path)}) == f"{path}: it has 4 values for 3 columns; 1 such row"


def test_a_header_without_rows(job: Ingester) -> None:
    path = job.folder / "in.csv"
    path.write_text("id,name\n")
    assert job.refused({"path": str(path)}) == "the input contains no rows"


def test_a_column_that_is_not_there(job: Ingester) -> None:
    source = {"path": str(csv_file(job.folder / "in.csv", ROWS))}
    with pytest.raises(InvalidInput, match=r"there is no column 'nme' \(did you mean 'name'\?\)"):
        job(source, {"checks": [{"check": "not_null", "column": "nme"}]})
    assert job.rows() == []


def test_a_query_that_names_what_is_not_there_is_named(job: Ingester) -> None:
    source = {"path": str(csv_file(job.folder / "in.csv", ROWS))}
    refused = job.refused(source, transform="SELECT id, nmae FROM source")
    assert refused.startswith("transform: there is no column `nmae`; there are ") and "`name`" in refused
    job(source)
    statements = [f"DELETE FROM {job.table} WHERE id = 1", f"DELETE FROM {job.table} WHERE idd = 2"]
    refused = job.refused(mode="sql", statements=statements)
    assert refused.startswith("statement 2: there is no column `idd`; there are")
    refused = job.refused(mode="sql", statements=["DELETE FROM i.unknown WHERE id = 1"])
    assert refused.startswith("statement 1: there is no table `i`.`unknown`")


def test_a_transform_that_is_not_sql(job: Ingester) -> None:
    source = {"path": str(csv_file(job.folder / "in.csv", ROWS))}
    with pytest.raises(ValueError, match="transform"):
        job(source, transform="SELEKT 1")


@pytest.mark.parametrize("condition", ["id > 0", "true", "part = 1"])
def test_a_delete_of_whole_files_is_marked_too(job: Ingester, stack: dict[str, str], condition: str) -> None:
    """Iceberg commits such a delete from metadata alone, in a code path that adds no marks to the snapshot."""
    rows = [{"id": number, "part": number % 2} for number in range(4)]
    job({"path": str(csv_file(job.folder / "in.csv", rows))}, {"partition_by": ["part"]})
    catalog = open_catalog(read_settings(stack))
    before = catalog.table_version(BRANCH, job.table)
    job(mode="sql", statements=[f"DELETE FROM {job.table} WHERE {condition}"])
    after = catalog.table_version(BRANCH, job.table)
    assert after and after != before
    state = TableState.load(after, before, {})
    assert state.snapshots and not state.unmarked([("tests", [1])])
