"""Importing from SodaCL."""

from typing import Any

import pytest

from importing.imported import ImportedChecks, SourceText
from importing.project import Files, ImportOptions, import_files
from sluice.errors import InvalidPipeline


def imported(text: str, **options: Any) -> ImportedChecks:
    files = Files(soda=[SourceText("checks.yml", text)])
    return import_files(files, ImportOptions(**{"namespace": "shop", **options}), lenient=False)


def of_check(written: str) -> list[dict[str, Any]]:
    result = imported(f"checks for orders:\n  - {written}\n")
    assert not result.left, result.left
    return result.checks["shop.orders"]


def reason_of(written: str) -> str:
    result = imported(f"checks for orders:\n  - {written}\n")
    assert not result.checks
    return result.left[0].reason


@pytest.mark.parametrize(
    ("written", "check"),
    [
        ("row_count > 0", {"row_count": {"min": 1, "scope": "table"}}),
        ("row_count between 10 and 20", {"row_count": {"min": 10, "max": 20, "scope": "table"}}),
        ("missing_count(id) = 0", {"not_null": {"column": "id", "scope": "table"}}),
        ("missing_count(id) < 5", {"not_null": {"column": "id", "fail_if": ">= 5", "scope": "table"}}),
        ("missing_percent(id) <= 2.5%", {"not_null": {"column": "id", "fail_if": "> 2.5%", "scope": "table"}}),
        ("duplicate_count(id) = 0", {"unique": {"column": "id", "scope": "table"}}),
        (
            "avg(amount) between 1 and 5.5",
            {"mean_in_range": {"column": "amount", "min": 1, "max": 5.5, "scope": "table"}},
        ),
        ("max(amount) <= 100", {"max_in_range": {"column": "amount", "max": 100, "scope": "table"}}),
        ("freshness(at) < 1d6h", {"freshness": {"column": "at", "max_age": "108000s", "scope": "table"}}),
        (
            "values in (country) must exist in countries (code)",
            {"relationships": {"column": "country", "to": "shop.countries", "field": "code", "scope": "table"}},
        ),
        ("row_count same as raw_orders", {"equal_row_count": {"to": "shop.raw_orders", "scope": "table"}}),
        ("row_count same as orders in staging", {"equal_row_count": {"to": "staging.orders", "scope": "table"}}),
        (
            "schema: {fail: {when required column missing: [id, day]}}",
            {"column_exists": {"columns": ["id", "day"]}},
        ),
        (
            "schema: {warn: {when forbidden column present: [pii_%]}}",
            {"column_absent": {"columns": ["pii_*"], "severity": "warn"}},
        ),
        (
            "schema: {fail: {when wrong column index: {id: 0}}}",
            {"column_exists": {"columns": ["id"], "position": 1}},
        ),
        ("schema: {warn: {when schema changes: any}}", {"schema_drift": {"severity": "warn"}}),
        (
            "failed rows: {fail condition: amount < 0}",
            {"expression_is_true": {"expression": "NOT coalesce(amount < 0, FALSE)", "scope": "table"}},
        ),
    ],
)  # fmt: skip
def test_a_check_becomes_the_check_of_the_same_meaning(written: str, check: dict[str, Any]) -> None:
    assert of_check(written) == [check]


def test_types_of_columns() -> None:
    checks = of_check("schema: {fail: {when wrong column type: {id: bigint, at: timestamp, note: varchar}}}")
    assert [each["column_type"]["type"] for each in checks] == ["long", ["timestamp", "timestamptz"], "string"]


def test_an_open_bound_of_a_decimal_metric_is_kept_exactly() -> None:
    (check,) = of_check("avg(amount) > 5")
    assert check["sql"]["query"] == (
        "SELECT * FROM (SELECT avg(`amount`) AS observed FROM `shop`.`orders` AS rows) AS measured "
        "WHERE NOT (coalesce(observed > 5, FALSE))"
    )
    (check,) = of_check("avg(amount) between (1 and 5)")
    assert "coalesce(observed > 1 AND observed < 5, FALSE)" in check["sql"]["query"]


def test_validity_leaves_out_what_is_missing() -> None:
    (check,) = of_check("invalid_count(size) = 0: {valid values: [S, M], missing values: ['', none]}")
    assert check["expression_is_true"]["expression"] == (
        "coalesce(`size` IS NULL OR `size` IN ('', 'none'), TRUE) OR coalesce((`size` IN ('S', 'M')), FALSE)"
    )


@pytest.mark.parametrize(
    ("setting", "condition"),
    [
        ("valid min: 3", "`size` >= 3"),
        ("valid max length: 3", "length(`size`) <= 3"),
        ("valid regex: '[a-z]+'", "`size` RLIKE '[a-z]+'"),
        ("invalid values: [x]", "`size` NOT IN ('x')"),
        ("invalid regex: '[a-z]+'", "NOT `size` RLIKE '[a-z]+'"),
        ("valid regex: '^a|b$'", "`size` RLIKE '^a|b$'"),
        ("valid regex: 'cost\\$'", "`size` RLIKE 'cost\\\\$'"),
        ("valid min: 2008-01-01", "`size` >= DATE '2008-01-01'"),
    ],
)
def test_what_is_valid(setting: str, condition: str) -> None:
    (check,) = of_check(f"invalid_percent(size) < 1%: {{{setting}, missing values: [none]}}")
    assert condition in check["expression_is_true"]["expression"]
    assert check["expression_is_true"]["fail_if"] == ">= 1%"


@pytest.mark.parametrize(
    ("settings", "check"),
    [
        ("valid values: [S, M]", {"accepted_values": {"values": ["S", "M"]}}),
        ("invalid values: [S]", {"not_accepted_values": {"values": ["S"]}}),
        ("valid min: 1, valid max: 2.5", {"accepted_range": {"min": 1, "max": 2.5}}),
        ("valid min length: 2", {"string_length": {"min": 2}}),
        ("valid format: email", {"valid_format": {"format": "email"}}),
        ("valid regex: 'a+'", {"match_regex": {"pattern": "a+"}}),
    ],
)
def test_one_setting_of_validity_is_a_check_of_values(settings: str, check: dict[str, dict[str, Any]]) -> None:
    ((name, parameters),) = check.items()
    assert of_check(f"invalid_count(size) < 3: {{{settings}}}") == [
        {name: {"column": "size", **parameters, "fail_if": ">= 3", "scope": "table"}}
    ]


def test_formats_are_of_whole_values() -> None:
    (check,) = of_check("invalid_count(x) = 0: {valid format: positive integer}")
    assert check["match_regex"]["pattern"] == r"^\s*(?:\+?\s*\d+)\s*$"
    assert "the format 'iban' has no equivalent" in reason_of("invalid_count(x) = 0: {valid format: iban}")


def test_alerts_are_a_check_each() -> None:
    checks = of_check("missing_percent(size): {warn: when > 5%, fail: when between 10 and 100, name: sizes}")
    assert [(each["sql"]["name"], each["sql"].get("severity")) for each in checks] == [
        ("sizes", None),
        ("sizes", "warn"),
    ]
    assert "NOT (NOT coalesce(observed >= 10 AND observed <= 100, TRUE))" in checks[0]["sql"]["query"]


def test_a_filter_and_configurations_of_columns_hold_for_checks() -> None:
    result = imported(
        """
filter orders [daily]:
  where: day = current_date()
configurations for orders:
  valid values for size: [S, M]
checks for orders [daily]:
  - row_count > 0:
      filter: country = 'DE'
  - invalid_count(size) = 0
  - duplicate_count(id) = 0
checks for orders [hourly]:
  - row_count > 0
"""
    )
    checks = result.checks["shop.orders"]
    assert checks[0]["row_count"]["where"] == "(day = current_date()) AND (country = 'DE')"
    assert checks[1]["accepted_values"]["where"] == "day = current_date()"
    assert "WHERE day = current_date()" in checks[2]["sql"]["query"]
    assert [(each.line, each.reason) for each in result.left] == [
        (12, "the filter 'hourly' of orders is not in the file")
    ]


def test_metrics_of_ones_own() -> None:
    (check,) = of_check("margin > 5: {margin expression: avg(price - cost)}")
    assert "SELECT avg(price - cost) AS observed FROM `shop`.`orders` AS rows" in check["sql"]["query"]
    (check,) = of_check("ages = 0: {ages query: SELECT count(*) FROM orders o JOIN people p ON o.id = p.id}")
    assert "FROM `shop`.`orders` o JOIN `shop`.`people` p" in check["sql"]["query"]


def test_failed_rows_of_a_query() -> None:
    (check,) = of_check("failed rows: {name: No debt, fail query: SELECT * FROM orders WHERE a < 0;}")
    assert check == {"sql": {"name": "No debt", "query": "SELECT * FROM `shop`.`orders` WHERE a < 0"}}


def test_several_columns() -> None:
    (check,) = of_check("duplicate_count(id, day) = 0")
    assert check["unique_combination_of_columns"]["where"] == "`id` IS NOT NULL AND `day` IS NOT NULL"
    (check,) = of_check("values in (a, b) must exist in other (c, d)")
    assert "ON rows.`a` = theirs.`c` AND rows.`b` = theirs.`d`" in check["sql"]["query"]


def test_checks_for_each_of_several_data_sets() -> None:
    result = imported("for each dataset T:\n  datasets: [a, b, log_%]\n  checks: [row_count > 0]\n")
    assert list(result.checks) == ["shop.a", "shop.b"]
    assert "the tables of 'log_%' are not known here" in result.left[0].reason


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("anomaly detection for row_count", "compares with Soda's own history"),
        ("change for row_count < 5", "compares with Soda's own history"),
        ("row_count", "the check has no threshold"),
        ("missing_count = 0", "its column is missing"),
        ("frobnicate(a) = 0", "the metric 'frobnicate' has no equivalent here"),
        ("row_count > 0: {samples: 3}", "'samples' has no equivalent here"),
        ("invalid_count(a) = 0", "nothing says which values are valid"),
        ("row_count > ${LIMIT}", "${LIMIT} is set when Soda scans"),
        ("a + b = c", "is not a check that is known"),
        ("schema: {fail: {when phase of moon: [x]}}", "'when phase of moon' has no equivalent"),
        ("failed rows: {samples limit: 3}", "neither `fail condition` nor `fail query` is given"),
        ("failed rows: {fail query: DROP TABLE orders}", "query: "),
    ],
)
def test_what_has_no_equivalent_is_listed_with_the_reason(written: str, reason: str) -> None:
    assert reason in reason_of(written)


def test_sections_that_are_no_checks() -> None:
    result = imported(
        "profile columns: {columns: [orders.%]}\nchecks for orders:\n  - row_count > 0\nautomated x: {}\n"
    )
    assert result.carried_over == 1
    assert [(each.line, each.test) for each in result.left] == [(4, "automated x")]


def test_a_namespace_is_asked_for() -> None:
    with pytest.raises(InvalidPipeline, match="--namespace shop"):
        imported("checks for orders: [row_count > 0]", namespace=None)
