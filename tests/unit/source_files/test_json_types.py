"""Types of JSON columns before a run. Spark's are compared in tests/component/test_guessed_json.py."""

import json
from pathlib import Path
from typing import Any

import pytest

from lakehouse.source_files import find_files, preview_types
from sluice.contracts.guessed_types import TypePreview
from sluice.pipeline.source import Source


def preview(folder: Path, *records: dict[str, Any], options: dict[str, str] | None = None) -> TypePreview:
    path = folder / "a.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    source = Source(path=str(path), options=options or {})
    return preview_types(source, find_files(source))


@pytest.mark.parametrize(
    ("values", "type"),
    [
        ([1, None], "BIGINT"),
        ([1, 1.5], "DOUBLE"),
        ([2**63, 1], "DECIMAL(20,0)"),
        ([10**30, 1], "DECIMAL(31,0)"),
        ([10**40, 1], "DOUBLE"),
        ([True], "BOOLEAN"),
        ([True, 1], "STRING"),
        (["", 1], "BIGINT"),
        ([""], "STRING"),
        (["2026-11-30"], "STRING"),
        ([None, [], {}], "STRING"),
        ([None, []], ""),
        ([{}, None], ""),
        ([[], [1], [1.5]], "ARRAY<double>"),
        ([{"b": 1}, {"a": "x"}], "STRUCT<`a`: string, `b`: bigint>"),
        ([{"b": 1}, 1], "STRING"),
    ],
)
def test_the_type_of_a_column(tmp_path: Path, values: list[Any], type: str) -> None:
    (column,) = preview(tmp_path, *({"x": value} for value in values)).columns
    assert (column.name, column.type) == ("x", type)


def test_nested_fields_without_a_value_are_text_and_named(tmp_path: Path) -> None:
    (column,) = preview(tmp_path, {"x": {"a": 1, "b": None, "c": [{"d": {}}]}}).columns
    assert column.type == "STRUCT<`a`: bigint, `b`: string, `c`: ARRAY<STRUCT<`d`: string>>>"
    assert column.as_text == ["x.b", "x.c[].d"]


def test_a_column_of_numbers_with_a_text_is_text_with_the_place_of_the_text(tmp_path: Path) -> None:
    (column,) = preview(tmp_path, {"x": 1}, {"x": "5"}).columns
    assert (column.type, column.value, column.where) == ("STRING", '"5"', "a.jsonl, line 2")


@pytest.mark.parametrize("option", ["prefersDecimal", "inferTimestamp"])
def test_options_with_which_spark_infers_other_types(tmp_path: Path, option: str) -> None:
    assert not preview(tmp_path, {"x": 1.5}, options={option: "true"}).columns
    assert preview(tmp_path, {"x": 1.5}, options={option: "false"}).columns


def test_a_value_that_is_nested_too_deeply_has_no_types(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"x": {"[" * 900}{"]" * 900}}}\n')
    source = Source(path=f"{tmp_path}/a.jsonl")
    assert not preview_types(source, find_files(source)).columns
