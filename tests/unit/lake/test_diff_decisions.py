"""The decisions of a diff: the key of a table, and its columns by field id."""

from typing import Any

import pytest

from sluice.contracts.table_diffs import RowDifferences, TableKey
from sluice.diff.keys import check_chosen_key, key_notes, match_key, pipeline_keys
from sluice.diff.schema_changes import Column, schema_changes
from sluice.diff.state import table_state
from sluice.errors import InvalidInput
from sluice.metadata.statistics import SchemaField
from sluice.pipeline.model import Pipeline

ID, NAME, TAGS = SchemaField(1, "id", "long"), SchemaField(2, "name", "string"), SchemaField(3, "tags", "list<string>")


def keys(write: dict[str, Any], *checks: dict[str, Any]) -> dict[str, TableKey]:
    model = {"name": "p", "write": write, "tables": {"t.x": {"checks": list(checks)}}}
    return pipeline_keys(Pipeline.model_validate(model))


def test_the_key_is_that_of_the_merge_or_of_a_check() -> None:
    source = {"source": {"path": "x.csv"}}
    merge = {**source, "mode": "merge", "keys": ["id", "day"]}
    expected = TableKey(columns=["id", "day"], source="merge keys")
    assert keys(merge, {"check": "unique", "column": "other"}) == {"t.x": expected}
    partial = {"check": "unique", "column": "a", "where": "b > 0"}
    warns = {"check": "unique", "column": "w", "severity": "warn"}
    both = {"check": "unique_combination_of_columns", "columns": ["a", "b"]}
    assert keys(source, partial, warns, both) == {"t.x": TableKey(columns=["a", "b"], source="unique check")}
    assert keys(source, warns)["t.x"].columns == ["w"]
    assert keys(source, partial) == {}


def test_a_key_is_matched_by_field_id() -> None:
    renamed = SchemaField(1, "key", "long")
    for name in ("id", "key"):
        matched = match_key(TableKey(columns=[name], source="chosen"), [ID, NAME], [renamed, NAME])
        assert (matched.ids, matched.key.columns, matched.note) == ([1], ["key"], "")


@pytest.mark.parametrize(
    ("columns", "note"),
    [
        ([], "no key is known"),
        (["x"], "the column 'x' of the key (chosen) does not exist"),
        (["name"], "exists in one version only"),
        (["tags"], "is list, which cannot be a key"),
    ],
)
def test_a_key_that_cannot_match_rows(columns: list[str], note: str) -> None:
    matched = match_key(TableKey(columns=columns, source="chosen"), [ID, TAGS], [ID, NAME, TAGS])
    assert not matched.ids and note in matched.note and "--key" in matched.note


def test_a_chosen_key_must_fit_one_table() -> None:
    check_chosen_key(["id"], {"t.x": ["id"], "t.y": ["a"]})
    check_chosen_key([], {"t.x": ["id"]})
    with pytest.raises(InvalidInput, match=r"no table has all of the columns id, a"):
        check_chosen_key(["id", "a"], {"t.x": ["id"], "t.y": ["a"]})


def test_notes_about_keys_that_are_not_unique() -> None:
    (note,) = key_notes(RowDifferences(null_keys=1, repeated_keys=1200))
    assert "1 row with a null in the key and 1,200 keys in more than one row" in note
    assert key_notes(RowDifferences(changed=5)) == []


def test_nested_columns_are_listed_by_their_outermost_change() -> None:
    before = [Column(1, ("id",), "int", True), Column(2, ("s",), "struct", False), Column(3, ("s", "a"), "int", False)]
    after = [
        Column(1, ("id",), "long", False), Column(2, ("t",), "struct", False), Column(4, ("u",), "struct", False),
        Column(5, ("u", "b"), "int", False),
    ]  # fmt: skip
    changes = [(each.change, each.column, each.before, each.after) for each in schema_changes(before, after)]
    assert changes == [
        ("added", "u", "", "struct"),
        ("type changed", "id", "int", "long"),
        ("nullability changed", "id", "required", "optional"),
        ("renamed", "t", "s", "t"),
        ("dropped", "s.a", "int", ""),
    ]


def test_states() -> None:
    rows, changes = RowDifferences(), schema_changes([], [Column(1, ("a",), "int", False)])
    assert table_state(existed=True, exists=True, rows=rows, changes=changes) == "schema only"
    assert table_state(existed=True, exists=True, rows=rows, changes=[]) == "unchanged"
    assert table_state(existed=True, exists=True, rows=None, changes=changes) == "not compared"
    assert table_state(existed=False, exists=True, rows=rows, changes=[]) == "created"
