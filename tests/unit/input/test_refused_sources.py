"""Sources that Spark would refuse: the message says what to do, before the run if the options or beginnings show it."""

from pathlib import Path

import pytest

from lakehouse.source_files import find_files, inspect_files, problems_of_beginnings
from sluice.errors import InvalidInput, InvalidPipeline
from sluice.input.header_hints import hints_on_header
from sluice.pipeline.encodings import spark_encoding
from sluice.pipeline.source import Source
from sluice.pipeline.source_options import check_options
from sluice.pipeline.time_patterns import pattern_problem


def source(folder: Path, name: str, content: str | bytes, **more: object) -> Source:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Source.model_validate({"path": str(path), **more})


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        ("latin1", "ISO-8859-1"),
        ("latin-1", "ISO-8859-1"),
        ("L1", "ISO-8859-1"),
        ("iso8859_1", "ISO-8859-1"),
        ("utf8", "UTF-8"),
        ("utf-8-sig", "UTF-8"),
        ("utf_16_le", "UTF-16LE"),
        ("utf16", "UTF-16"),
        ("ascii", "US-ASCII"),
        ("utf-8", "utf-8"),
        ("UTF-16BE", "UTF-16BE"),
    ],
)
def test_usual_names_of_encodings_are_those_of_spark(tmp_path: Path, stated: str, named: str) -> None:
    assert spark_encoding(stated) == named
    for option in ("encoding", "charset", "ENCODING"):
        assert source(tmp_path, "a.csv", "id\n1\n", options={option: stated}).options == {option: named}


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("cp1252", "but not cp1252: convert the files, for example by `iconv -f cp1252 -t UTF-8`"),
        ("Shift_JIS", "convert the files"),
        ("utf8x", "it is not the name of an encoding: use one of UTF-8, ISO-8859-1, US-ASCII, UTF-16"),
        ("base64", "it is not the name of an encoding"),
        ("", "it is not the name of an encoding"),
        ("a\0b", "it is not the name of an encoding"),
    ],
)
def test_other_encodings_are_refused_with_those_of_spark(encoding: str, words: str) -> None:
    for format in ("csv", "json"):
        with pytest.raises(InvalidPipeline) as refused:
            check_options({"encoding": encoding}, format)
        assert words in str(refused.value) and "UTF-16LE" in str(refused.value)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("YYYY-MM-dd", "write y for the year"),
        ("uuuu-MM-dd", "write y for the year"),
        ("yyyy-mm-dd", "months are MM"),
        ("EEE, dd MMM yyyy", "does not read E"),
        ("yyyy-'W'ww", "does not read w"),
        ("yyyy-MM-ddTHH:mm", "or write text in quotes, 'T'"),
        ("yyyy-MM-ddd", "write at most dd"),
        ("yyyyyyy-MM-dd", "write at most yyyyyy"),
        ("yyyy-MM-dd SSSSSSSSSS", "write at most SSSSSSSSS"),
        ("yyyy-MM-dd V", "write VV"),
        ("yyyy-MM-dd OO", "write O or OOOO"),
        ("yyyy-MM-dd n", "write S for each digit"),
        ("yyyy-MM-dd 'x", "a quote is not closed"),
        ("yyyy-MM-dd {", "write it in quotes, '{'"),
        ("yyyy-MM-dd]", "closes no ["),
        (" ", "leave the option out"),
    ],
)
def test_patterns_that_spark_refuses(pattern: str, words: str) -> None:
    for option in ("dateFormat", "timestampFormat", "timestampNTZFormat"):
        with pytest.raises(InvalidPipeline) as refused:
            check_options({option: pattern}, "csv")
        assert f"the reader option {option}: {pattern!r} cannot be set: " in str(refused.value)
        assert words in str(refused.value)


@pytest.mark.parametrize(
    "pattern",
    ["yyyy-MM-dd", "d/M/yy", "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]", "dd. MMMM yyyy 'o''clock'", "yyyy-DDD", "HH:mm",
     "yyyy-LL-dd hh:mm a VV", "yyyyMMdd HHmmss VV", "dd.MM.yyyy HH:mm [OOOO"],
)  # fmt: skip
def test_patterns_that_spark_reads(pattern: str) -> None:
    assert pattern_problem(pattern) is None


def test_comments_of_json_are_refused_like_those_of_csv() -> None:
    for option, format in (("allowComments", "json"), ("comment", "csv")):
        with pytest.raises(InvalidPipeline, match="remove comments from the files"):
            check_options({option: "true"}, format)


REFUSED = [
    ("a.csv", "id,name,\n1,a,\n", {}, "the header ends with a separator, so that column 3 (after 'name') has no name"),
    ("a.csv", "id,,name\n1,a,b\n", {}, "column 2 of the header has no name"),
    ("a.csv", 'id,"  ",name\n1,a,b\n', {}, "column 2 of the header has no name"),
    ("a.csv", ",".join(map(str, range(20_481))), {}, "has 20,481 columns, but Spark reads 20,480: set source.options"),
    ("a.csv", "a,b,c\n1,2,3\n", {"maxColumns": 2}, "set source.options.maxColumns to 3"),
    ("a.csv", "id,n\n1,ü\n".encode("latin1"), {}, "if it is ISO-8859-1: set source.options.encoding to ISO-8859-1"),
    ("a.csv", "id,n\n1,a\n".encode("utf-16"), {}, "set source.options.encoding to UTF-16"),
    ("a.json", '{"id": 1}\nnull\n', {}, "line 2 is null, but each line must be a JSON object"),
    ("a.json", '\ufeff\r\n{"id": 1}\r\n\r\n5\r\n', {}, "line 4 is a number"),
    ("a.json", '"a text of a row"\n', {}, "line 1 is a text, but"),
    ("a.json", '[{"id": 1}]\nnull\n', {}, "line 2 is null"),
    ("a.json", "<html>\n", {}, "line 1 is other text"),
    ("a.json", '{"id": 1}\n'.encode("utf-16"), {}, "convert it, for example by `iconv -f UTF-16 -t UTF-8`"),
    ("a.json", '{"id": 1}\n'.encode("utf-16-le"), {}, "convert it, for example by `iconv -f UTF-16LE -t UTF-8`"),
    ("a.json", '{"id": 1}\n'.encode("utf-16"), {"encoding": "UTF-16"}, "Spark does not read lines of JSON in UTF-16"),
    ("a.json", '{"n": "ü"}\n'.encode("latin1"), {"encoding": "latin1"}, 'set source.options.lineSep to "\\n", or'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "options", "words"), REFUSED)
def test_a_file_is_refused_by_its_name_and_a_check_says_so_before(
    tmp_path: Path, name: str, content: str | bytes, options: dict[str, object], words: str
) -> None:
    stated = source(tmp_path, name, content, options=options)
    files = find_files(stated)
    with pytest.raises(InvalidInput) as refused:
        inspect_files(files, stated)
    message = str(refused.value)
    assert message.startswith(f"{tmp_path}/{name}") and words in message and "text of a row" not in message
    assert problems_of_beginnings(stated, files) == [f"{message}. A run that loads this file fails"]


@pytest.mark.parametrize(
    ("name", "content", "more"),
    [
        ("a.csv", "\n \nid,name\n1,a\n", {}),
        ("a.csv", "1,\n", {"options": {"header": False}, "schema": "a INT, b STRING"}),
        ("a.json", '\ufeff  {"id": 1}\n\n  {"id": 2}', {}),
        ("a.json", '{\n"id":\n1}', {}),
        ("a.json", '[{"id": 1},\nnull]'.encode("utf-16"), {"options": {"encoding": "UTF-16"}}),
        ("a.json", '{"n": "ü"}\n'.encode("latin1"), {"options": {"encoding": "latin1", "lineSep": "\n"}}),
    ],
)
def test_a_check_has_nothing_to_say_about_other_files(
    tmp_path: Path, name: str, content: str | bytes, more: dict[str, object]
) -> None:
    stated = source(tmp_path, name, content, **more)
    inspect_files(find_files(stated), stated)
    assert problems_of_beginnings(stated, find_files(stated)) == []


def test_files_that_main_may_contain_are_not_compared(tmp_path: Path) -> None:
    """A run leaves out loaded files, so that their headers may be of another time."""
    source(tmp_path, "a.csv", "id\n1\n")
    stated = source(tmp_path, "b.csv", "id,name\n1,a\n").model_copy(update={"path": f"{tmp_path}/*.csv"})
    assert problems_of_beginnings(stated, find_files(stated)) == []


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["1", "2.5", "2026-01-31"], "is read as the header, although it has only numbers and dates"),
        (["id", " name "], "the column name ' name ' in the header has spaces at its ends"),
        (["id;name"], "set source.options.sep to ';'"),
        (["id\tname"], "set source.options.sep to '\\t'"),
    ],
)
def test_hints_on_headers(names: list[str], words: str) -> None:
    (hint,) = hints_on_header(names)
    assert words in hint


@pytest.mark.parametrize("names", [[], ["id", "2024"], ["a b", "c"], ["id;x", "b"]])
def test_ordinary_headers_have_no_hint(names: list[str]) -> None:
    assert hints_on_header(names) == []
