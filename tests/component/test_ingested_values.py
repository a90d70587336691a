"""The values that the built-in write job casts to the type of a column, or refuses."""

import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.harness.ingester import ROWS, Ingester
from tests.harness.pipelines import csv_file


def test_a_value_that_cannot_be_cast(job: Ingester) -> None:
    job({"path": str(csv_file(job.folder / "1.csv", ROWS))})
    wrong = str(csv_file(job.folder / "2.csv", [{"id": "seven", "name": "a", "ratio": 1.0}]))
    assert job.refused({"path": wrong}) == (
        f"{wrong}: id: 'seven' is not a valid int; 1 such row. Correct the file, or read id as STRING and convert it "
        "by a transform"
    )
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
        (pa.array([Decimal(1)], pa.decimal128(38, 0)), pa.array([2.0**60]), "double", "decimal(38,0)"),
        (pa.array([1.5]), pa.array([Decimal(1152921504606846980)], pa.decimal128(38, 0)), "decimal(38,0)", "double"),
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


def test_large_whole_numbers_that_a_decimal_stores_exactly(job: Ingester) -> None:
    numbers = [2.0**53 + 2, 1e20, -1e22, 3e17]
    for name, values in (("a", pa.array([Decimal(1)], pa.decimal128(38, 2))), ("b", pa.array(numbers))):
        parquet.write_table(
            pa.table({"id": pa.nulls(len(values), pa.int64()), "value": values}), job.folder / f"{name}.parquet"
        )
        job({"path": f"{job.folder}/{name}.parquet"})
    assert sorted(row["value"] for row in job.rows()) == sorted([1, *map(int, numbers)])


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
    assert values(job, "more") == [None] * 4, "older files may lack newer columns, as a month of a backfill does"
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
