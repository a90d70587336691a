"""Importing from SodaCL: which tables its queries, headers and references name."""

import re

import pytest

from sluice.importing.imported import ImportedChecks, SourceText
from sluice.importing.project import Files, ImportOptions, import_files


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
