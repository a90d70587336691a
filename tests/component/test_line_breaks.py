"""Line breaks in values of CSV files: the table holds exactly those of the file."""

import csv
import io
import random
from collections.abc import Sequence
from typing import Any

import pytest

from tests.harness.ingester import Ingester, file
from tests.harness.seeds import new_seed

_SEED = new_seed()
_PARTS = ("\r\n", "\n", "\r", "", "x", '"', ",", " ", "\x0b", "\u2028", "\\", "word " * 30)
_ENDS = ("\r\n", "\n", "\r")


def content(rows: Sequence[tuple[str, ...]], end: str, separator: str = ",") -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end, delimiter=separator, quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue()


@pytest.mark.parametrize("schema", [None, "id INT, t STRING"])
def test_line_breaks_in_files_with_different_ends_of_lines(job: Ingester, schema: str | None) -> None:
    values = ("a\r\nb", "c\nd", "e\rf", "\r\n", "g", 'h"\r\n"')
    paths = []
    for number, end in enumerate(_ENDS):
        rows = [("id", "t"), *((str(10 * number + each), value) for each, value in enumerate(values))]
        paths.append(file(job, f"{number}.csv", content(rows, end)))
    paths.append(file(job, "lines.csv", "id,t\r\n30,one\n31,two\r\n"))
    job({"path": paths, **({"schema": schema} if schema else {})})
    kept = [{"id": 10 * number + each, "t": value} for number in range(3) for each, value in enumerate(values)]
    assert job.rows() == [*kept, {"id": 30, "t": "one"}, {"id": 31, "t": "two"}]


@pytest.mark.parametrize("end", _ENDS)
def test_generated_line_breaks(job: Ingester, end: str) -> None:
    chosen = random.Random(f"{_SEED} {end}")
    header = ("id", "t" * chosen.randrange(1, 300), "u\n" if chosen.random() < 0.3 else "u")
    rows = [
        (str(number), *("".join(chosen.choices(_PARTS, k=chosen.randrange(4))) for _ in range(2)))
        for number in range(300)
    ]
    schema = f"id INT, `{header[1]}` STRING, `{header[2]}` STRING"
    path = file(job, "in.csv", content([header, *rows], end))
    job({"path": path, "schema": schema, "options": {"escape": '"'}})
    read = [tuple(row.values()) for row in job.rows()]
    assert read == [(int(id), t or None, u or None) for id, t, u in rows], f"SLUICE_SEED={_SEED}"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("id,t\r\n1,'a\r\nb'\r\n", {"quote": "'", "lineSep": "\r\n"}),
        ('id\tt\r\n1\t"a\r\nb"\r\n', {"sep": "\t", "multiLine": "true"}),
        ('id,t\r\n1,"a\r\nb"\r\n'.encode("utf-16"), {"encoding": "UTF-16"}),
        ('id,t\r\n1,"a\r\nb"\r\n'.encode("utf-16-be"), {"encoding": "UTF-16BE", "lineSep": "\r\n"}),
    ],
)
def test_line_breaks_with_options(job: Ingester, text: str | bytes, options: dict[str, Any]) -> None:
    job({"path": file(job, "in.csv", text), "options": options})
    assert job.rows() == [{"id": 1, "t": "a\r\nb"}]


def test_a_line_break_that_ends_no_line_as_stated(job: Ingester) -> None:
    job({"path": file(job, "a.csv", "id,t\n1,a\rb\n"), "options": {"lineSep": "\n"}})
    job({"path": file(job, "b.csv", 'id,t\r\n2,a\nb\r\n3,"\r\n"\r\n'), "options": {"lineSep": "\r\n"}})
    assert [row["t"] for row in job.rows()] == ["a\rb", "a\nb", "\r\n"]


def test_line_breaks_in_a_record_without_an_end(job: Ingester) -> None:
    values = ("x\r\ny", "x\ny", "x\ry", "\r\n\n\r")
    paths = [file(job, f"{number}.csv", f'"{value}",{number}') for number, value in enumerate(values)]
    job({"path": paths, "schema": "t STRING, id INT", "options": {"header": "false"}})
    assert [row["t"] for row in job.rows()] == list(values)


@pytest.mark.parametrize("tail", ["\n", "\n\n", "\r\n\n", "\n\r\n"])
@pytest.mark.parametrize(
    ("row", "header", "options"),
    [
        ('1,"a\r\nb"', "id,t\r\n", {}),
        ("1,a", "id,t\r\n", {"multiLine": "true"}),
        ('"a\r\nb"', "id\r\n", {}),
        ('1,"a\r\nb"', "", {"header": "false"}),
    ],
)
def test_empty_lines_that_end_with_lf_after_rows_that_end_with_crlf(
    job: Ingester, tail: str, row: str, header: str, options: dict[str, str]
) -> None:
    path = file(job, "in.csv", f"{header}{row}\r\n{tail}")
    job({"path": path, "options": options, **({} if header else {"schema": "id INT, t STRING"})})
    (read,) = job.rows()
    assert [str(value) for value in read.values()] == row.replace('"', "").split(",")


def test_a_bad_value_behind_line_breaks(job: Ingester) -> None:
    path = file(job, "in.csv", 'id,t\r\n1,"a\r\nb"\r\nx,"c\r\nd"\r\ny,z\r\n')
    refused = job.refused({"path": path, "schema": "id INT, t STRING"})
    assert refused.startswith(f"{path}: id: 'x' is not a valid int; 2 such rows"), refused
