"""The registry of checks: thresholds, mistakes that are found early, and the schema for editors."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from devstack.stack import ROOT
from sluice.checks.base import Check, check_problems
from sluice.checks.registry import REGISTRY, expand
from sluice.checks.thresholds import contradiction, exceeds, threshold
from sluice.metadata.statistics import ChangeStatistics, FileStatistics, SchemaField, TableStatistics
from sluice.pipeline.file import parse_pipeline
from sluice.presentation.check_reference import entries
from sluice.presentation.known_checks import known_checks
from sluice.presentation.pipeline_schema import json_schema

TYPES = {"id": "long", "name": "string", "day": "date", "at": "timestamptz", "x": "double", "parts": "list<int>"}


def check(written: Any) -> Check:
    (fields,) = expand(written)
    return REGISTRY[fields["check"]].model_validate(fields)


@pytest.mark.parametrize(
    ("text", "rows", "failed", "beyond"),
    [("> 2", 10, 2, False), ("> 2", 10, 3, True), (">=2", 10, 2, True), ("5", 10, 6, True), (">10%", 10, 1, False),
     (">= 10%", 10, 1, True), ("!= 0", 10, 1, True), ("> 0", 0, 0, False), ("> 33.3%", 3, 1, True)],
)  # fmt: skip
def test_thresholds(text: str, rows: int, failed: int, beyond: bool) -> None:
    assert exceeds(failed, rows, threshold(text)) == beyond


@pytest.mark.parametrize("text", ["many", "< 3", "> 101%", ">= 0", "> 1.5", "!= 3", True])
def test_what_is_no_threshold(text: Any) -> None:
    with pytest.raises(ValueError, match=r"threshold|always|more than all|number of rows"):
        threshold(text)


def test_levels_that_contradict_each_other() -> None:
    assert contradiction("> 10", "> 10") and contradiction("> 10", ">= 10")
    assert not contradiction(">= 10", "> 10") and not contradiction("> 1", "> 10") and not contradiction("> 1", "> 1%")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"not_null": {"column": "id", "mostly": 0.9, "max_failures": 3}}, "contradict each other"),
        ({"not_null": {"column": "id", "warn_if": "> 10", "fail_if": "> 5"}}, "never be reached"),
        ({"not_null": {"column": "id", "severity": "warn", "fail_if": "> 5"}}, "never fails"),
        ({"not_null": {"column": "id", "mostly": 1.5}}, "less than or equal to 1"),
        ({"not_null": {"column": "id", "where": "id >"}}, "does not parse"),
        ({"match_regex": {"column": "name", "pattern": "[a"}}, "is not a regular expression"),
        ({"match_like": {"column": "name", "pattern": "a\\b"}}, "a backslash may only precede"),
        ({"string_length": {"column": "name", "min": 5, "max": 3}}, "min 5 is above max 3"),
        ({"quantile_in_range": {"column": "x", "quantile": 2, "min": 0}}, "less than or equal to 1"),
        ({"volume": {"last": 5}}, "give min, max or both"),
        ({"sql": "DROP TABLE a.b"}, "does not only read"),
        ({"changed_partitions": {}}, "give only, max or both"),
        ({"expression_is_true": "sum(id) > 1"}, "aggregates"),
    ],
)
def test_parameters_that_are_wrong(written: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check(written)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"not_null": "nmae"}, "there is no column 'nmae' (did you mean 'name'?)"),
        ({"not_null": {"column": "id", "where": "nmae = 'x'"}}, "there is no column 'nmae'"),
        ({"match_regex": {"column": "id", "pattern": "a"}}, "'id' is long, and this check is for string"),
        ({"accepted_range": {"column": "day", "min": 3}}, "3 is not a date"),
        ({"accepted_range": {"column": "name", "min": 3}}, "3 is not a text: write it in quotes"),
        ({"accepted_range": {"column": "day", "min": "2024-02-01", "max": "2024-01-01"}}, "is above max"),
        ({"accepted_values": {"column": "id", "values": ["x"]}}, "'x' is not a whole number"),
        ({"mean_in_range": {"column": "name", "min": 0}}, "'name' is string, and this check is for int"),
        ({"mean_in_range": {"column": "x", "min": "low"}}, "'low' is not a decimal number"),
        ({"compare_columns": {"left": "id", "operator": "<", "right": "name"}}, "these do not compare"),
        ({"unique": "parts"}, "'parts' is list<int>"),
        ({"not_nan": "id"}, "this check is for float or double"),
        ({"freshness": {"column": "id", "max_age": "1d"}}, "this check is for date"),
        ({"sequential_values": {"column": "day"}}, "give datepart"),
        ({"sequential_values": {"column": "id", "datepart": "day"}}, "leave datepart out"),
        ({"row_per_date_part": {"column": "day", "part": "hour"}}, "has no hours"),
        ({"expression_is_true": "idd > 1"}, "there is no column 'idd'"),
    ],
)
def test_checks_that_do_not_fit_the_table(written: Any, words: str) -> None:
    assert words in "; ".join(check_problems(check(written), TYPES))


FIELDS = [SchemaField(1, "id", "int"), SchemaField(2, "name", "string")]
CHANGE = ChangeStatistics(
    operations=("append",), added_rows=5, added_files=2, added_bytes=2000, partitions=("day=1", "day=2"),
    partition_spec=("day", "day"), tables=("a.b",), fields_before=FIELDS, fields_after=FIELDS, volumes=(100, 110, 90),
)  # fmt: skip
REWRITE = ChangeStatistics(
    operations=("append", "overwrite"), added_rows=5, deleted_rows=8, partition_spec=("day", "hour"),
    sort_order=("", "1 ASC"), tables=("a.b", "a.c"), fields_before=FIELDS,
    fields_after=[SchemaField(1, "key", "long"), SchemaField(3, "late", "int")], volumes=(100,),
)  # fmt: skip


def test_a_field_of_a_nested_column_is_no_column() -> None:
    (problem,) = check_problems(check({"not_null": "o.k"}), {"id": "int", "o": "struct<1: k: optional int>"})
    assert problem.startswith("'o.k' is a field of the column 'o', and checks take whole columns")


@pytest.mark.parametrize(
    ("written", "first", "second"),
    [
        ("append_only", "pass", "fail"),
        ({"deleted_rows": 0}, "pass", "fail"),
        ({"deleted_rows": {"max": 3, "net": True}}, "pass", "pass"),
        ({"changed_partitions": ["day=1", "day=2"]}, "pass", "pass"),
        ({"changed_partitions": {"only": ["day=1"]}}, "fail", "pass"),
        ({"changed_partitions": {"max": 1}}, "fail", "pass"),
        ({"changed_tables": ["a.b"]}, "pass", "fail"),
        ({"added_files": {"min": 1, "max": 2}}, "pass", "fail"),
        ({"added_bytes": {"max": "1KiB"}}, "fail", "pass"),
        ("partitioning_unchanged", "pass", "fail"),
        ("sort_order_unchanged", "pass", "fail"),
        ("schema_drift", "pass", "fail"),
        ({"schema_drift": ["added", "removed", "renamed", "promoted"]}, "pass", "pass"),
        ({"volume": {"deviations": 3}}, "pass", "warn"),
        ({"volume": {"max_ratio": 1.05, "at_least": 1}}, "pass", "pass"),
        ({"volume": {"min_ratio": 1.05, "if_fewer": "fail"}}, "fail", "fail"),
    ],
)
def test_the_scope_of_a_change(written: Any, first: str, second: str) -> None:
    added = [FileStatistics(rows=100)]
    results = [
        check(written).prove(TableStatistics(types=TYPES, added=added, change=each)) for each in (CHANGE, REWRITE)
    ]
    assert [each.level for each in results if each] == [first, second]


FEW = TableStatistics(
    types=TYPES, added=[FileStatistics(rows=1)], live=[FileStatistics(rows=3)],
    change=ChangeStatistics(added_files=1, added_bytes=500, volumes=(100, 110, 90)), referenced_rows={"a.c": 10},
)  # fmt: skip


@pytest.mark.parametrize(
    "written",
    [
        {"row_count": {"min": 10}},
        {"row_count": {"min": 10, "max": 20}},
        {"equal_row_count": "a.c"},
        {"volume": {"deviations": 3}},
        {"volume": {"min_ratio": 0.5, "max_ratio": 2}},
        {"added_files": {"min": 2}},
        {"added_bytes": {"min": "1KiB"}},
    ],
)
def test_the_least_size_of_a_batch_is_not_asked_of_a_requeue(written: Any) -> None:
    batch, requeued = check(written).prove(FEW), check(written).prove(replace(FEW, requeued=True))
    assert batch and requeued and (batch.level, requeued.level) == ("fail", "pass")
    assert requeued.observed == f"{batch.observed} (the lower bound is not applied to a requeue)"


@pytest.mark.parametrize(
    "written",
    [
        {"row_count": {"max": 0}},
        {"row_count": {"min": 10, "scope": "table"}},
        {"equal_row_count": {"to": "a.c", "scope": "table"}},
        {"added_files": {"max": 0}},
        {"volume": {"max_ratio": 0.001}},
        {"volume": {"deviations": 1, "max_ratio": 0.001}},
    ],
)
def test_other_bounds_are_asked_of_a_requeue_too(written: Any) -> None:
    batch, requeued = check(written).prove(FEW), check(written).prove(replace(FEW, requeued=True))
    assert batch and requeued and (batch.level, requeued.level) == ("fail", "fail")


def test_a_requeue_that_is_large_enough_says_nothing_of_bounds() -> None:
    requeued = check({"row_count": {"min": 1}}).prove(replace(FEW, requeued=True))
    assert requeued and (requeued.level, requeued.observed) == ("pass", 1)


def test_the_schema_for_editors_knows_what_the_parser_knows() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    loaded = [YAML(typ="safe").load(path.read_text()) for path in sorted((ROOT / "pipelines").glob("*.yml"))]
    examples = json.loads(json.dumps(loaded, default=str))  # editors read dates as texts
    assert examples
    for example in examples:
        validator.validate(example)
    wrong = {"name": "x", "write": {"source": {"path": "a"}}, "tables": {"a.b": {"checks": [{"not_nul": "a"}]}}}
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(wrong)
    assert len(json.dumps(schema)) < 200_000


def test_every_check_is_listed_with_its_meaning() -> None:
    assert known_checks() == entries(), "make docs"
    for entry in entries():
        assert entry.meaning.endswith("."), entry.name
        assert entry.proof


def test_a_check_knows_its_line(tmp_path: Path) -> None:
    text = "name: n\nwrite: {source: {path: a.csv}}\ntables:\n  a.b:\n    checks:\n"
    text += "      - not_null: [x, y]\n      - row_count: 1\n"
    pipeline = parse_pipeline(text, "p.yml")
    assert [each.at for each in pipeline.tables["a.b"].checks] == ["p.yml:6", "p.yml:6", "p.yml:7"]
    assert pipeline.digest == parse_pipeline("\n" + text, "other.yml").digest
