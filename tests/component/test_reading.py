"""The reads of the built-in job: each file whole, or refused by name. All tests share one warm session."""

import bz2
import gzip
import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from spark_jobs.source_files.load_files import Reading
from spark_jobs.source_files.reading import SourceRows
from tests.harness.ingester import Ingester, file


def ids(job: Ingester) -> list[int]:
    return [row["id"] for row in job.rows()]


def test_an_array_before_lines_and_lines_before_an_array(job: Ingester) -> None:
    file(job, "in/1.json", '[{"id": 1},\n {"id": 2, "x": {"a": 1}}]')
    file(job, "in/2.json", '{"id": 3}\n{"id": 4, "x": {"b": "t"}}\n{"id": 5}\n')
    file(job, "in/3.json", '{\n "id": 6\n}\n')
    file(job, "in/4.json", '[{"id": 7}]\n[{"id": 8}]\n')
    file(job, "in/5.json", '[{"id": 9}, {"id": 10}]')
    file(job, "in/6.json.gz", gzip.compress(b'\xef\xbb\xbf[{"id": 11},\n {"id": 12}]'))
    answer = job({"path": f"{job.folder}/in", "format": "json"})
    assert (answer.rows_written, ids(job)) == (12, list(range(1, 13)))
    assert [row["x"] for row in job.rows() if row["x"]] == [{"a": 1, "b": None}, {"a": None, "b": "t"}]
    assert job({"path": f"{job.folder}/in", "format": "json"}).rows_written == 12, "and into the table that is there"
    file(job, "in/7.json", '[{"id": "text"},\n{"id": 1}]')
    other = Ingester(job._spark, job._lake, f"{job.table}_2", job.folder)
    assert "id is string in some files and bigint in others" in other.refused(
        {"path": f"{job.folder}/in", "format": "json"}
    ).replace("bigint in some files and string in others", "string in some files and bigint in others")


@pytest.mark.parametrize("multi_line", [True, False])
def test_lines_are_lines_whatever_the_option_says(job: Ingester, multi_line: bool) -> None:
    path = file(job, "in.jsonl", '{"id": 1}\n{"id": 2}\n')
    job({"path": path, "options": {"multiLine": multi_line}})
    assert ids(job) == [1, 2]


def test_json_that_is_no_row_is_refused(job: Ingester) -> None:
    twice = ('{"id": 1, "id": 2}', '{"id": 1, "x": {"a": 1, "a": 2}}')
    for line in ("5", '"text"', "null", "[1, 2]", "{}x", '{"id": 1} 2', "nonsense", *twice):
        path = file(job, "in.jsonl", f'{{"id": 1}}\n{line}\n')
        assert job.refused({"path": path}), line


def test_nested_fields_that_the_table_does_not_have(job: Ingester) -> None:
    first = {"id": 1, "one": {"a": 1}, "many": [{"a": 1}], "deep": {"in": [{"x": {"y": 1}}]}}
    job({"path": file(job, "1.json", json.dumps(first))})
    more = {"id": 2, "one": {"a": 1, "b": 2}, "many": [{"a": 1}, {"c": 3}], "deep": {"in": [{"x": {"y": 1, "z": 2}}]}}
    second = file(job, "2.json", json.dumps(more))
    assert "deep.in[].x.z, many[].c, one.b" in job.refused({"path": second})
    fewer = {"id": 2, "one": {"a": None}, "many": [], "deep": None}
    job({"path": file(job, "3.json", json.dumps(fewer))})
    assert job.rows()[1] == {"id": 2, "one": {"a": None}, "many": [], "deep": None}


def test_nested_fields_of_maps_and_of_stated_schemas(job: Ingester) -> None:
    schema = "id INT, m MAP<STRING, STRUCT<a: INT>>"
    whole = file(job, "1.json", '{"id": 1, "m": {"k": {"a": 1}, "l": {"a": 2}}}')
    job({"path": whole, "schema": schema})
    assert dict(job.rows()[0]["m"]) == {"k": {"a": 1}, "l": {"a": 2}}
    assert "m[].b" in job.refused({"path": file(job, "2.json", '{"id": 2, "m": {"k": {"b": 1}}}'), "schema": schema})
    assert "m[].b" in job.refused({"path": f"{job.folder}/2.json"})
    job({"path": file(job, "4.json", '{"id": 4, "m": {"k": {"A": 3}}}')})
    assert dict(job.rows()[1]["m"]) == {"k": {"a": 3}}
    both = file(job, "5.json", '{"id": 5, "m": {"k": {"A": 1}, "l": {"a": 2}}}')
    assert "m.A and m.a, which differ in capital letters alone" in job.refused({"path": both, "schema": schema})
    assert "extra" in job.refused({"path": file(job, "3.json", '{"id": 3, "extra": 1}'), "schema": "id INT"})
    parquet.write_table(pa.table({"id": [1], "s": [{"a": 1, "b": 2}]}), job.folder / "4.parquet")
    stated = {"path": f"{job.folder}/4.parquet", "schema": "id BIGINT, s STRUCT<a: BIGINT>"}
    assert "s.b" in job.refused(stated)


def test_names_that_could_be_patterns(job: Ingester) -> None:
    for number, name in enumerate(("a[1].csv", "a{1,2}.csv", "b*.csv", "c?d.csv", "e f%20#.csv", "in[x]/g.csv")):
        job({"path": file(job, name, f"id\n{number}\n")})
    file(job, "a1.csv", "id\n99\n")
    job({"path": f"{job.folder}/a[1].csv"})
    assert ids(job) == [0, 0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16", "UTF-16LE"])
def test_other_encodings_are_read_when_they_are_named(job: Ingester, encoding: str) -> None:
    path = file(job, "in.csv", "id,name\n1,blåbær\n2,ø\n".encode(encoding))
    job({"path": path, "options": {"encoding": encoding}})
    assert [row["name"] for row in job.rows()] == ["blåbær", "ø"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_csv_as_its_standard_says(job: Ingester, end: str) -> None:
    rows = [
        "\ufeffid,name",
        '1,"two',
        'lines"',
        '2,"a ""quoted"", word"',
        '3,"x, y"',
        '4,5" pipe',
        "",
        "5,C:\\",
        '6,""',
    ]
    job({"path": file(job, "in.csv", end.join(rows) + end)})
    names = [row["name"] for row in job.rows()]
    assert [str(name).replace("\r\n", "\n").replace("\r", "\n") for name in names] == [
        "two\nlines", 'a "quoted", word', "x, y", '5" pipe', "C:\\", "None",
    ]  # fmt: skip
    assert job._spark.table(f"nessie.{job.table}").columns == ["id", "name"]


def test_backslashes_that_escape_are_stated(job: Ingester) -> None:
    job({"path": file(job, "in.csv", 'id,name\n1,"a\\"b"\n2,c\n'), "options": {"escape": "\\"}})
    assert [row["name"] for row in job.rows()] == ['a"b', "c"]


def test_compressed_files_of_several_members(job: Ingester) -> None:
    file(job, "1.csv.gz", gzip.compress(b"id\n1\n") + gzip.compress(b"2\n"))
    file(job, "2.csv.bz2", bz2.compress(b"id\n3\n") + bz2.compress(b"4\n"))
    job({"path": f"{job.folder}/*.csv*", "format": "csv"})
    assert ids(job) == [1, 2, 3, 4]


def test_leading_zeros_and_plus_signs_stay(job: Ingester) -> None:
    path = file(job, "in.csv", "id,zip,phone,ratio,n,zero\n1,00123,+4712345678,007.5,12,0\n2,,,1.5,13,0.5\n")
    job({"path": path})
    assert job.rows()[0] == {"id": 1, "zip": "00123", "phone": "+4712345678", "ratio": "007.5", "n": 12, "zero": 0.0}
    folder = Ingester(job._spark, job._lake, f"{job.table}_2", job.folder)
    file(job, "in/code=007/a.csv", "id\n1\n")
    file(job, "in/code=010/b.csv", "id\n2\n")
    folder({"path": f"{job.folder}/in", "format": "csv"})
    assert [row["code"] for row in folder.rows()] == ["007", "010"]


@pytest.mark.parametrize("header", ["id,w,x", "id,x,w"])
def test_a_code_in_a_column_of_the_table_beside_a_guessed_one_of_its_type(header: str, job: Ingester) -> None:
    job.table = f"i.codes_{header.replace(',', '_')}"
    job({"path": file(job, "1.csv", "id,x,w\n1,1.5,\n")})
    values = {"id": "2", "w": "0.5", "x": "007.5"}
    path = file(job, "2.csv", f"{header}\n{','.join(values[name] for name in header.split(','))}\n")
    assert job.refused({"path": path}).startswith(f"{path}: x: '007.5' ")


def test_headers_that_name_no_columns(job: Ingester) -> None:
    for header in ("id,id", "id,", "id,ID"):
        assert job.refused({"path": file(job, "in.csv", f"{header}\n1,2\n")}), header


def test_a_file_with_a_header_alone_beside_others(job: Ingester) -> None:
    file(job, "1.csv", "id\n1\n")
    file(job, "2.csv", "id\n")
    job({"path": f"{job.folder}/*.csv"})
    assert ids(job) == [1]


def test_rows_are_counted_twice_by_different_means(job: Ingester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second count does not use what makes Spark leave out rows."""
    path = file(job, "in.csv", "id,name\n1,a\n2,b\n")
    job({"path": path})
    reading = Reading("csv", {}, [], None)
    monkeypatch.setattr(
        "spark_jobs.ingest.read_source",
        lambda spark, *_: SourceRows(spark.read.csv(path, header=True, inferSchema=True).limit(1), [], reading),
    )
    assert "Spark read 1 rows of 1 files that contain 2" in job.refused({"path": path})
    assert "Spark read 1 rows of 1 files that contain 2" in job.refused({"path": path}, mode="merge", keys=["id"])


def test_a_transform_may_read_a_part_of_its_source_or_all_of_it_twice(job: Ingester) -> None:
    path = file(job, "in.csv", "id\n" + "".join(f"{number}\n" for number in range(50)))
    job({"path": path}, transform="SELECT * FROM source LIMIT 1")
    job({"path": path}, transform="SELECT a.id FROM source a JOIN source b ON a.id = b.id WHERE a.id < 2")
    assert len(ids(job)) == 3
