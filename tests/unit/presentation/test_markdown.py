"""The report in Markdown: tables of the changes and of the verdicts, and no row."""

from sluice.checks.verdicts import CheckResult
from sluice.contracts.run import RunResult
from sluice.contracts.table_changes import RowCounts, TableChange
from sluice.presentation.markdown import markdown_report

LINK = "http://127.0.0.1:8233/namespaces/default/workflows/orders-1-check/r"
ROWS = RowCounts(inserted=50, updated=50, rewritten=92, known_by="keys of the input")


def _check(verdict: str, **more: object) -> CheckResult:
    return CheckResult.model_validate(
        {"table": "t.orders", "check": "not_null", "columns": ["id"], "verdict": verdict, "observed": 0, **more}
    )


def _report(**more: object) -> RunResult:
    return RunResult.model_validate({"run_id": "r", "workflow_id": "orders-1-check", "pipeline": "orders", **more})


def test_a_report_of_a_check() -> None:
    change = TableChange(operation="overwrite", added_rows=192, deleted_rows=142, total_rows=250, rows=ROWS)
    worst = _check("fail", columns=["b"], observed=3, expected="no bad row", failed_rows=3, sample=[{"b": "secret"}])
    report = markdown_report(
        _report(
            outcome="discarded",
            reason="the audit failed",
            tables={"t.orders": change},
            checks=[_check("pass"), worst],
            attempts=1,
        ),
        LINK,
    )
    assert report.splitlines() == [
        "## orders: discarded",
        "",
        "the audit failed",
        "",
        "| table | operation | rows | rows on the branch |",
        "|---|---|---|---:|",
        "| t.orders | overwrite | 50 inserted, 50 updated (92 rewritten unchanged) | 250 |",
        "",
        "Not merged: 1 table: 50 rows added, 50 updated",
        "",
        "Audit: 1 pass, 1 fail",
        "",
        "| verdict | table | check | observed | expected | answered by |",
        "|---|---|---|---|---|---|",
        "| **fail** | t.orders | not_null(b) | 3 bad rows | no bad row |  |",
        "| pass | t.orders | not_null(id) | 0 |  |  |",
        "",
        f"- run: [orders-1-check]({LINK})",
        "- main: unchanged by this run",
        "- attempts: 1",
    ]


def test_values_and_markup_of_data_stay_out() -> None:
    largest = _check("fail", check="column_max", observed="meier", expected="at most <b>x</b> | y \\d [a](b) @ana")
    (row,) = [line for line in markdown_report(_report(checks=[largest]), LINK).splitlines() if "**fail**" in line]
    assert "meier" not in row and "<b>" not in row
    assert r"\| y \\d \[a\](b) &#64;ana" in row


def test_the_rows_of_a_run_that_published_are_those_of_main() -> None:
    change = TableChange(operation="append", added_rows=2, total_rows=250)
    for outcome, heading in (("published", "rows after"), ("quarantined", "rows on the branch")):
        report = markdown_report(_report(outcome=outcome, tables={"t.orders": change}), LINK)
        assert f"| table | operation | rows | {heading} |" in report
