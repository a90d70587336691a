"""The content of files, examined before Spark reads them: a file that Spark would not read whole is refused by name."""

import bz2
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import obstore
import pyarrow as pa
import pytest
from obstore.store import MemoryStore
from pyarrow import orc, parquet

from lakehouse.source_files import Inspection, check_unchanged, find_files, inspect_files, json_content, local, text
from lakehouse.source_files.csv_content import CsvReader
from sluice.errors import InvalidInput
from sluice.pipeline.source import Source


@pytest.fixture(params=[2, 3, 7, 1024 * 1024], autouse=True)
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes of the pieces in which files are read. No answer may depend on them."""
    monkeypatch.setattr(local, "CHUNK", request.param)
    monkeypatch.setattr(text, "_MAX_PIECE", request.param)


def inspect(folder: Path, content: dict[str, str | bytes], **source: object) -> Inspection:
    for name, each in content.items():
        (folder / name).write_bytes(each if isinstance(each, bytes) else each.encode())
    stated = Source.model_validate({"path": [str(folder / name) for name in content], **source})
    return inspect_files(find_files(stated), stated)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("in.csv", b"id,name\n1,\xe5\n", "not UTF-8: invalid continuation byte at byte 10, line 2"),
        ("in.jsonl", b'{"id": "\xff"}\n', "at byte 8, line 1"),
        ("in.csv", "id,name\n1,å\n".encode("utf-16"), "byte order mark of UTF-16"),
        ("in.csv", "id,name\n1,a\n".encode("utf-16-le"), "contains a zero byte (from byte 1, line 1)"),
        ("in.csv", b"id,name\r\n1,a\r\n2,\0\r\n", "contains a zero byte (from byte 16, line 3)"),
        ("in.csv.gz", gzip.compress(b"id\n1\n", mtime=0)[:-6], "is truncated"),
        ("in.csv.gz", gzip.compress(b"id\n1\n", mtime=0) + b"garbage", "is not compressed completely"),
        ("in.csv.gz", b"id\n1\n", "is not compressed completely"),
        ("in.csv.bz2", bz2.compress(b"id\n1\n")[:-6], "is truncated"),
        ("in.csv.zst", b"x", "use gzip or bzip2"),
        ("in.csv", 'id,name\n1,"a\n2,b\n', "begins on line 2 is never closed: close it"),
        ("in.csv", 'id,name\n1,"a\\"b"\n', "set source.options.escape"),
        ("in.csv", "id\n1\n\n2\n", "line 3 is empty in a file of one column"),
        ("in.csv", '\nid\n"1\n\n2"\n\n\n"2"\n', "line 6 is empty in a file of one column"),
        ("in.jsonl", '{"id": 1}{"id": 2}\n', "line 1 contains more than one JSON value"),
        ("in.json", '[{"id": 1},\n{"id": 2}]\n[{"id": 3}]', "the next begins on line 3: write"),
        ("in.json", '\n\n[{"id": 1},\n{"id": 2}]\n\n \n[{"id": 3}]', "the next begins on line 7: write"),
        ("in.jsonl", '{"id": 1}\n{"id": 2},"t": 5}\n', "line 2 contains more than one JSON value"),
        ("in.jsonl", '{"a": [{"b": 1}, {"b": 2}]},"t": {"c": 5}\n', "line 1 contains more than one JSON value"),
        ("in.jsonl", '{"a": "{"}{"b": "}"}\n{"c": 1}\n', "line 1 contains more than one JSON value"),
        ("in.jsonl", '{"a": 1}\n{"c": {"d": 1}\n{"id": 2},"t": 5}\n', "line 3 contains more than one JSON value"),
        ("in.jsonl", '[{"id": 1}], "x"\n', "line 1 contains more than one JSON value"),
        ("in.jsonl", '{"id": 1}\xa0{"id": 2}\n', "line 1 contains more than one JSON value"),
        ("in.json", '[{"id": 1},\n{"id": 2}', "is truncated"),
        ("in.json", f"[\n{'[' * 100_000}{']' * 100_000}\n]", "nested more than 1,000 levels deep"),
    ],
)
def test_files_of_which_a_part_would_be_lost(tmp_path: Path, name: str, content: str | bytes, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        inspect(tmp_path, {name: content})
    assert str(tmp_path / name) in str(refused.value) and words in str(refused.value)


@pytest.mark.parametrize(
    ("content", "rows", "spans_lines"),
    [
        ("id,name\n1,a\n2,b", 2, False),
        ('id,name\r\n1,"a\r\nb"\r\n2,b\r\n', 2, True),
        ("id,name\r1,a\r2,b\r", 2, False),
        ("\ufeff\n\nid,name\n\n1,a\n  \n2,b\n\n", 2, False),
        ("id\n1\n\n", 1, False),
        ('a,b\n1,"x""y",\n', 1, False),
        ('a,b\n1,5" pipe\n2,x\n', 2, False),
        ('a,b\n1,5" pipe\n2,"x\n\ny"\n3,""\n', 3, True),
        ('a,b\n1,"x,""\n""y"\n', 1, True),
        ("a,b\n", 0, False),
        ("\n", 0, False),
    ],
)
def test_rows_of_csv_files(tmp_path: Path, content: str, rows: int, spans_lines: bool) -> None:
    seen = inspect(tmp_path, {"in.csv": content, "more.csv.gz": gzip.compress(content.encode(), mtime=0)})
    assert (seen.rows, bool(seen.read_whole)) == (2 * rows, spans_lines)


@pytest.mark.parametrize(
    ("content", "options", "line_end"),
    [
        (b'id,t\r\n1,"a\nb"\r\n2,"c\rd"\r\n', {}, "\r\n"),
        (b'id,t\r\n1,"a\nb"\r\n\r\n\n', {}, "\r\n"),
        (b'id,t\n1,"a\r\nb"\n2,x\n', {}, "\n"),
        (b'"i\r\nd",t\n1,"a\r\nb"\n2,x\n', {}, "\n"),
        (b'id,t\r1,"a\nb"\r2,"c\rd"', {}, "\r"),
        (b'id,t\r\n1,a\r\n2,"open\nand\r\n\rclosed"\r\n', {}, "\r\n"),
        (b'id,t\r\n1,"a\\"\nb"\r\n2,"c\\\\"\r\n', {"escape": "\\"}, "\r\n"),
        (b'"i\r\nd",t', {}, "\n"),
        (b"id,t\r\n1,x\r\n", {"multiLine": "true"}, "\r\n"),
        ("id,t\r\n1,x\r\n".encode("utf-16-le"), {"encoding": "UTF-16LE"}, "\r\n"),
        (b'id,t\r\n1,"a\r\nb"\r\n', {"lineSep": "\r\n"}, "\r\n"),
        (b'id,t\n1,a\rb\n2,"c\r\nd"\n', {"lineSep": "\n"}, "\n"),
        (b'id,t\n1,"a"b\n2,"c\r\nd"\n', {"unescapedQuoteHandling": "STOP_AT_DELIMITER"}, "\n"),
    ],
)
def test_the_end_of_the_rows_of_a_csv_file(
    tmp_path: Path, content: bytes, options: dict[str, str], line_end: str
) -> None:
    assert inspect(tmp_path, {"in.csv": content}, options=options).read_whole == {line_end: [str(tmp_path / "in.csv")]}


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (b'id,t\n1,"a\nb"\r\n2,x\r\n3,y\n', {}, "line 3 ends with CRLF, and the lines before it end with LF"),
        (
            b"id,t\r\n1,x\n",
            {"multiLine": "true"},
            "so Spark would read other values: leave out source.options.multiLine, or write the same line break",
        ),
        (
            b'id,t\r\n1,"a\nb"\n',
            {"multiLine": "true"},
            "other values: write the same line break",
        ),
        ("id,t\r\n1,x\n".encode("utf-16-be"), {"encoding": "UTF-16BE", "multiLine": "true"}, "values: write the same"),
        (b'id,t\r\n1,x\r\n2,y\n3,"a\nb"\r\n', {}, "line 3 ends with LF, and the lines before it end with CRLF"),
        (b'id,t\n1,a\rb\n2,"c\nd"\n', {}, "line 2 ends with CR, and the lines before it end with LF"),
        ("id,t\r\n1,x\n".encode("utf-16-be"), {"encoding": "UTF-16BE"}, "line 2 ends with LF"),
        (b'id,t\r\n\n1,"a\nb"\r\n', {}, "line 2 ends with LF"),
        (b'id,t\n1,"a\nb"\n\r\n', {}, "line 4 ends with CRLF"),
        (b'id,t\r\n1,"a\nb"\r\n\r', {}, "line 4 ends with CR"),
        (b'id,t\r\n1,"a\nb"\r\n \n', {}, "line 4 ends with LF"),
        (b"id,t\r\n1,x\r\n", {"lineSep": "\n"}, "the first row does not end with LF, as source.options.lineSep"),
        (b'id,"t\r"\n1,x\n', {"lineSep": "\r\n"}, "the first row does not end with CRLF"),
        (
            b"id,t\r\n1,x\r\n",
            {"lineSep": "\n", "ignoreTrailingWhiteSpace": "true"},
            "the first row does not end with LF, as source.options.lineSep states: leave the option out",
        ),
        (
            b'id,t\r\n1,"a"b\r\n2,"c\r\nd"\r\n',
            {"unescapedQuoteHandling": "STOP_AT_DELIMITER"},
            "leave out source.options.unescapedQuoteHandling, or write LF at the end of each row",
        ),
    ],
)
def test_a_csv_file_with_ends_of_rows_that_spark_misreads(
    tmp_path: Path, content: bytes, options: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        inspect(tmp_path, {"in.csv": content}, options=options)
    assert str(refused.value).startswith(f"{tmp_path}/in.csv: ") and words in str(refused.value)


@pytest.mark.parametrize(
    ("first", "end"), [("id,t\n", "\r"), ('\ufeffid,"t\r"', "\r\n"), ("i", "\n"), (" \r\n\r\nid,t\r\n", "\n")]
)
def test_a_file_without_the_stated_end_is_not_read_whole(first: str, end: str) -> None:
    pieces = iter([first, *["\r1,x\r"] * 100])
    with pytest.raises(InvalidInput, match="the first row does not end with"):
        CsvReader("in.csv", {"linesep": end}).read(pieces)
    assert len(list(pieces)) >= 98


@pytest.mark.parametrize("first", ["", "\ufeff", "\r\n \r\n", "\ufeff\r\n"])
def test_other_breaks_beside_a_first_row_with_the_stated_end(first: str) -> None:
    pieces = iter(f'{first}id,"t\r"\n1,a\rb\n')
    assert CsvReader("in.csv", {"linesep": "\n"}).read(pieces).rows == 1


@pytest.mark.parametrize(
    ("content", "option", "words"),
    [
        ("id,t\n1, \x01a\n", "ignoreLeadingWhiteSpace", "line 2 has the control character U+0001 at an end"),
        ('id,t\n1,"x\n"\n\x0b2,a\n', "ignoreLeadingWhiteSpace", "line 4 has the control character U+000B"),
        ("id,t\n1,a\n2\x1f ,b\n", "ignoreTrailingWhiteSpace", "line 3 has the control character U+001F"),
        ("id,t\r\n1,a\x0c\r\n", "ignoreTrailingWhiteSpace", "line 2 has the control character U+000C"),
    ],
)
def test_a_control_character_that_spark_would_trim(tmp_path: Path, content: str, option: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        inspect(tmp_path, {"in.csv": content}, options={option: True})
    assert str(refused.value).startswith(f"{tmp_path}/in.csv: {words}")
    other = {"ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"} - {option}
    for options in ({}, {option: False}, dict.fromkeys(other, True)):
        assert inspect(tmp_path, {"in.csv": content}, options=options).rows is not None
    kept = "id\x01t\n 1 \x01\ta\x02b\t\n"
    assert inspect(tmp_path, {"kept.csv": kept}, options={option: True, "sep": "\x01"}).rows == 1


def test_csv_files_are_read_whole_by_the_ends_of_their_rows(tmp_path: Path) -> None:
    contents = {"a": 'id\n"1\n"\n', "b": 'id\r\n"1\n"\r\n', "c": "id\n1\r\n", "d": 'id\n"\r"\n'}
    seen = inspect(tmp_path, {f"{name}.csv": content for name, content in contents.items()})
    assert seen.read_whole == {
        "\n": [str(tmp_path / "a.csv"), str(tmp_path / "d.csv")],
        "\r\n": [str(tmp_path / "b.csv")],
    }
    assert seen.rows == 4


def test_lines_of_one_quoted_column_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert inspect(tmp_path, {"in.csv": 'id\n"1\n\n2"\n""\n'}).rows == 2
    monkeypatch.setattr(local, "CHUNK", 1024)
    monkeypatch.delattr(CsvReader, "_read_line")
    assert inspect(tmp_path, {"in.csv": 'id\n"1"\n"2\n3"\n"4""5"\n""\n6\n'}).rows == 5


def test_rows_of_csv_files_by_their_options(tmp_path: Path) -> None:
    backslashes = inspect(tmp_path, {"a.csv": 'a;b\n1;"x\\";\n\\\\"\n2;y\n'}, options={"sep": ";", "escape": "\\"})
    assert (backslashes.rows, bool(backslashes.read_whole)) == (2, True)
    assert inspect(tmp_path, {"a.csv": "1,a\n2,b\n"}, options={"header": False}, schema="a INT, b STRING").rows == 2
    assert inspect(tmp_path, {"a.csv": "a,b\n1,'x\ny'\n"}, options={"quote": "'"}).rows == 1
    assert inspect(tmp_path, {"a.csv": 'a,b\n1,"x\n2,y\n'}, options={"quote": ""}).rows == 2
    assert inspect(tmp_path, {"a.csv": "a,b|1,x|"}, options={"lineSep": "|"}).rows is None
    assert inspect(tmp_path, {"a.csv": "a,b\n1,ø\n".encode("utf-16")}, options={"encoding": "UTF-16"}).rows == 1


@pytest.mark.parametrize(
    ("content", "rows", "is_one_value"),
    [
        ('{"a": 1}\n\n{"a": "}{]["}\n', 2, False),
        ('{"a": 1},\n{"a": 2},\n', 2, False),
        ("{'a': [{'b': 1},{'b': 2}]}\n{'a': 1}", 2, False),
        ('{"a": [[1], [2]], "b": {"c": {}}}', 1, False),
        ('{"a": {"b": [1]}, "c": "}, 5"},\n{"a": {"b": {}},"c": 1}\n', 2, False),
        ('{"a": "\\"[", "b": 1}\n{"a": "x", "b": 2}\n', 2, False),
        ('{"a": "\\"", "b": [1]}\n{"a": "x", "b": [2]}\n', 2, False),
        ('\ufeff[{"a": "]"},\n {"a": 2}]\n', None, True),
        ('  {\n"a": "}\\"}"}\n', None, True),
    ],
)
def test_what_a_json_file_is(tmp_path: Path, content: str, rows: int | None, is_one_value: bool) -> None:
    seen = inspect(tmp_path, {"in.json": content})
    assert (seen.rows, bool(seen.one_value)) == (rows, is_one_value)


def test_lines_of_nested_values_are_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(json_content, "_is_one")
    line = '{"a": {"b": ""}, "c": [{"d": [1, {}]}, {"e": "\\"é\\\\"}, []], "f": {"g": {}}, "h": 1}\n'
    assert inspect(tmp_path, {"in.json": 2 * line}).rows == 2


def test_a_line_of_many_arrays_and_one_of_one(tmp_path: Path) -> None:
    seen = inspect(tmp_path, {"1.json": '[{"a": 1}]\n[{"a": 2}]\n', "2.json": '[{"a": 1}, {"a": 2}]'})
    assert (seen.rows, seen.one_value) == (None, [str(tmp_path / "2.json")])


@pytest.mark.parametrize("change", [lambda file: file.write_text("id\n2\n"), lambda file: file.unlink()])
def test_a_file_that_was_replaced_before_it_is_read_is_named(tmp_path: Path, change: Callable[[Path], object]) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id\n1\n")
    source = Source(path=str(file))
    files = find_files(source)
    change(file)
    with pytest.raises(InvalidInput, match=r"a\.csv was (replaced|removed) .* start the run again"):
        inspect_files(files, source)


def test_a_file_that_was_replaced_and_put_back_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id\n1\n")
    source = Source(path=str(file))
    files = find_files(source)
    states = inspect_files(files, source).states
    check_unchanged(files, source, states=states)
    os.utime(file, (1, 1))
    with pytest.raises(InvalidInput, match=r"a\.csv was touched"):
        check_unchanged(files, source, states=states)


def test_text_in_a_store_is_inspected_too(bucket: MemoryStore) -> None:
    obstore.put(bucket, "in/a.csv", b"id,name\n1,a\n")
    source = Source(path="s3://b/in", format="csv")
    assert inspect_files(find_files(source), source).rows == 1
    obstore.put(bucket, "in/b.csv", b"id,name\n1,\xe5\n")
    with pytest.raises(InvalidInput, match=r"s3://b/in/b\.csv is not UTF-8: .* at byte 10"):
        inspect_files(find_files(source), source)


def test_rows_of_parquet_and_orc_files(tmp_path: Path) -> None:
    for format, write in (("parquet", parquet.write_table), ("orc", orc.write_table)):
        file = tmp_path / f"in.{format}"
        write(pa.table({"id": [1, 2, 3]}), str(file))
        assert inspect(tmp_path, {file.name: file.read_bytes()}).rows == 3
        content = file.read_bytes()
        with pytest.raises(InvalidInput, match=f"not a complete {format} file"):
            inspect(tmp_path, {file.name: content[:4] + b"\0" * (len(content) - 8) + content[-4:]})


@pytest.mark.parametrize(
    ("more", "second", "message"),
    [
        ({}, "id,amount\n", "a.csv: it lacks 'name' and it adds 'amount'"),
        ({}, "id\n", "a.csv: it lacks 'name'"),
        ({}, "name,id\n", "has its columns in another order than"),
        ({}, "name,id\n", "a.csv: column 1 is 'name' instead of 'id'. Give all files of a run the same order"),
        ({}, '"ID", Name\n', ""),
        ({}, "id,name\n", ""),
        ({"schema": "id INT, name STRING"}, "id,name\n", ""),
        (
            {"schema": "id INT, amount INT"},
            "id,name\n",
            "has another header than source.schema: it lacks 'amount' and it adds 'name'",
        ),
        ({"schema": "a INT, b STRING"}, "1,x\n", "If its first line is a row, set source.options.header to false"),
        ({"options": {"sep": ";"}}, "id,amount\n", "has another header than"),
        ({"options": {"header": "false"}, "schema": "id INT, name STRING"}, "1,b\n", ""),
    ],
)
def test_a_csv_file_with_another_header_is_named(
    tmp_path: Path, more: dict[str, object], second: str, message: str
) -> None:
    for name, header in (("a.csv", "id,name\n"), ("b.csv", second)):
        (tmp_path / name).write_text(f"{header}1,x\n")
    source = Source.model_validate({"path": f"{tmp_path}/*.csv", "format": "csv", **more})
    files = find_files(source)
    if not message:
        assert inspect_files(files, source).rows
        return
    with pytest.raises(InvalidInput) as refused:
        inspect_files(files, source)
    assert message in str(refused.value) and str(refused.value).startswith(str(tmp_path))


def test_folders_that_are_columns_are_no_part_of_a_header(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=1" / "a.csv").write_text("id\n1\n")
    source = Source.model_validate({"path": str(tmp_path), "format": "csv", "schema": "id INT, day INT"})
    assert inspect_files(find_files(source), source).rows == 1


@pytest.mark.parametrize(
    ("content", "end", "rows"),
    [
        ('{"a": 1}\n\n{"a": 2}\r\n\r\n', "\n", 2),
        ('{"a": 1}\n\r\n{"a":\r2,\n"b": [1]}\r\n', "\r\n", 2),
        ('{"a": 1}||{"a": {"b": "|"},"c": 2}||\n||', "||", 2),
        ('[{"a": 1}]|{"a": 2}', "|", None),
        ('{"a": "ø"}\n{"a": "x"}\n'.encode("latin1"), "\n", 2),
    ],
)
def test_lines_of_json_with_a_stated_end(tmp_path: Path, content: str | bytes, end: str, rows: int | None) -> None:
    options = {"lineSep": end} | ({"encoding": "latin1"} if isinstance(content, bytes) else {})
    assert inspect(tmp_path, {"in.json": content}, options=options).rows == rows


@pytest.mark.parametrize(
    ("content", "end"),
    [('{"a": 1}\n{"a": 2}{"a": 3}\n', "\n"), ('\r\n{"a": 2}\n{"a": 3}\r\n', "\r\n"), ('|{"a": 2}\n{"a": 3}|', "|")],
)
def test_two_values_in_a_line_with_a_stated_end(tmp_path: Path, content: str, end: str) -> None:
    with pytest.raises(InvalidInput, match=r"line 2 contains more than one JSON value"):
        inspect(tmp_path, {"in.json": content}, options={"lineSep": end})
