"""Numbers of JSON in files in which Spark reads them as DOUBLE first: those that it would round are refused."""

import gzip
from pathlib import Path

import pytest

from lakehouse.source_files import find_files, inspect_files
from lakehouse.source_files.json_numbers import _first_position, without_rounded_numbers
from sluice.errors import InvalidInput
from sluice.pipeline.source import Source

_ROUNDED = [
    ('{"a": 0.123456789012345678}', "a"),
    ('{"b": "\\"", "a": [1, 9007199254740993.5]}', "a"),
    ('{"a": {"b": "0.1", "c" : -12345678901234.5678}}', "c"),
    ('{"a": 12345678901234567891e-5}', "a"),
    ('{"a": 1e-400}', "a"),
    ('{"a": 1E400}', "a"),
    ('{"a": 1.2345e-320}', "a"),
    ("{'a': '\"', 'b': 1.10000000000000000001}", "b"),
    ('{"a": 5, "b": "it\'s", "c": 1.10000000000000000001, "d": "it\'s"}', "c"),
]
_KEPT = [
    '{"a": 0.1234567890123456, "b": 12345678901234567890}',
    '{"a": "0.123456789012345678901", "b": 0.10000000000000000000000}',
    '{"a": 1e5, "b": 1.10, "c": -2.5E-7, "d": 0e0}',
    "{'a': '0.123456789012345678901'}",
    '{"a": "\\"0.123456789012345678901", "0.123456789012345678901": "x"}',
    "{x1.123456789012345678901: 5, y1e400: 6}",
]


def pieces_of(text: str) -> list[list[str]]:
    """Return a text in pieces of several sizes."""
    return [[text[at : at + size] for at in range(0, len(text), size)] for size in (1, 2, 7, len(text))]


@pytest.mark.parametrize(("record", "name"), _ROUNDED)
def test_a_number_that_a_double_would_round_is_named(record: str, name: str) -> None:
    for pieces in pieces_of(f'{{"x": 1}}\n\n{record}\n{{"y": 2}}\n'):
        with pytest.raises(InvalidInput) as refused:
            list(without_rounded_numbers("in.json", iter(pieces), "convert it", before=2))
        assert str(refused.value) == (
            f"in.json: line 5: Spark would round a number in the field {name}: convert it, or write the number as text"
        )


def test_a_rounded_number_without_a_name_is_refused_by_its_line() -> None:
    with pytest.raises(InvalidInput, match=r"line 2: Spark would round a number: convert it, or write"):
        list(without_rounded_numbers("in.json", iter(["[1,\n0.123456789012345678]"]), "convert it"))


def test_tokens_before_the_last_name_are_read_only_if_a_number_is_rounded() -> None:
    kept = '{"a": 0.30000000000000004, "b": "3e5 0.123456789012345678 it\'s \\"", '
    assert _first_position(kept + '"c" : [1, "d') == len(kept)
    assert _first_position(kept + '"c": 0.123456789012345678, "d": 1') == 0
    assert _first_position("[1, '\"', 2]") == 0


@pytest.mark.parametrize("record", _KEPT)
def test_other_numbers_stay(record: str) -> None:
    for pieces in pieces_of(record):
        assert list(without_rounded_numbers("in.json", iter(pieces), "")) == pieces


def inspect(path: Path, content: bytes, **options: str) -> None:
    path.write_bytes(content)
    source = Source(path=str(path), options=options)
    inspect_files(find_files(source), source)


@pytest.mark.parametrize(
    ("name", "content", "options", "advice"),
    [
        ("a.json.gz", '[{"a": 1},\n{"a": 0.123456789012345678}]', {}, "write one value in each line, or decompress"),
        ("a.json", '[{"a": 1},\n{"a": 0.123456789012345678}]', {"encoding": "UTF-16"}, "iconv -f UTF-16 -t UTF-8"),
        ("a.json", '{"a": 1}\n{"a": 0.123456789012345678}', {"encoding": "latin1", "lineSep": "\n"}, "iconv -f ISO"),
    ],
)
def test_files_in_which_spark_rounds_numbers(
    tmp_path: Path, name: str, content: str, options: dict[str, str], advice: str
) -> None:
    packed = content.encode(options.get("encoding", "utf-8"))
    with pytest.raises(InvalidInput) as refused:
        inspect(tmp_path / name, gzip.compress(packed) if name.endswith(".gz") else packed, **options)
    message = str(refused.value)
    assert message.startswith(f"{tmp_path / name}: line 2: Spark would round a number in the field a: "), message
    assert advice in message


@pytest.mark.parametrize("encoding", ["", "utf8", "US-ASCII"])
def test_files_in_which_spark_keeps_digits(tmp_path: Path, encoding: str) -> None:
    options = {"encoding": encoding} if encoding else {}
    lines = b'{"a": 0.123456789012345678}\n{"a": 1e-400}\n'
    inspect(tmp_path / "a.jsonl", lines, **options)
    inspect(tmp_path / "b.jsonl.gz", gzip.compress(lines), **options)
    inspect(tmp_path / "c.jsonl", lines, lineSep="\n", **options)
    inspect(tmp_path / "d.json", b'[{"a":\n0.123456789012345678}]', **options)
