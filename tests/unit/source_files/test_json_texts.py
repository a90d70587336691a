"""A text in a JSON column of numbers makes the column text: `check` and the report name its file and line."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakehouse.source_files import find_files, json_content, local, preview_types, text, with_deciding_values
from lakehouse.source_files import records as reading
from lakehouse.source_files.records import find_non_object, json_objects
from sluice.contracts.guessed_types import GuessedColumn, GuessedTypes
from sluice.pipeline.source import Source
from sluice.presentation.guessed_types import describe_types

GUESSED = GuessedTypes(
    columns=[GuessedColumn(name="id", type="BIGINT"), *(GuessedColumn(name=each, type="STRING") for each in "qn")],
    total=3,
)


def described(path: Path, *, show_values: bool = True, **source: Any) -> str:
    """Describe the types of a load of some files, in which `q` and `n` became text."""
    stated = Source.model_validate({"path": str(path), **source})
    return describe_types(with_deciding_values(GUESSED, stated, find_files(stated), show_values=show_values))


def records(*values: object) -> list[dict[str, object]]:
    return [{"id": number, "q": value, "n": f"{number}"} for number, value in enumerate(values)]


def lines(*values: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records(*values))


def test_the_report_names_the_text_among_other_values(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\ufeff" + lines(1, None, 2))
    (tmp_path / "b.jsonl").write_text("\n" + lines(3, "5", "6"))
    assert described(tmp_path / "*.jsonl") == "id BIGINT, q STRING ('\"5\"' in b.jsonl, line 3), n STRING"
    hidden = described(tmp_path / "*.jsonl", show_values=False)
    assert hidden == "id BIGINT, q STRING (a text in b.jsonl, line 3), n STRING"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (json.dumps(records(1, "5"), indent=1), 7),
        (json.dumps(records(1, "5")), 1),
        (json.dumps(records(1, "5")) + "\n" + lines(3), 1),
        ("not JSON\r\n" + lines({"a": 1}, True, "5").replace("\n", "\r\n"), 4),
    ],
)
def test_the_line_in_every_form_of_json(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text.encode()))
    assert f"q STRING ('\"5\"' in a.json.gz, line {line})" in described(tmp_path / "a.json.gz")


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (lines("5", None, "6"), {}),
        (lines(1, "5"), {"options": {"primitivesAsString": "true"}}),
        (lines(1, "5"), {"schema": "id INT, q STRING, n STRING"}),
        (lines(1, "5"), {"format": "csv"}),
        ("{'q': 1}\n{'q': '5'}\n", {}),
    ],
)
def test_columns_in_which_no_value_decides(tmp_path: Path, text: str, source: dict[str, Any]) -> None:
    (tmp_path / "a.json").write_text(text)
    assert described(tmp_path / "a.json", **source) == "id BIGINT, q STRING, n STRING"


def test_a_file_that_is_gone_after_its_load_fails_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines(1, "5"))
    files = find_files(Source(path=str(path)))
    path.unlink()
    assert with_deciding_values(GUESSED, Source(path=str(path)), files, show_values=True) == GUESSED


def test_check_names_the_few_texts_of_a_column_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(lines(*range(20), "5", 1.5))
    preview = preview_types(Source(path=str(path)), find_files(Source(path=str(path))))
    assert ("q", "STRING", '"5"') in [(each.name, each.type, each.value) for each in preview.columns]
    assert preview.hints == [
        f"q is read as text because of '\"5\"' in {path}, line 21: 21 of the first 22 values are numbers. "
        "Repair the file, or state `schema`"
    ]


def test_an_element_that_is_no_object_is_still_found_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('\n[\n {"q": 1},\n {"q": [1, {"q": 2}]}\n, 7\n]\n')
    assert [line for line, _ in json_objects(str(path), "UTF-8")] == [3, 4]
    assert "line 5: an element of the array is a number" in (find_non_object([str(path)], "UTF-8") or "")
    path.write_text('{"q":\n 1}')
    assert list(json_objects(str(path), "UTF-8")) == [(1, {"q": 1})]
    assert find_non_object([str(path)], "UTF-8") is None


def test_one_value_in_one_line_is_read_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(records(*range(1_000))))
    assert [each for _, each in json_objects(str(path), "UTF-8")] == records(*range(1_000))
    sizes = list[int]()

    def counted(*stated: Any, **options: Any) -> Iterator[str]:
        for piece in text.decoded(*stated, **options):
            sizes.append(len(piece))
            yield piece

    monkeypatch.setattr(local, "CHUNK", 50)
    monkeypatch.setattr(json_content, "_START", 100)
    monkeypatch.setattr(reading, "decoded", counted)
    monkeypatch.setattr(reading, "_LARGEST_VALUE", 1_000)
    assert not list(json_objects(str(path), "UTF-8"))
    assert sum(sizes) < 1_000 + 5 * 50, "the rest of the file stays unread"
