"""Errors name file, column and value of a value that does not fit, in any format and with any reader option."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lakehouse.source_files import find_line, stated_encoding
from sluice.contracts.spark_jobs import UnreadableRows
from tests.harness.ingester import Ingester, file

SCHEMA = "id INT, amount DECIMAL(10,2), day DATE"
HEADER = "id,amount,day\n"
GOOD = "1,1.50,2026-01-01\n"


def unreadable(job: Ingester, path: str, **source: object) -> UnreadableRows:
    answer = job({"path": path, "schema": SCHEMA, **source})
    assert answer.error_kind == "InvalidInput" and answer.unreadable and "twelve" not in answer.error
    return answer.unreadable


@pytest.mark.parametrize(
    ("record", "column", "value", "type_name"),
    [
        ("2,twelve,2026-01-02", "amount", "twelve", "decimal(10,2)"),
        ('2,"12,50",2026-01-02', "amount", "12,50", "decimal(10,2)"),
        ("99999999999,1.5,2026-01-02", "id", "99999999999", "int"),
        ("2,1.5,2026-13-45", "day", "2026-13-45", "date"),
        ("2,,yesterday", "day", "yesterday", "date"),
        ("2,1.5", "", "", ""),
        ("2,1.5,2026-01-02,surplus", "", "", ""),
    ],
)
def test_csv(job: Ingester, record: str, column: str, value: str, type_name: str) -> None:
    file(job, "a.csv", HEADER + GOOD * 3)
    path = file(job, "b.csv", HEADER + GOOD * 99 + record + "\n" + GOOD)
    rows = unreadable(job, f"{job.folder}/*.csv")
    assert (rows.path, rows.record, rows.rows) == (path, record, 1)
    assert (rows.column, rows.value, rows.type_name) == (column, value, type_name)
    assert (rows.values, rows.columns) == (None if column else record.count(",") + 1, 3)
    assert find_line(path, "UTF-8", rows.record) == 101


@pytest.mark.parametrize("last", ['{"id": 3, "na', '{"id": 3, "name": "x', '{"id": 3, "name": "x"', '{"id": 3,'])
@pytest.mark.parametrize("stated", [{}, {"schema": "id INT, name STRING"}])
def test_json_lines_whose_last_record_is_cut_off(job: Ingester, last: str, stated: dict[str, str]) -> None:
    file(job, "a.jsonl", '{"id": 0, "name": "a"}\n')
    path = file(job, "b.jsonl", '{"id": 1, "name": "b"}\n' * 100 + last)
    answer = job({"path": f"{job.folder}/*.jsonl", **stated})
    assert answer.error_kind == "InvalidInput" and answer.unreadable
    rows = answer.unreadable
    assert (rows.path, rows.record, rows.rows) == (path, last, 1)
    assert (rows.column, rows.problem) == ("", "it is not a whole JSON value")
    assert find_line(path, "UTF-8", rows.record) == 101


def test_json_without_any_record_that_can_be_read(job: Ingester) -> None:
    path = file(job, "a.jsonl", '{"id": 1, "na')
    answer = job({"path": path})
    assert answer.unreadable and (answer.unreadable.path, answer.unreadable.record) == (path, '{"id": 1, "na')


def test_a_header_that_is_repeated_is_named_where_it_is_repeated(job: Ingester) -> None:
    path = file(job, "in.csv", HEADER + GOOD * 29 + HEADER + GOOD)
    rows = unreadable(job, path)
    assert (rows.column, rows.value) == ("id", "id")
    assert find_line(path, "UTF-8", rows.record, has_header=True) == 31


def test_csv_with_other_separators_encodings_and_compression(job: Ingester) -> None:
    import gzip  # noqa: PLC0415

    options = {"sep": ";", "encoding": "ISO-8859-1"}
    text = "id;amount;day\n1;1.5;2026-01-01\n2;zwölf;2026-01-01\n3;vier;2026-01-01\n"
    path = file(job, "in.csv.gz", gzip.compress(text.encode("ISO-8859-1")))
    rows = unreadable(job, path, options=options)
    assert (rows.column, rows.value, rows.rows) == ("amount", "zwölf", 2)
    assert find_line(path, stated_encoding(options), rows.record) == 3


def test_csv_whose_values_span_lines(job: Ingester) -> None:
    path = file(job, "in.csv", 'id,name\n1,"two\nlines"\nx,"a\nb"\n')
    answer = job({"path": path, "schema": "id INT, name STRING"})
    assert answer.unreadable and answer.unreadable.column == "id" and answer.unreadable.value == "x"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"nullValue": "NA"}, "id,amount,day\nNA,twelve,NA\n"),
        ({"sep": "\\t"}, "id\tamount\tday\n1\ttwelve\t2026-01-01\n"),
        ({"escape": "\\"}, 'id,amount,day\n1,"twelve",2026-01-01\n'),
    ],
)
def test_the_column_is_known_whatever_the_options(job: Ingester, options: dict[str, str], text: str) -> None:
    rows = unreadable(job, file(job, "in.csv", text), options=options)
    assert (rows.column, rows.value) == ("amount", "twelve")


def test_json_as_one_value_says_no_number(job: Ingester) -> None:
    documents = [{"id": each, "amount": 1.5 if each else "twelve", "day": None} for each in range(50)]
    rows = unreadable(job, file(job, "in.json", json.dumps(documents, indent=1)))
    assert (rows.rows, rows.there_may_be_more) == (1, True)


def test_json_by_lines(job: Ingester) -> None:
    good = '{"id": 1, "amount": 1.5, "day": "2026-01-01"}\n'
    bad = '{"id": 2, "amount": "twelve", "day": "2026-01-01"}'
    path = file(job, "in file.jsonl", good * 4 + bad + "\n" + good)
    rows = unreadable(job, path)
    assert (rows.path, rows.column, rows.value, rows.rows) == (path, "amount", "twelve", 1)
    assert find_line(path, "UTF-8", rows.record) == 5


def test_decimals_are_read_as_they_are_written(job: Ingester) -> None:
    """Spark's readers omit commas and would read 12,50 as 1250."""
    values = ["1.50", "2", '""', "", "-3.9900", "1e2"]
    rows = "".join(f"{number},{value},2026-01-01\n" for number, value in enumerate(values, 1))
    job({"path": file(job, "a.csv", HEADER + rows), "schema": SCHEMA})
    amounts = [row["amount"] and str(row["amount"]) for row in job.rows()]
    assert amounts == ["1.50", "2.00", None, None, "-3.99", "100.00"]
    stated = {"sep": ";", "locale": "de-DE"}
    job({"path": file(job, "b.csv", "id;amount;day\n9;12,50;\n"), "schema": SCHEMA, "options": stated})
    assert str(job.rows()[6]["amount"]) == "12.50"


@pytest.mark.parametrize("options", [{}, {"encoding": "UTF-8"}, {"charset": "utf8"}, {"encoding": "US-ASCII"}])
def test_decimals_of_json_are_read_as_they_are_written(job: Ingester, options: dict[str, str]) -> None:
    """Numbers keep all their digits, and a text is a decimal only if it is one number."""
    schema = "id INT, a DECIMAL(38,18), n STRUCT<p: DECIMAL(10,2), q: ARRAY<DECIMAL(10,2)>>"
    exact = "12345678901234567890.123456789012345678"
    lines = [
        f'{{"id": 1, "a": {exact}, "n": {{"p": 1.5, "q": [2, "3.25"]}}}}',
        f'{{"id": 2, "a": "{exact}"}}',
        '{"id": 3, "a": 1e-2, "n": null}',
    ]
    job({"path": file(job, "a.jsonl", "\n".join(lines) + "\n"), "schema": schema, "options": options})
    job({"path": file(job, "b.json", f"[{', '.join(lines)}]"), "schema": schema, "options": options})
    rows = [(str(row["a"]), row["n"] and [str(row["n"]["p"]), *map(str, row["n"]["q"])]) for row in job.rows()]
    expected = [(exact, ["1.50", "2.00", "3.25"]), (exact, None), ("0.010000000000000000", None)]
    assert sorted(rows, key=str) == sorted(expected * 2, key=str)


def test_a_double_of_json_over_several_lines_is_not_rounded(job: Ingester) -> None:
    path = file(job, "in.json", '[{"id": 1, "a": 1.5},\n{"id": 2, "a": 9007199254740993.5}]')
    refused = job.refused({"path": path})
    assert "in.json: a: '9007199254740993.5' cannot be stored exactly as a double; 1 such row" in refused, refused


@pytest.mark.parametrize(("name", "line"), [("in.jsonl", 3), ("in.json", None)])
def test_a_decimal_of_json_with_a_comma(job: Ingester, name: str, line: int | None) -> None:
    """Spark's reader would read "12,50" as 1250."""
    good = '{"id": 1, "amount": "1.5", "day": null}'
    lines = [good, good, good.replace("1.5", "12,50"), good.replace("1.5", "2,5")]
    path = file(job, name, "\n".join(lines) if line else f"[{', '.join(lines)}]")
    rows = unreadable(job, path)
    assert (rows.path, rows.column, rows.value, rows.type_name) == (path, "amount", "12,50", "decimal(10,2)")
    assert find_line(path, "UTF-8", rows.record) == line and rows.there_may_be_more is (line is None)


@pytest.mark.parametrize("name", ["in.jsonl", "in.json"])
def test_a_nested_decimal_of_json_with_a_comma(job: Ingester, name: str) -> None:
    path = file(job, name, '{"id": 1, "price": {"amount": "12,50"}}')
    answer = job({"path": path, "schema": "id INT, price STRUCT<amount: DECIMAL(10,2)>"})
    assert answer.unreadable and (answer.unreadable.path, answer.unreadable.column) == (path, "price")
    assert "12,50" in answer.unreadable.value


def test_the_table_gives_the_types_where_the_pipeline_does_not(job: Ingester) -> None:
    job({"path": file(job, "a.csv", HEADER + GOOD), "schema": SCHEMA})
    answer = job({"path": file(job, "b.csv", HEADER + "2,twelve,2026-01-01\n")})
    assert answer.unreadable and answer.unreadable.value == "twelve"


def test_the_lines_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\r\n" + b"x\r\n" * 10**6 + b"c")
    lines = {record: find_line(str(path), "UTF-8", record) for record in ("a", "b", "x", "c", "missing", "")}
    assert lines == {"a": 1, "b": 2, "x": 3, "c": 10**6 + 3, "missing": None, "": None}
    assert find_line(str(path), "no such encoding", "a") is None


def write_columnar(form: str, path: Path, **columns: list[object]) -> str:
    """Write a Parquet or ORC file; return its path."""
    table = pa.table(columns)
    orc.write_table(table, str(path)) if form == "orc" else pq.write_table(table, path)
    return str(path)


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_column_of_another_type_is_named_with_its_file(job: Ingester, form: str) -> None:
    """Spark's ORC reader would read the texts as NULL."""
    path = write_columnar(form, job.folder / f"a.{form}", id=[1], amount=["x"])
    other = write_columnar(form, job.folder / f"b.{form}", id=[1], amount=[1.5])
    stated = {"schema": "id BIGINT, amount DECIMAL(10,2)"}
    assert job.refused({"path": path, **stated}) == f"{path}: amount is string, and source.schema has decimal(10,2)"
    narrow = {"schema": "id INT, amount STRING"}
    if form == "orc":  # numbers of Parquet files are cast if they keep their value
        assert job.refused({"path": path, **narrow}) == f"{path}: id is bigint, and source.schema has int"
    both = f"{job.folder}/*.{form}"
    assert job.refused({"path": both}) == f"{other}: amount is double, and {path} has string"
    whole = write_columnar(form, job.folder / f"c.{form}", id=[1], amount=[1])
    mixed = [other, whole]
    if form == "orc":  # Parquet files with two kinds of numbers are loaded together
        assert job.refused({"path": mixed}) == f"{whole}: amount is bigint, and {other} has double"
    job({"path": other})
    if form == "orc":
        assert job.refused({"path": mixed}) == f"{whole}: amount is bigint, and {other} has double"
    assert job.refused({"path": path}) == f"{path}: amount is string, and {job.table} has double"


def test_a_folder_is_no_column_of_another_type(job: Ingester) -> None:
    folder = job.folder / "table" / "code=007"
    folder.mkdir(parents=True)
    write_columnar("orc", folder / "a.orc", id=[1])
    job({"path": str(folder.parent), "format": "orc", "schema": "id BIGINT, code STRING"})
    assert [(row["id"], row["code"]) for row in job.rows()] == [(1, "007")]


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_column_of_a_narrower_type_is_read(job: Ingester, form: str) -> None:
    path = write_columnar(form, job.folder / f"a.{form}", id=[1], amount=[2], name=["x"])
    job({"path": path, "schema": "id BIGINT, amount DECIMAL(22,2), name STRING"})
    assert [(row["id"], str(row["amount"]), row["name"]) for row in job.rows()] == [(1, "2.00", "x")]


@pytest.mark.parametrize(
    ("value", "type_name", "shown"),
    [
        ('["1", "x", null, true, 1.50]', "ARRAY<INT>", '["1", "x", null, true, 1.50]'),
        ('{"ä": [1e400, {}]}', "INT", '{"ä": [1e400, {}]}'),
        ("true", "INT", "true"),
        ("200", "TINYINT", "200"),
        ("[-128, 127, 128]", "ARRAY<TINYINT>", "[-128, 127, 128]"),
        ('"x"', "INT", '"x"'),
        ('"x"', "DATE", "x"),
        ("1.50", "INT", "1.50"),
    ],
)
def test_values_of_json_are_shown_as_json(job: Ingester, value: str, type_name: str, shown: str) -> None:
    path = file(job, "in.json", f'{{"id": 1, "v": {value}}}\n')
    answer = job({"path": path, "schema": f"id INT, v {type_name}"})
    assert answer.unreadable and answer.unreadable.value == shown


@pytest.mark.parametrize(
    ("stated", "encoding"), [("latin1", "ISO-8859-1"), ("utf_16_le", "UTF-16LE"), ("utf8", "UTF-8")]
)
def test_encodings_by_other_names(job: Ingester, stated: str, encoding: str) -> None:
    path = file(job, "in.csv", "id,name\n1,Müller\n".encode(encoding))
    job({"path": path, "options": {"encoding": stated}})
    assert job.rows() == [{"id": 1, "name": "Müller"}]
    path = file(job, "in.json", '{"id": 2, "name": "Müller"}\n'.encode(encoding))
    job({"path": path, "options": {"encoding": stated, "lineSep": "\n"}})
    assert job.rows()[1] == {"id": 2, "name": "Müller"}
