"""Samples of bad rows with times that Python cannot represent: the check is answered, and shows their text."""

from tests.harness.audited_table import Table, check_of, seen

ROWS = [
    "(1, TIMESTAMP '0001-01-01 00:00:00Z', DATE '0001-01-01', NULL)",
    "(2, TIMESTAMP '2024-01-01 05:00:00Z', NULL, NULL)",
    "(3, TIMESTAMP '+10000-01-01 05:00:00Z', DATE '+10000-12-31', TIMESTAMP_NTZ '+20000-12-31 23:59:59')",
]


def test_both_engines_show_bad_rows_of_any_year(table: Table) -> None:
    table.fill("id INT, at TIMESTAMP, day DATE, plain TIMESTAMP_NTZ", before=["(0, NULL, NULL, NULL)"], added=ROWS)
    check = check_of({"expression_is_true": {"expression": "id > 9 OR at IS NULL"}})
    shown = []
    for results in (table.by_duckdb([check]), table.by_spark([check])):
        (result,) = results
        assert result and seen(result) == ("fail", 3)
        shown.append(
            [[str(value).removeprefix("+").replace(".000000", "") for value in row.values()] for row in result.sample]
        )
    assert shown[0] == shown[1]
    assert shown[0][0] == ["1", "0001-01-01 00:00:00+00:00", "0001-01-01", "None"]
    assert shown[0][2] == ["3", "10000-01-01 05:00:00+00:00", "10000-12-31", "20000-12-31 23:59:59"]


def test_a_check_that_compares_such_a_time_has_no_answer_and_the_others_have(table: Table) -> None:
    table.fill("id INT, at TIMESTAMP, day DATE, plain TIMESTAMP_NTZ", before=["(0, NULL, NULL, NULL)"], added=ROWS)
    compared = [{"max_in_range": {"column": name, "max": "2030-01-01"}} for name in ("at", "day", "plain")]
    checks = [
        check_of(each) for each in ({"not_null": "id"}, *compared, {"freshness": {"column": "day", "max_age": "1d"}})
    ]
    assert table.by_metadata(checks)[0]
    for results in (table.by_duckdb(checks), table.by_spark(checks)):
        first, *others = [each for each in results if each]
        assert seen(first) == ("pass", 0)
        assert [each.verdict for each in others] == ["error"] * 4
        assert all("it has no answer: '" in each.message and "0000-" in each.message for each in others)
