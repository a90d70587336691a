"""Importing from SodaCL: the tables that its queries, headers and references name."""

import re

import pytest

from importing.imported import ImportedChecks, SourceText
from importing.project import Files, ImportOptions, import_files, sort_files


def imported(text: str) -> ImportedChecks:
    files = Files(soda=[SourceText("checks.yml", text)])
    return import_files(files, ImportOptions(namespace="shop"), lenient=False)


@pytest.mark.parametrize(
    "template",
    [
        "SELECT * FROM {o} WHERE a IS DISTINCT FROM b",
        "SELECT EXTRACT(YEAR FROM d) FROM {o}",
        "WITH late AS (SELECT * FROM {o}) SELECT * FROM LATE",
        "WITH o AS (SELECT * FROM {o}) SELECT * FROM o",
        "SELECT 'from p' FROM {o}, {p} JOIN x.q USING (id)",
        "SELECT 1 FROM range(3) WHERE 1 IN (SELECT a FROM {o})",
    ],
)
def test_only_tables_of_a_query_get_the_namespace(template: str) -> None:
    query, qualified = template.replace("{", "").replace("}", ""), re.sub(r"\{(\w+)\}", r"`shop`.`\1`", template)
    result = imported(
        f'checks for o:\n  - failed rows: {{fail query: "{query}"}}\n  - m = 0:\n      m query: "{query}"\n'
    )
    assert not result.left
    rows, metric = result.checks["shop.o"]
    assert rows["sql"]["query"] == qualified
    assert f"SELECT ({qualified}) AS observed" in metric["sql"]["query"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ('SELECT * FROM "o"', '"o" is a literal in Spark SQL: name the dialect with --dialect'),
        ("SELECT * FROM o WHERE a > (1", "'SELECT * FROM o WHERE a > (1' does not parse as one query of Spark SQL"),
        ("SELECT * FROM o; SELECT 1", "'SELECT * FROM o; SELECT 1' does not parse as one query of Spark SQL"),
    ],
)
def test_a_query_whose_tables_are_not_known_is_listed(query: str, reason: str) -> None:
    result = imported(f"checks for o:\n  - failed rows:\n      fail query: |\n        {query}\n")
    assert [each.reason for each in result.left] == [reason]
    assert not result.checks


_BOTH = "mart.customers and raw.customers would all be shop.customers: import each schema with a namespace of its own"


def test_two_schemas_are_not_put_on_one_table() -> None:
    result = imported(
        "checks for raw.customers:\n  - row_count > 0\nchecks for mart.customers:\n  - row_count > 1\n"
        'checks for mart."orders":\n  - row_count > 2\n  - row_count same as raw.customers\n'
        "  - values in (a) must exist in raw.orders (b)\n  - values in (c) must exist in mart.items (d)\n"
    )
    orders = "mart.orders and raw.orders would all be shop.orders: import each schema with a namespace of its own"
    assert [(each.line, each.reason) for each in result.left] == [(2, _BOTH), (4, _BOTH), (7, _BOTH), (8, orders)]
    assert result.checks == {
        "shop.orders": [
            {"row_count": {"min": 3, "scope": "table"}},
            {"relationships": {"column": "c", "to": "shop.items", "field": "d", "scope": "table"}},
        ]
    }


def test_two_schemas_of_which_no_checks_are_imported_are_not_put_on_one_table_either() -> None:
    result = imported("checks for o:\n  - row_count same as raw.customers\n  - row_count same as mart.customers\n")
    assert [each.reason for each in result.left] == [_BOTH, _BOTH]


def test_the_same_table_of_another_data_source_is_in_a_namespace_of_its_own() -> None:
    result = imported("checks for mart.customers:\n  - row_count same as customers in archive\n")
    assert result.checks["shop.customers"] == [{"equal_row_count": {"to": "archive.customers", "scope": "table"}}]


def test_configurations_are_those_of_the_data_set_with_its_schema() -> None:
    result = imported(
        "configurations for raw.o:\n  missing values for a: [none]\nconfigurations for other.o:\n"
        "  missing values for b: [none]\nchecks for raw.o:\n  - missing_count(a) = 0\n  - missing_count(b) = 0\n"
    )
    expression = "NOT coalesce(`a` IS NULL OR `a` IN ('none'), TRUE)"
    assert result.checks["shop.o"] == [
        {"expression_is_true": {"expression": expression, "scope": "table"}},
        {"not_null": {"column": "b", "scope": "table"}},
    ]


def test_a_table_whose_name_depends_on_the_scan_is_listed() -> None:
    result = imported(
        "checks for dim_${env}:\n  - row_count > 0\n"
        'for each dataset D:\n  datasets: ["${ env }_a"]\n  checks:\n    - row_count > 0\n'
    )
    assert not result.checks
    assert [each.reason for each in result.left] == ["${env} is set when Soda scans", "${ env } is set when Soda scans"]


@pytest.mark.parametrize(
    ("section", "listed"),
    [
        ("datasets: []\n  checks: [row_count > 0]", [("for each dataset D", "it does not list its data sets")]),
        ("datasets: {a: 1}\n  checks: [row_count > 0]", [("for each dataset D", "it does not list its data sets")]),
        (
            'datasets: ["a%"]\n  checks: [row_count > 0, row_count > 1]',
            [(f"row_count > {n}", "the tables of 'a%' are not known here: name them") for n in (0, 1)],
        ),
        (
            'datasets: ["a%"]\n  checks: {row_count: 1}',
            [("for each dataset D", "the tables of 'a%' are not known here: name them")],
        ),
        ("datasets: [a]\n  checks: {row_count: 1}", [("shop.a: the checks", "they are not a list")]),
    ],
)
def test_a_section_for_several_data_sets_does_not_vanish(section: str, listed: list[tuple[str, str]]) -> None:
    result = imported(f"for each dataset D:\n  {section}\n")
    assert [(each.test, each.reason) for each in result.left] == listed


_CONTRACT = "dataset: {}\ncolumns:\n- name: a\n  checks:\n  - type: no_missing_values\n- odd\nchecks:\n- row_count:\n"


@pytest.mark.parametrize(
    ("text", "lines", "tests"),
    [
        (_CONTRACT.format("d/s/orders"), [8, 5], ["shop.orders: row_count", "shop.orders.a: no_missing_values"]),
        ("dataset: orders\ncolumns: 1\n# checks:\n", [1], ["shop.orders: the file"]),
        ("  dataset: orders\n  checks:\n  - schema:\n", [3], ["shop.orders: schema"]),
    ],
)
def test_a_data_contract_is_listed(text: str, lines: list[int], tests: list[str]) -> None:
    files = sort_files([SourceText("contract.yml", text), SourceText("other.yml", "dataset: a\ncolumns: [b]\n")])
    result = import_files(files, ImportOptions(namespace="shop"))
    assert [each.line for each in result.left] == lines
    assert [each.test for each in result.left] == tests
    assert {each.reason for each in result.left} == {"a data contract of Soda is not read"}
    assert [each.path for each in files.others] == ["other.yml"]


def test_sections_of_sodacl_beside_a_data_contract_are_read() -> None:
    result = imported(_CONTRACT.format("orders") + "owner: me\nchecks for orders:\n- row_count > 0\n")
    assert result.checks == {"shop.orders": [{"row_count": {"min": 1, "scope": "table"}}]}
    assert len(result.left) == 2


def test_an_indented_file_is_read() -> None:
    files = sort_files([SourceText("soda/checks.yml", "# note\n  checks for o:\n    - row_count > 0\n")])
    result = import_files(files, ImportOptions(namespace="shop"))
    assert result.checks == {"shop.o": [{"row_count": {"min": 1, "scope": "table"}}]}
