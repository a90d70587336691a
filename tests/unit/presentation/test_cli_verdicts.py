"""Verdicts in a terminal: first those that need a person, then one line for each passed check."""

import io
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from cli.context import CommandContext
from cli.run.report import print_report, report_result
from cli.run.watch import ShownStatus
from sluice.checks.verdicts import CheckResult
from sluice.contracts.run import Outcome, RunResult, RunStatus
from sluice.contracts.table_changes import TableChange
from sluice.settings import Settings

LONG = "each loan has a member who was registered on the day that the loan began, or was a guest of the library"


def check(verdict: str, title: str, index: int = 0) -> CheckResult:
    return CheckResult.model_validate({
        "table": "library.loans_of_all_branches", "index": index, "check": "sql", "columns": [], "name": title,
        "verdict": verdict, "observed": 0, "expected": "no row is returned by the query", "answered_by": "duckdb",
    })  # fmt: skip


def result_of(*checks: CheckResult) -> RunResult:
    return RunResult(run_id="r", workflow_id="w", pipeline="p", outcome="published", checks=list(checks))


def printed(result: RunResult, width: int) -> list[str]:
    output = io.StringIO()
    print_report(result, "http://ui", Console(file=output, width=width, force_terminal=True, color_system=None))
    return [line.rstrip() for line in output.getvalue().splitlines()]


def verdicts(lines: list[str]) -> list[str]:
    known = ("pass", "warn", "fail", "error")
    return [line.split()[0] for line in lines if line.startswith(" " * 10) and line.split()[0] in known]


@pytest.mark.parametrize("width", [80, 100])
def test_where_a_table_would_fold_what_blocks_is_first_and_nothing_is_cut(width: int) -> None:
    lines = printed(result_of(check("pass", LONG), check("warn", "b"), check("pass", "c"), check("fail", LONG)), width)
    assert verdicts(lines) == ["fail", "warn", "pass", "pass"]
    text = " ".join(" ".join(lines).split())
    assert f"fail library.loans_of_all_branches sql({LONG[:20]}" in text
    assert text.count("no row is returned by the query") == 4
    assert max(map(len, lines)) <= width


def test_of_many_checks_that_pass_the_number_is_shown() -> None:
    many = [check("pass", f"{number} {LONG}", number) for number in range(21)]
    lines = printed(result_of(*many, check("fail", "b", 30)), 80)
    assert verdicts(lines) == ["fail", "pass"]
    assert "          pass  21 checks; --json lists all" in lines


def test_a_run_that_is_followed_shows_them_in_the_same_way_and_once() -> None:
    many = [check("pass", f"{number} {LONG}", number) for number in range(21)]
    result = result_of(*many, check("fail", "b", 30))
    output = io.StringIO()
    shown = ShownStatus(Console(file=output, width=80, force_terminal=True, color_system=None))
    for _ in range(2):
        shown.update(RunStatus(stage="auditing", events=[], result=result))
    assert verdicts(output.getvalue().splitlines()) == ["fail", "pass"]
    assert shown.has_shown(result.checks)


def test_bad_rows_are_counted_as_rows() -> None:
    bad = CheckResult(
        table="t.a", check="not_null", columns=["id"], verdict="fail", observed=3, failed_rows=3, expected="no nulls"
    )
    digest = bad.model_dump_json()
    assert "3 bad rows" in " ".join(printed(result_of(bad), 120)) and bad.model_dump_json() == digest
    one = bad.model_copy(update={"observed": 1, "failed_rows": 1})
    assert "1 bad row " in " ".join(printed(result_of(one), 120))
    counted = bad.model_copy(update={"check": "row_count", "failed_rows": None})
    assert "bad rows" not in " ".join(printed(result_of(counted), 120))


@pytest.mark.parametrize(
    ("outcome", "released", "run"),
    [
        ("quarantined", "", "r"),
        ("published", "", ""),
        ("discarded", "", ""),
        ("discarded", "earlier", "earlier"),
        ("published", "earlier", ""),
        ("failed", "earlier", ""),
    ],
)
def test_the_report_ends_with_what_can_be_done_about_quarantined_rows(outcome: str, released: str, run: str) -> None:
    lines = reported(outcome, released)
    if run:
        assert lines[-4:] == [
            f"to look  python run_workflow.py quarantine show {run}",
            f"to release  python run_workflow.py quarantine release {run}",
            f'to repair  python run_workflow.py quarantine repair {run} --sql "UPDATE ..."',
            f"to discard  python run_workflow.py quarantine discard {run}",
        ]
    else:
        assert not any("quarantine" in line for line in lines[3:])


def reported(outcome: str, released: str = "", branch: str = "quarantine/p/d/r") -> list[str]:
    """Return the lines of the report of a run with a failed check."""
    tables = {"t.a": TableChange(operation="append", added_rows=2)}
    result = RunResult(
        run_id="r", workflow_id="w", pipeline="p", outcome=cast(Outcome, outcome), reason="the reason", branch=branch,
        tables=tables, checks=[check("fail", "a")], main_before="m",
    )  # fmt: skip
    output = io.StringIO()
    settings = Settings.of(sluice_page="http://page")
    shown: dict[str, Any] = {"as_json": False, "report": None, "link": lambda *_: "http://ui", "settings": settings}
    context = cast(CommandContext, SimpleNamespace(console=Console(file=output, width=140), **shown))
    report_result(context, result, released=released)
    return [line.strip() for line in output.getvalue().splitlines() if line]


def test_the_report_of_a_failed_run_begins_with_the_reason_and_the_branch_and_ends_with_what_to_do() -> None:
    lines = reported("failed")
    assert lines[:3] == ["failed  the reason", "main after  unchanged by this run", "branch  quarantine/p/d/r"]
    assert not any(line.startswith(("main", "branch")) for line in lines[3:])
    assert lines[-2:] == [
        "to look  python run_workflow.py quarantine show r",
        "to discard  python run_workflow.py quarantine discard r",
    ]
    assert reported("discarded", branch="")[2] == "branch  not kept"


def test_the_report_links_to_the_page_and_to_the_web_ui() -> None:
    lines = reported("published")
    assert {"page  http://page/runs/w/r", "Web UI  http://ui"} <= set(lines)


def test_a_run_that_published_names_the_checks_that_warned() -> None:
    lines = printed(result_of(check("warn", "b"), check("pass", "c")), 200)
    assert lines[-1].strip() == "warned  sql(b) of library.loans_of_all_branches"
    assert "warned" not in " ".join(printed(result_of(check("pass", "c")), 200))
