"""Refusals name what is wrong, and nothing else: the right column, the folder, the value with its quotes."""

from pathlib import Path

import pytest

from lakehouse.source_files import find_non_object
from tests.harness.ingester import Ingester, file

NON_NUMERIC = {"allowNonNumericNumbers": True}


@pytest.mark.parametrize(
    ("schema", "line", "options", "why"),
    [
        ("k INT, v BINARY", '{"k": 1, "v": "é"}', {}, "v: 'é' is not a valid binary"),
        ("k INT, v BINARY, w INT", '{"k": 1, "v": "SGVsbG8=", "w": "x"}', {}, "w: '\"x\"' is not a valid int"),
        ("k INT, v DOUBLE", '{"k": 1, "v": +INF}', NON_NUMERIC, "v: '+INF' is not a valid double"),
        ("k INT, v INT", '{"k": 1, "v": "1"}', {}, "v: '\"1\"' is not a valid int"),
        ("k INT, v BOOLEAN", '{"k": 1, "v": "true"}', {}, "v: '\"true\"' is not a valid boolean"),
        ("k INT, v DATE", '{"k": 1, "v": "now"}', {}, "v: 'now' is not a valid date"),
    ],
)
def test_json(job: Ingester, schema: str, line: str, options: dict[str, object], why: str) -> None:
    path = file(job, "a.jsonl", line + "\n")
    refused = job.refused({"path": path, "schema": schema, "options": options})
    assert refused.startswith(f"{path}: {why}; 1 such row. Correct the file, or read {why[0]} as STRING"), refused


def test_a_number_that_json_does_not_have_is_named_where_types_are_guessed(job: Ingester) -> None:
    path = file(job, "a.jsonl", '{"a": NaN, "b": -Infinity, "c": +INF, "d": 1.5}\n{"a": 1, "b": 2, "c": 3, "d": NaN}\n')
    refused = job.refused({"path": path, "options": NON_NUMERIC})
    assert "c: '+INF' is not a valid double" in refused, refused


def test_two_fields_that_a_dot_makes_one_are_named(job: Ingester) -> None:
    path = file(job, "a.jsonl", '{"id": 1, "c": {"d.e": 2, "f g": 3, "d": {"e": 9}}}\n')
    assert job.refused({"path": path}) == (
        f"{job.table}: two fields of the input have the name 'c.d.e', one of them with a dot in its own name, and "
        "Iceberg cannot tell them apart: rename one of them in the files, or by a transform"
    )


@pytest.mark.parametrize("schema", [None, "id INT"])
def test_a_name_without_a_character_in_single_quotes(job: Ingester, schema: str | None) -> None:
    path = file(job, "a.jsonl", "{'id': 1, '': 2}\n")
    refused = job.refused({"path": path, **({"schema": schema} if schema else {})})
    assert refused.startswith(f"{path}: line 1 has a field with an empty name"), refused


@pytest.mark.parametrize(
    ("text", "line", "kind"),
    [
        ('[{"id": 1},\n null,\n {"id": 2}]', 2, "null"),
        ('\n[\n{"id": 1},\n\n 5]', 5, "a number"),
        ("[ null\n]", 1, "null"),
        ('[{"id": 1}, {"id": 2},\n[{"id": 3}]]', 2, "an array"),
    ],
)
def test_an_element_that_is_no_object_is_named(job: Ingester, text: str, line: int, kind: str) -> None:
    path = file(job, "a.json", text)
    assert job.refusal({"path": path, "schema": "id INT"}) and job.refusal({"path": path})
    assert find_non_object([path], "UTF-8") == (
        f"{path}, line {line}: an element of the array is {kind}, but each must be a JSON object, such as "
        '{"id": 1}: correct or remove it'
    )


@pytest.mark.parametrize("text", ['[{"id": 1}]', "[]", "[\n", '{"id": 1}\n', "", "[{'id': 1}, null]"])
def test_other_arrays_have_no_such_element(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    assert find_non_object([str(path), str(tmp_path / "absent.json")], "UTF-8") is None
