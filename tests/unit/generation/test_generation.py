"""Generated rows: checks accept them, and reject a planted fault, by the same queries that audit runs."""

from datetime import datetime, timezone
from typing import Any

import pytest

from generation.columns import DEFAULT_SHAPE, TableShape, columns_of_schema
from generation.judging import Judge, Row
from generation.labels import check_labels
from generation.requests import (
    Generated,
    Request,
    checks_of,
    default_rows,
    generate,
    shape_of,
    typed_references,
)
from generation.simple_queries import as_condition
from runtime.pipeline.row_engine import DuckDBRows
from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.model import Pipeline

ENGINE = DuckDBRows()
NOW = datetime(2024, 6, 1, tzinfo=timezone.utc)
SCHEMA = (
    "id INT, big BIGINT NOT NULL, f FLOAT, x DOUBLE, y DOUBLE, dec DECIMAL(9, 2), s STRING, t STRING, "
    "flag BOOLEAN, d DATE, e DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, tiny TINYINT, code STRING"
)
ROW_CHECKS = [
    "not_null: s",
    "not_null: {column: s, where: x > 100}",
    "not_null: {column: s, mostly: 0.9}",
    "not_null: {column: s, max_failures: 3}",
    "accepted_values: {column: s, values: [open, paid]}",
    "accepted_values: {column: s, values: [open, paid], all_present: true}",
    "accepted_values: {column: id, values: [1, 2, 3]}",
    "accepted_values: {column: flag, values: [true]}",
    "accepted_values: {column: d, values: ['2024-01-01', '2024-02-01']}",
    "not_accepted_values: {column: s, values: [none, unknown]}",
    "not_accepted_values: {column: flag, values: [false]}",
    "accepted_range: {column: id, min: 1, max: 5}",
    "accepted_range: {column: tiny, min: 100}",
    "accepted_range: {column: id, min: 0.5, inclusive: false}",
    "accepted_range: {column: x, min: 0, max: 0.01}",
    "accepted_range: {column: f, max: -5}",
    "accepted_range: {column: dec, min: 1.5, max: 1.52, inclusive: false}",
    "accepted_range: {column: d, min: 2013-01-01, max: 2013-12-31}",
    "accepted_range: {column: ts, min: '2030-01-01 00:00:00'}",
    "accepted_range: {column: tn, max: '2001-01-01 00:00:00'}",
    "accepted_range: {column: s, min: m}",
    "not_nan: x",
    "not_empty_string: s",
    "match_regex: {column: s, pattern: '^[A-Z]{2}-[0-9]{3,5}(x|yz)?$'}",
    "match_regex: {column: s, pattern: '[^a-z]\\d\\.'}",
    "not_match_regex: {column: s, pattern: '^[a-c]'}",
    "match_like: {column: s, pattern: 'a_\\%%z'}",
    "not_match_like: {column: s, pattern: 'a%'}",
    "valid_format: {column: s, format: email}",
    "valid_url: {column: s}",
    "valid_uuid: {column: s}",
    "valid_date: {column: s}",
    "valid_ipv4: {column: s}",
    "string_length: {column: s, min: 3, max: 4}",
    "string_length: {column: code, max: 4}",
    "unique: id",
    "unique: s",
    "unique: d",
    "unique_combination_of_columns: [tiny, flag, t]",
    "compare_columns: {left: x, operator: <, right: y}",
    "compare_columns: {left: d, operator: '>=', right: e}",
    "compare_columns: {left: s, operator: '=', right: t}",
    "compare_columns: {left: s, operator: '!=', right: t}",
    "sql: SELECT * FROM t.p WHERE d < e",
    "sql: {name: mine, query: SELECT id FROM t.p WHERE x > 900 OR s = 'open'}",
    "expression_is_true: x > 0",
    "expression_is_true: id between 3 and 9 and s is not null",
    "expression_is_true: s in ('open') or x >= 10",
    "expression_is_true: x > 20 and not (y < 700)",
]
SET_CHECKS = [
    "row_count: {min: 100, max: 400}",
    "row_count: {max: 150}",
    "not_null_proportion: {column: s, min: 0.9}",
    "not_null_proportion: {column: s, min: 0.2, max: 0.4}",
    "at_least_one: s",
    "not_constant: flag",
    "not_constant: id",
    "distinct_count: {column: s, min: 5, max: 9}",
    "distinct_count: {column: id, max: 4}",
    "distinct_ratio: {column: id, min: 0.3, max: 0.6}",
    "min_in_range: {column: id, min: 1, max: 5}",
    "max_in_range: {column: x, min: 90, max: 95}",
    "max_in_range: {column: d, max: '2020-01-01'}",
    "mean_in_range: {column: id, min: 10, max: 20}",
    "sum_in_range: {column: x, min: 1000, max: 2000}",
    "stddev_in_range: {column: x, min: 2, max: 3}",
    "quantile_in_range: {column: y, quantile: 0.5, min: 7}",
    "freshness: {column: ts, max_age: 3d}",
    "freshness: {column: d, max_age: 2d}",
    "row_per_date_part: {column: d, part: month}",
    "row_per_date_part: {column: ts, part: day, first: '2024-01-01', last: '2024-01-20'}",
    "sequential_values: id",
    "sequential_values: {column: big, interval: 5, group_by: [flag]}",
    "sequential_values: {column: ts, datepart: hour}",
]
WHOLE = [
    "not_null: [s, t]",
    "unique: id",
    "match_regex: {column: s, pattern: '^[a-z]+-\\d+$'}",
    "accepted_range: {column: x, min: 1, max: 50}",
    "compare_columns: {left: x, operator: <=, right: y}",
    "not_null_proportion: {column: e, min: 0.5}",
    "unique_combination_of_columns: [s, t]",
    "max_in_range: {column: y, max: 700}",
    "row_per_date_part: {column: d}",
]


def pipeline(*checks: str, schema: str = SCHEMA, more: str = "") -> Pipeline:
    source = f"{{path: in.csv{f', schema: {schema!r}' if schema else ''}}}"
    listed = "".join(f"      - {check}\n" for check in checks)
    text = f"name: p\nwrite:\n  source: {source}\n{more}tables:\n  t.p:\n    checks:\n{listed or '      []'}"
    return parse_pipeline(text, "p.yml")


def generated(p: Pipeline | None, *faults: str, rows: int = 120, seed: int = 7, no_null: bool = False) -> Generated:
    request = Request("t.p", shape_of(p), checks_of(p), rows, seed, no_null, NOW)
    return generate(request, ENGINE, faults)


def levels(p: Pipeline, rows: Any) -> list[str]:
    checks = [as_condition(each, "t.p") for each in checks_of(p)]
    judged = Judge(shape_of(p), checks, ENGINE, NOW).judge(rows)
    assert all(each.evaluation for each in judged), judged
    return [each.evaluation.level for each in judged if each.evaluation]


@pytest.mark.parametrize("check", [*ROW_CHECKS, *SET_CHECKS])
def test_a_check_accepts_generated_rows_and_refuses_a_planted_fault(check: str) -> None:
    p = pipeline(check)
    assert levels(p, generated(p).rows) == ["pass"]
    (label,) = check_labels(checks_of(p))
    assert levels(p, generated(p, label).rows) == ["fail"]


@pytest.mark.parametrize("seed", range(3))
def test_many_checks_accept_the_rows_of_any_seed_and_each_refuses_its_own_fault(seed: int) -> None:
    p = pipeline(*WHOLE)
    rows = generated(p, seed=seed).rows
    assert len(rows) == 120 and set(levels(p, rows)) == {"pass"}
    for at, label in enumerate(check_labels(checks_of(p))):
        assert levels(p, generated(p, label, seed=seed).rows)[at] == "fail", label


def test_the_same_seed_makes_the_same_rows_and_another_one_others() -> None:
    p = pipeline(*WHOLE)
    first, again, other = (generated(p, "not_null:s=0.1", seed=seed).rows for seed in (1, 1, 2))
    assert first == again and first != other


def nulls(rows: Any, name: str) -> int:
    return sum(row[name] is None for row in rows)


def test_nulls_are_made_where_nothing_forbids_them_and_never_with_no_null() -> None:
    p = pipeline("not_null: s")
    rows: Any = generated(p).rows
    assert nulls(rows, "s") == nulls(rows, "big") == 0 and nulls(rows, "t") == 6
    full: Any = generated(p, no_null=True).rows
    assert not any(nulls(full, name) for name in full[0])


def test_a_share_says_how_many_rows_break_a_check() -> None:
    p = pipeline("not_null: [s, t]", "unique: id")
    rows: Any = generated(p, "not_null:s=0.02", "unique:id=0.1", rows=300).rows
    ids = [row["id"] for row in rows if row["id"] is not None]
    assert (nulls(rows, "s"), nulls(rows, "t")) == (6, 0)
    assert sum(ids.count(each) > 1 for each in ids) == 30


@pytest.mark.parametrize(
    ("share", "rows", "bad"), [("0.07", 100, 7), ("0.55", 100, 55), ("0.14", 50, 7), ("0.021", 100, 3)]
)
def test_a_share_is_taken_as_it_is_written(share: str, rows: int, bad: int) -> None:
    """0.07 * 100 is more than 7 in binary."""
    assert nulls(generated(pipeline("not_null: s"), f"not_null:s={share}", rows=rows).rows, "s") == bad


def test_faults_that_undo_each_other_are_refused() -> None:
    """A null would overwrite the row with the largest value."""
    p = pipeline("not_null: x", "max_in_range: {column: x, max: 95}")
    with pytest.raises(InvalidPipeline, match="max_in_range:x would pass, since another fault changes the same rows"):
        generated(p, "not_null:x=0.6", "max_in_range:x")


def test_a_fault_of_all_rows_leaves_those_of_single_rows() -> None:
    """It creates other rows, so it comes first, in whatever order the faults are requested."""
    for faults in (("row_count", "not_null:s=0.05"), ("not_null:s=0.05", "row_count")):
        p = pipeline("not_null: s", "row_count: {max: 150}")
        made = generated(p, *faults)
        assert (len(made.rows), nulls(made.rows, "s"), levels(p, made.rows)) == (151, 8, ["fail", "fail"])


@pytest.mark.parametrize(
    ("checks", "fault", "message"),
    [
        (["not_null: s"], "not_nul:s=0.1", "there is no check 'not_nul:s' (did you mean 'not_null:s'?)"),
        (["not_null: s"], "not_null:s=7", "above 0 and at most 1"),
        (["row_count: {min: 10}"], "row_count=0.5", "about all rows"),
        (["row_count: {min: 1}"], "row_count", "a file without rows"),
        (["append_only"], "append_only", "not about rows"),
    ],
)
def test_a_fault_that_cannot_be_planted_is_refused(checks: list[str], fault: str, message: str) -> None:
    with pytest.raises(InvalidPipeline) as refusal:
        generated(pipeline(*checks), fault)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    "checks",
    [
        ["accepted_range: {column: x, min: 5}", "accepted_range: {column: x, max: 4}"],
        ["row_count: {min: 121}"],
        ["unique: flag"],
        ["accepted_values: {column: s, values: [a]}", "not_accepted_values: {column: s, values: [a]}", "not_null: s"],
    ],
)
def test_checks_that_no_rows_satisfy_are_named(checks: list[str]) -> None:
    with pytest.raises(InvalidPipeline, match="no rows could be generated that all checks accept: "):
        generated(pipeline(*checks))


def test_checks_that_are_not_asked_are_named_with_the_reason() -> None:
    checks = ["sql: {name: mine, query: SELECT * FROM t.p GROUP BY id}", "append_only", "not_null: y"]
    notes = generated(pipeline(*checks, "relationships: {column: id, to: t.q, field: id}")).notes
    assert notes == [
        "sql:mine was not considered: it is a query of your own",
        "append_only was not considered: it is about what a run changes, not about rows",
        "relationships:id was not considered: no values of t.q.id are known for id",
    ]


def test_a_fault_that_breaks_another_check_too_says_so() -> None:
    p = pipeline("not_null: s", "not_null_proportion: {column: s, min: 0.99}")
    assert generated(p, "not_null:s=0.5").notes[1:] == ["not_null_proportion:s is broken too: 0.5"]


def test_values_of_another_table_are_those_that_a_foreign_key_may_have() -> None:
    p = pipeline("relationships: {column: id, to: t.q, field: key}")
    request = Request("t.p", shape_of(p), checks_of(p), 50, 1, False, NOW, {"t.q.key": [11, 12]})
    rows: Any = generate(request, ENGINE).rows
    assert {row["id"] for row in rows} - {None} == {11, 12}
    broken: Any = generate(request, ENGINE, ["relationships:id=0.1"]).rows
    assert sum(row["id"] not in (None, 11, 12) for row in broken) == 5


@pytest.mark.parametrize(
    ("column", "keys", "known"),
    [
        ("s", [11, 12], None),
        ("s", [None, "a"], ["a"]),
        ("id", ["11", 12], [11, 12]),
        ("id", [11, "x"], None),
        ("id", [1.5], None),
        ("tn", ["2024-01-01 00:00:00+00:00"], None),
        ("flag", [0], None),
    ],
)
def test_keys_that_a_column_cannot_hold_are_left_out(column: str, keys: list[Any], known: list[Any] | None) -> None:
    p = pipeline(f"relationships: {{column: {column}, to: t.q, field: key}}")
    references = typed_references({"t.q.key": keys}, checks_of(p), shape_of(p))
    assert references == ({} if known is None else {"t.q.key": known})
    notes = generate(Request("t.p", shape_of(p), checks_of(p), 9, 1, False, NOW, references), ENGINE).notes
    refused = f"relationships:{column} was not considered: no values of t.q.key are known for {column}"
    assert notes == ([refused] if known is None else [])


def test_dates_that_a_transform_makes_decide_the_columns_that_it_reads() -> None:
    checks = ["accepted_range: {column: day_of, min: 2013-02-27, max: 2013-03-01}", "not_null: day_of"]
    schema = "year INT, month INT, day INT, n INT"
    more = "  transform: SELECT *, make_date(year, month, day) AS day_of, n * 2 AS twice FROM source\n"
    p = pipeline(*checks, "unique: twice", schema=schema, more=more)
    made = generated(p)
    assert {(row["year"], row["month"], row["day"]) for row in made.rows} == {
        (2013, 2, 27),
        (2013, 2, 28),
        (2013, 3, 1),
    }
    assert made.notes == ["unique:twice was not considered: the transform computes twice"]
    broken: list[Row] = list(generated(p, "accepted_range:day_of=0.1").rows)
    assert sum((row["month"], row["day"]) in ((2, 26), (3, 2)) for row in broken) == 12


def test_columns_without_a_schema_are_those_that_the_checks_name() -> None:
    p = pipeline(
        "not_null: id",
        "accepted_range: {column: x, min: 0.5}",
        "valid_email: {column: mail}",
        "unique: [id]",
        schema="",
    )
    assert shape_of(p).types == {"id": "long", "x": "double", "mail": "string"}
    assert generated(p, rows=20).rows[0].keys() == {"id", "x", "mail"}


def test_without_a_pipeline_there_are_three_columns() -> None:
    rows: Any = generated(None, rows=10).rows
    assert [type(rows[0][name]) for name in DEFAULT_SHAPE.types] == [int, str, float] or nulls(rows[:1], "my_col_0")
    assert list(rows[0]) == ["my_col_0", "my_col_1", "my_col_2"]


def test_types_of_a_schema() -> None:
    types = {each.name: each.type for each in columns_of_schema(SCHEMA)}
    assert TableShape(columns_of_schema(SCHEMA), "").types == types
    assert (types["dec"], types["ts"], types["tn"], types["tiny"]) == (
        "decimal(9, 2)",
        "timestamptz",
        "timestamp",
        "int",
    )
    with pytest.raises(InvalidPipeline, match="'a' is array, and no values"):
        columns_of_schema("a ARRAY<INT>")


def test_rows_are_as_many_as_the_checks_allow() -> None:
    assert default_rows(checks_of(pipeline("row_count: {min: 5000}"))) == 5000
    assert default_rows(checks_of(pipeline("row_count: {min: 1, max: 9}"))) == 9
