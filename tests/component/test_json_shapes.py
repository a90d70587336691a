"""JSON columns and fields in which no record has a value, and empty objects, from which Spark infers no column."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from sluice.presentation.guessed_types import describe_types
from spark_jobs.source_files import json_shapes
from tests.harness.ingester import Ingester, file


def test_a_column_of_empty_objects_and_lists_has_no_type_yet(job: Ingester) -> None:
    empty = file(job, "1.jsonl", '{"id":1,"o":{},"l":[{}],"t":[],"n":[null]}\n{"id":2,"o":null}\n')
    answer = job({"path": empty})
    assert describe_types(answer.types) == "id BIGINT; no value yet, so left out: l, n, o, t"
    assert job.rows() == [{"id": 1}, {"id": 2}]
    job({"path": file(job, "2.jsonl", '{"id":3,"t":[],"o":{}}\n')})
    job({"path": file(job, "3.jsonl", '{"id":4,"o":{"a":1},"l":[{"b":true}],"t":[0.5],"n":[]}\n')})
    assert job.rows()[-2:] == [
        {"id": 3, "o": None, "l": None, "t": None},
        {"id": 4, "o": {"a": 1}, "l": [{"b": True}], "t": [0.5]},
    ]


def test_nested_fields_without_a_value_are_text_and_named(job: Ingester) -> None:
    record = '{"id":1,"s":{"a":1,"b":{},"c":null,"d":[],"e f":[{"g":{}}]},"l":[{"x":1,"y":null}]}\n'
    answer = job({"path": file(job, "1.jsonl", record)})
    assert "no value yet, so text: l[].y, s.b, s.c, s.d[], s.e f[].g" in describe_types(answer.types)
    nested = {"a": 1, "b": "{}", "c": None, "d": [], "e f": [{"g": "{}"}]}
    assert job.rows() == [{"id": 1, "l": [{"x": 1, "y": None}], "s": nested}]


def test_files_of_two_kinds_give_one_field_its_type_together(job: Ingester) -> None:
    """A file that is one array is read apart from those with one record in each line."""
    paths = [file(job, "1.json", '[{"id":1,"s":{"a":1,"b":null}},\n {"id":2,"s":{"a":2,"b":{}}}]\n')]
    paths += [file(job, "2.json", '{"id":3,"s":{"a":3,"b":{"c":0.5}}}\n')]
    job({"path": paths})
    assert [row["s"] for row in job.rows()] == [
        {"a": 1, "b": None},
        {"a": 2, "b": {"c": None}},
        {"a": 3, "b": {"c": 0.5}},
    ]


def test_an_empty_object_that_the_table_has_no_column_for_is_refused(job: Ingester) -> None:
    job({"path": file(job, "1.jsonl", '{"id":1,"s":{"a":1}}\n')})
    assert "has no column 'extra'" in job.refused({"path": file(job, "2.jsonl", '{"id":2,"s":{"a":2},"extra":{}}\n')})
    nested = job.refused({"path": file(job, "3.jsonl", '{"id":2,"s":{"a":2,"extra":[{}]}}\n')})
    assert "the files contain fields that" in nested and "s.extra" in nested
    stated = {"path": file(job, "4.jsonl", '{"id":2,"extra":{}}\n'), "schema": "id INT"}
    assert "source.schema does not have: extra" in job.refused(stated)


def test_a_column_of_the_table_may_have_empty_objects_alone(job: Ingester) -> None:
    job({"path": file(job, "1.jsonl", '{"id":1,"s":{"a":1},"t":"x"}\n')})
    job({"path": file(job, "2.jsonl", '{"id":2,"s":{ },"t":{}}\n')})
    assert job.rows()[1] == {"id": 2, "s": {"a": None}, "t": "{}"}


@pytest.mark.parametrize("text", ["{}", "a {} b", "{"])
def test_braces_within_texts_are_no_objects(job: Ingester, text: str) -> None:
    job({"path": file(job, "1.jsonl", f'{{"id":1,"t":"{text}"}}\n')})
    assert job.rows() == [{"id": 1, "t": text}]


def test_a_field_that_only_late_records_have_gets_its_type_from_all(job: Ingester) -> None:
    """Few records are read first. A column that they lack, or have as NULL, is searched in all records."""
    early = "".join(f'{{"id":{number},"n":null}}\n' for number in range(1_500))
    late = '{"id":1500,"n":7,"note":null,"s":{"a":null,"b":1}}\n'
    answer = job({"path": file(job, "1.jsonl", early + late)})
    assert describe_types(answer.types).endswith("; no value yet, so left out: note; no value yet, so text: s.a")
    assert job.rows()[-1] == {"id": 1500, "n": 7, "s": {"a": None, "b": 1}}


def test_empty_objects_beside_empty_texts_and_lists_are_text(job: Ingester) -> None:
    records = '{"id":1,"x":"","y":[],"s":{"a":""}}\n{"id":2,"x":{},"y":{},"s":{"a":{}}}\n'
    job({"path": file(job, "1.jsonl", records)})
    assert job.rows() == [
        {"id": 1, "s": {"a": ""}, "x": "", "y": "[]"},
        {"id": 2, "s": {"a": "{}"}, "x": "{}", "y": "{}"},
    ]


def test_empty_objects_in_a_merge_and_with_a_transform(job: Ingester) -> None:
    job({"path": file(job, "1.jsonl", '{"id":1,"s":{"a":1}}\n')})
    merged: dict[str, Any] = {"mode": "merge", "keys": ["id"]}
    path = file(job, "2.jsonl", '{"id":1,"s":{"a":2},"extra":{}}\n')
    assert "has no column 'extra'" in job.refused({"path": path}, **merged)
    job({"path": path}, transform="SELECT id, s FROM source", **merged)
    assert job.rows() == [{"id": 1, "s": {"a": 2}}]


def test_a_record_of_which_nothing_is_known_has_the_types_that_spark_infers(
    job: Ingester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has no VARIANT of a record of more than 128 MiB."""
    monkeypatch.setattr(json_shapes, "parse_shape", lambda text: None)
    job({"path": file(job, "1.jsonl", '{"id":1,"t":null,"u":"x"}\n')})
    assert job.rows() == [{"id": 1, "u": "x"}]
    path = file(job, "2.jsonl", '{"id":1,"t":{},"u":"x"}\n')
    assert " contains `{}`, and a record or an array of more than 128 MiB" in job.refused({"path": path})


@pytest.mark.parametrize(
    ("ddl", "shape", "typed"),
    [
        ("a BIGINT, b STRING", {"a": False, "b": False}, "struct<a:void,b:void>"),
        ("a BIGINT, b STRING", {"b": True}, "struct<a:bigint,b:string>"),
        ("a STRUCT<b: BIGINT, c: STRING>", {"a": {"b": True, "c": False}}, "struct<a:struct<b:bigint,c:void>>"),
        ("a ARRAY<STRING>", {"a": [False]}, "struct<a:array<void>>"),
        ("a STRING", {"a": True, "b": {}}, "struct<a:string,b:void>"),
        ("a STRING", {"a": True, "b": [{"c": {}}]}, "struct<a:string,b:array<struct<c:void>>>"),
        ("a STRING", {"a": True, "b": True}, "struct<a:string,b:string>"),
    ],
)
def test_a_part_without_a_value_has_no_type(
    spark: SparkSession, ddl: str, shape: json_shapes.Shape, typed: str
) -> None:
    """Spark infers text from nothing, no field from `{}`, and none from `{}` and an empty text."""
    schema = spark.createDataFrame([], ddl).schema
    whole = json_shapes.with_empty_objects(schema, shape)
    assert json_shapes.without_guesses(whole, shape).simpleString() == typed
