"""Effects of options and formats on text: NULL, empty text, trimmed text and bytes, as docs/values.md says."""

from typing import Any

import pytest

from tests.harness.ingester import Ingester, file


@pytest.mark.parametrize(
    ("options", "content", "values"),
    [
        ({}, '1,NA\n2,"NA"\n3,""\n4,\n', ["NA", "NA", None, None]),
        ({"nullValue": "NA"}, '1,NA\n2,"NA"\n3,""\n4,\n5,na\n6, NA\n', [None, None, "", None, "na", " NA"]),
        ({"emptyValue": "EMPTY"}, '1,EMPTY\n2,""\n3,\n4,"EMPTY"\n', ["EMPTY", "EMPTY", None, "EMPTY"]),
        (
            {"ignoreLeadingWhiteSpace": True, "ignoreTrailingWhiteSpace": True},
            '1,  a\t\n2," q\x01 "\n3,\u00a0b\u00a0\n4,   \n',
            ["a", " q\x01 ", "\u00a0b\u00a0", None],
        ),
    ],
)
def test_text_of_csv_by_options(job: Ingester, options: dict[str, Any], content: str, values: list[str | None]) -> None:
    job({"path": file(job, "in.csv", f"id,t\n{content}"), "options": options})
    assert [row["t"] for row in job.rows()] == values


def test_a_line_of_white_space_alone_is_no_row_of_several_columns(job: Ingester) -> None:
    job({"path": file(job, "in.csv", "id,t\n1,a\n\n  \t \n2,b\n   \n")})
    assert job.rows() == [{"id": 1, "t": "a"}, {"id": 2, "t": "b"}]


def test_bytes_are_base64_in_json_and_text_in_csv(job: Ingester) -> None:
    schema = "id INT, v BINARY"
    job({"path": file(job, "a.json", '{"id": 1, "v": "SGVsbG8="}\n'), "schema": schema})
    job({"path": file(job, "b.csv", "id,v\n2,SGVsbG8=\n3,é\n"), "schema": schema})
    assert [bytes(row["v"]) for row in job.rows()] == [b"Hello", b"SGVsbG8=", "é".encode()]
    refused = job.refused({"path": file(job, "c.json", '{"id": 4, "v": "YWI"}\n'), "schema": schema})
    assert "line" not in refused and "v: 'YWI' is not a valid binary" in refused, refused
