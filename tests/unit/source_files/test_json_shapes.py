"""Parts of JSON records without a value."""

import pytest

from lakehouse.source_files.json_losses import EmptyObjects
from spark_jobs.source_files.json_shapes import Shape, has_value, parse_shape


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("VOID", False),
        ("DECIMAL(21,1)", True),
        ("OBJECT<>", {}),
        ("ARRAY<ARRAY<VOID>>", [[False]]),
        ("OBJECT<a: BIGINT, b: OBJECT<c: ARRAY<OBJECT<>>>>", {"a": True, "b": {"c": [{}]}}),
        ("OBJECT<`a.b`: VOID, `z``, <q: `: STRING, eä: VARIANT>", {"a.b": False, "z`, <q: ": True, "eä": True}),
    ],
)
def test_the_type_of_a_variant_is_parsed(text: str, shape: Shape) -> None:
    assert parse_shape(text) == shape


@pytest.mark.parametrize(
    ("shape", "some"),
    [(True, True), (False, False), ({}, False), ([{}], False), ({"a": True, "b": [False]}, True), ([False], False)],
)
def test_a_shape_has_values(shape: Shape, some: bool) -> None:
    assert has_value(shape) == some


@pytest.mark.parametrize(
    ("pieces", "has_any"),
    [
        (['{"a":{}}'], True),
        (['{"a":{', " \n", "}}"], True),
        (['{"a":{ ', '"b":{}}}'], True),
        (['{"a":{', '"b":1', "}}"], False),
        (["{", "", "}"], True),
        (["[]", "}{"], False),
    ],
)
def test_empty_objects_are_noticed_across_pieces(pieces: list[str], has_any: bool) -> None:
    search = EmptyObjects()
    assert list(search.watch(iter(pieces))) == pieces
    assert search.has_any is has_any
