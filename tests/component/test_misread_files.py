"""Files that Spark misreads, or refuses without naming the column: Sluice reads them exactly, or names the column."""

import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.errors import AnalysisException

from lakehouse.source_files import find_repeated_key
from sluice.errors import InvalidInput
from spark_jobs.job import error_answer
from tests.harness.ingester import Ingester, file


def parquet(path: Path, **columns: pa.Array) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return str(path)


# --- names ---


@pytest.mark.parametrize("header", ["id,ID", "a,b,a", "id,x, ID"])
def test_columns_of_csv_that_differ_in_capital_letters_alone(job: Ingester, header: str) -> None:
    path = file(job, "in.csv", f"{header}\n{'1,' * header.count(',')}1\n")
    refused = job.refused({"path": path})
    assert refused.startswith(f"{path}: the column") and "rename one" in refused, refused


def test_columns_of_parquet_that_differ_in_capital_letters_alone(job: Ingester) -> None:
    path = parquet(job.folder / "in.parquet", column=pa.array([1]), COLUMN=pa.array([2]))
    assert job.refused({"path": path}).startswith(
        f"{path}: the columns 'column' and 'COLUMN' differ in capital letters"
    )


def test_fields_of_json_that_differ_in_capital_letters_alone(job: Ingester) -> None:
    path = file(job, "in.jsonl", '{"id": 1, "a": 1}\n{"id": 2, "A": 3}\n')
    refused = job.refused({"path": path})
    where = f"rename one of them in the files; A is in {path}; a is in {path}"
    assert refused == f"the files contain the fields A and a, which differ in capital letters alone: {where}"
    paths = [file(job, f"{name}.json", f'[{{"id": 1,\n"s": {{"{name}": 1}}}}]') for name in ("a", "A")]
    refused = job.refused({"path": paths})
    assert refused.startswith("the files contain the fields s.A and s.a, which differ in capital letters alone"), (
        refused
    )
    assert refused.endswith(f"; s.A is in {paths[1]}; s.a is in {paths[0]}"), refused


def test_fields_of_json_are_found_whatever_their_capital_letters(job: Ingester) -> None:
    lines = '{"ID": 1, "A": 77, "s": {"B": 5}}\n'
    job({"path": file(job, "in.jsonl", lines), "schema": "id BIGINT, a BIGINT, s STRUCT<b: BIGINT>"})
    job({"path": file(job, "in.json", f"[{lines.replace('1', '2')}]")})
    assert job.rows() == [{"id": id, "a": 77, "s": {"b": 5}} for id in (1, 2)]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('{"id": 0}\n{"id": 1, "a": 1, "a": 2}\n', ", line 2"),
        ('\ufeff{"id": 1, "o": [{"a": 1, "a": 2}]}\n', ", line 1"),
        ('[{"id": 1},\n{"id": 2, "a": 1,\n"a": 2}]\n', ""),
    ],
)
def test_a_field_of_json_that_occurs_twice(job: Ingester, content: str, line: str) -> None:
    path, good = file(job, "in.json", content), file(job, "good.json", '{"id": 5, "a": 1}\n')
    with pytest.raises(AnalysisException) as refused:
        job({"path": [good, path]})
    answer = error_answer(refused.value)
    assert answer.repeats_name and answer.error == "the input has the column `a` twice"
    named = f'{path}{line}: an object has the key "a" twice: rename one of them'
    assert find_repeated_key([good, path], "UTF-8") == named
    assert find_repeated_key([good, f"{job.folder}/absent"], "UTF-8") is None


def test_a_field_of_json_with_the_name_of_a_field_in_another(job: Ingester) -> None:
    for content in ('{"id": 1, "a.b": 2, "a": {"b": 3}}', '{"id": 1, "a.element.b": 2, "a": [{"b": 3}]}'):
        refused = job.refused({"path": file(job, "in.json", content)})
        assert "is a column, and also a field in a column of the input" in refused and "rename one" in refused


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("in.json", '{"id": 1, "_corrupt_record": "x"}\n'),
        ("array.json", '[{"id": 1,\n"_corrupt_record": "x"}]\n'),
        ("in.csv", "id,_corrupt_record\n1,x\n"),
    ],
)
def test_a_column_with_the_name_that_spark_gives_to_bad_records(job: Ingester, name: str, content: str) -> None:
    job({"path": file(job, name, content)})
    assert job.rows() == [{"id": 1, "_corrupt_record": "x"}]


@pytest.mark.parametrize("name", ["_file", "_pos", "_DELETED", "_spec_id", "_partition"])
def test_names_that_iceberg_reserves(job: Ingester, name: str) -> None:
    for value in ("2", ""):  # a column without values has no type yet, and a later file would add it
        path = file(job, "in.csv", f"id,{name}\n1,{value}\n")
        assert f"Iceberg reserves the name of the column '{name}'" in job.refused({"path": path})


# --- folders ---


def test_values_of_folders_are_utf_8(job: Ingester) -> None:
    for folder in ("city=S%C3%A3o%20Paulo", "city=Bergen", "city=Åre"):
        file(job, f"t/{folder}/x.csv", f"id\n{len(folder)}\n")
    job({"path": str(job.folder / "t"), "format": "csv"})
    assert [row["city"] for row in job.rows()] == ["Åre", "Bergen", "São Paulo"]


def test_a_file_outside_of_the_folders(job: Ingester) -> None:
    inside, outside = file(job, "t/dt=2024-01-01/x.csv", "id\n1\n"), file(job, "t/y.csv", "id\n2\n")
    refused = job.refused({"path": str(job.folder / "t"), "format": "csv"})
    assert refused.startswith(f"{outside} does not lie in folders dt= as {inside} does"), refused


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_a_column_in_the_folders_and_in_the_files(job: Ingester, format: str) -> None:
    folder = job.folder / "t" / "dt=2024-01-01"
    if format == "parquet":
        parquet(folder / "x.parquet", id=pa.array([1]), dt=pa.array(["2024-01-02"]))
    else:
        text = "id,dt\n1,2024-01-02\n" if format == "csv" else '{"id": 1, "dt": "2024-01-02"}\n'
        file(job, f"t/dt=2024-01-01/x.{format}", text)
    refused = job.refused({"path": str(job.folder / "t"), "format": format})
    assert "the column dt is in the folders `dt=` and in the file" in refused, refused


@pytest.mark.parametrize("format", ["json", "parquet", "orc"])
@pytest.mark.parametrize("stated", [{}, {"schema": "id INT"}])
def test_a_column_in_the_folders_and_in_a_later_file(job: Ingester, format: str, stated: dict[str, str]) -> None:
    for number, more in enumerate(({}, {"dt": "2023-12-31"})):
        path = job.folder / "t" / f"dt=2024-01-0{number + 1}" / f"x.{format}"
        if format == "json":
            file(job, str(path), json.dumps({"id": number, **more}) + "\n")
            continue
        path.parent.mkdir(parents=True)
        table = pa.table({"id": pa.array([number], pa.int32()), **{name: [text] for name, text in more.items()}})
        (pq if format == "parquet" else orc).write_table(table, path)
    refused = job.refused({"path": str(job.folder / "t"), "format": format, **stated})
    assert "the column dt is in the folders `dt=` and in the file" in refused, refused


@pytest.mark.parametrize("stated", [{}, {"schema": "id INT, name STRING"}])
def test_a_record_that_is_cut_off_in_a_folder_is_named(job: Ingester, stated: dict[str, str]) -> None:
    file(job, "t/dt=2024-01-01/a.jsonl", '{"id": 0, "name": "a"}\n')
    path = file(job, "t/dt=2024-01-02/b.jsonl", '{"id": 1, "name": "b"}\n{"id": 2, "na')
    answer = job({"path": str(job.folder / "t"), "format": "json", **stated})
    assert answer.unreadable
    assert (answer.unreadable.path, answer.unreadable.record) == (path, '{"id": 2, "na')
    assert answer.unreadable.problem == "it is not a whole JSON value"


# --- nested fields, and damage ---


def test_a_merge_sets_no_nested_field_to_null(job: Ingester) -> None:
    job({"path": file(job, "a.jsonl", '{"id": 1, "s": {"b": 1, "c": 2}}\n')}, mode="merge", keys=["id"])
    source = {"path": file(job, "b.jsonl", '{"id": 1, "s": {"b": 10}}\n')}
    refused = job.refused(source, mode="merge", keys=["id"])
    assert "have no field s.c, and a merge would set it to NULL" in refused, refused
    assert job.rows() == [{"id": 1, "s": {"b": 1, "c": 2}}]


@pytest.mark.parametrize(
    ("format", "content"),
    [
        ("jsonl", '{"id": 1, "s": {"b": 10}}\n{"id": 2, "s": {"b": 1, "c": {"d": 2}}}\n'),
        ("jsonl", '[{"id": 1, "s": {"b": 10}}, {"id": 2, "s": {"b": 1, "c": {"d": 2}}}]\n'),
        ("json", '[{"id": 1, "s": {"b": 10}},\n {"id": 2, "s": {"b": 1, "c": {"d": 2}}}]\n'),
    ],
)
def test_a_merge_sets_no_nested_field_of_a_single_record_to_null(job: Ingester, format: str, content: str) -> None:
    """Other records have the field, so Spark infers it. NULL that the record states is a value."""
    first = '{"id": 1, "s": {"b": 1, "c": {"d": 2}}}\n{"id": 2, "s": null}\n'
    merge: dict[str, Any] = {"mode": "merge", "keys": ["id"]}
    job({"path": file(job, "a.jsonl", first)}, **merge)
    path = file(job, f"b.{format}", content)
    refused = job.refused({"path": path, "format": "json"}, **merge)
    assert refused.startswith(f"{path}: 1 record has no field s.c, and a merge would set it to NULL in "), refused
    stated = content.replace('{"b": 10}', '{"b": 10, "c": null}')
    job({"path": file(job, f"c.{format}", stated), "format": "json"}, **merge)
    expected = [{"b": 10, "c": None}, {"b": 1, "c": {"d": 2}}]
    assert [row["s"] for row in sorted(job.rows(), key=lambda row: int(row["id"]))] == expected
    job({"path": path, "format": "json"}, transform="SELECT * FROM source", **merge)


def test_a_parquet_page_whose_checksum_does_not_match(job: Ingester) -> None:
    path = job.folder / "in.parquet"
    numbers = pa.table({"id": pa.array(range(1000), pa.int64())})
    pq.write_table(numbers, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[content.index(struct.pack("<q", 777))] ^= 1
    path.write_bytes(content)
    damage = f"{path} is damaged: a page does not have its stored checksum. Copy the file again, or write it again"
    assert job.refused({"path": str(path)}) == damage


@pytest.mark.parametrize("compression", ["snappy", "zstd", "gzip"])
def test_a_parquet_page_that_cannot_be_decoded(job: Ingester, compression: str) -> None:
    path = job.folder / "in.parquet"
    rows = pa.table({"id": pa.array(range(1000), pa.int64())})
    pq.write_table(rows, path, compression=compression, use_dictionary=False, write_page_checksum=False)
    content = bytearray(path.read_bytes())
    content[40:60] = b"\xff" * 20
    path.write_bytes(content)
    refused = job.refused({"path": str(path)})
    assert refused == f"{path} is damaged: Spark cannot decode a part of it. Copy the file again, or write it again"


@pytest.mark.parametrize(
    ("column", "type"),
    [
        (pa.array([b"0123456789abcdef"], pa.uuid()), "UUID"),
        (pa.array([1], pa.time64("us")), "TIME"),
        (pa.array([1.5], pa.float16()), "FLOAT16"),
        (pa.array([1], pa.decimal256(60, 2)), "DECIMAL(60,2)"),
    ],
)
def test_types_of_parquet_that_spark_does_not_read(job: Ingester, column: pa.Array, type: str) -> None:
    path = parquet(job.folder / "in.parquet", id=pa.array([1]), x=column)
    with pytest.raises(InvalidInput) as refused:
        job({"path": path})
    assert str(refused.value).startswith(f"{path}: the column x is {type}, which Spark does not read: write it as ")


def test_a_time_of_orc_that_spark_does_not_read(job: Ingester) -> None:
    path = job.folder / "in.orc"
    orc.write_table(pa.table({"id": [1], "t": pa.array([1], pa.timestamp("us", "UTC"))}), path)
    with pytest.raises(InvalidInput, match=r"in\.orc: the column t is a timestamp with local time zone"):
        job({"path": str(path)})


def test_a_nested_field_of_the_table_that_parquet_does_not_have(job: Ingester) -> None:
    job({"path": parquet(job.folder / "a.parquet", id=pa.array([1]), s=pa.array([{"b": 1, "c": 2}]))})
    path = parquet(job.folder / "b.parquet", id=pa.array([2]), s=pa.array([{"b": 1}]))
    assert job.refused({"path": path}).startswith("the input has no field `s`.`c`, which the table has")


def test_a_compression_of_parquet_that_spark_does_not_read(job: Ingester) -> None:
    path = job.folder / "in.parquet"
    pq.write_table(pa.table({"id": [1]}), path, compression="brotli")
    assert job.refused({"path": str(path)}).startswith(f"{path}: the column id is compressed by BROTLI")


# --- nanoseconds ---


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_that_are_whole_microseconds(job: Ingester, zone: str | None) -> None:
    """Tested on a new table, and on one that has a column of times."""
    moments = [1704448800123456000, None, -1000]
    for number in (0, 1):
        ids = pa.array([3 * number, 3 * number + 1, 3 * number + 2])
        parquet(job.folder / f"{number}.parquet", id=ids, t=pa.array(moments, pa.timestamp("ns", zone)))
        job({"path": f"{job.folder}/{number}.parquet"})
    shown = [row["t"] and row["t"].replace(tzinfo=None).isoformat() for row in job.rows()]
    assert shown == ["2024-01-05T10:00:00.123456", None, "1969-12-31T23:59:59.999999"] * 2


def test_another_refusal_in_a_file_with_nanoseconds(job: Ingester) -> None:
    """Spark reads nanoseconds as numbers, which is no other type than that of the table."""
    times = pa.array([1704448800123456000], pa.timestamp("ns"))
    job({"path": parquet(job.folder / "a.parquet", id=pa.array([1]), t=times, x=pa.array([1]))})
    path = parquet(job.folder / "b.parquet", id=pa.array([2]), t=times, x=pa.array([1.5]))
    assert job.refused({"path": path}).startswith("x: 1 value of type double")


def test_nanoseconds_that_would_be_lost(job: Ingester) -> None:
    good = pa.array([1704448800123456000], pa.timestamp("ns"))
    parquet(job.folder / "a.parquet", id=pa.array([1]), t=good)
    bad = parquet(job.folder / "b.parquet", id=pa.array([2]), t=pa.array([1704448800123456789], pa.timestamp("ns")))
    refused = job.refused({"path": f"{job.folder}/*.parquet"})
    assert "t: 1 value" in refused and bad in refused and "nanoseconds" in refused, refused
    for name, type in (("t", pa.timestamp("us")), ("T", pa.timestamp("us")), ("T", pa.int64())):
        parquet(job.folder / "b.parquet", id=pa.array([2]), **{name: pa.array([1704448800123456], type)})
        with pytest.raises(InvalidInput, match=r"the column t has nanoseconds in .*a\.parquet and another unit"):
            job({"path": f"{job.folder}/*.parquet"})
