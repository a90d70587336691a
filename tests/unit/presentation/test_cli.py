"""The output of the command line: stages and verdicts in order, each once, and the report of a run."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from cli.quarantine import commands as quarantine
from cli.run.list_runs import _state
from cli.run.report import print_report
from cli.run.watch import ShownStatus, absence_note
from cli.unknown_command import QUARANTINE_COMMANDS, unknown_command
from devstack.stack import ROOT
from runtime.interpreter import interpreter_problem
from sluice.checks.verdicts import CheckResult
from sluice.contracts.run import Outcome, RunResult, RunStatus, Stage, StageEvent
from sluice.contracts.table_changes import TableChange
from sluice.contracts.table_diffs import ChangedCell, ChangedRow
from sluice.presentation.cells import shown_value
from sluice.presentation.checks import hint_at_combinations
from sluice.presentation.diffs import changed_cells

CHECK = CheckResult(
    table="t.a", check="row_count", columns=[], scope="added", verdict="pass", observed=2, expected="at least 1"
)


def status(*stages: Stage, checks: list[CheckResult] | None = None) -> RunStatus:
    events = [StageEvent(stage=stage, at=f"2026-01-01T00:00:{second:02}") for second, stage in enumerate(stages)]
    result = RunResult(run_id="r", workflow_id="w", pipeline="p", checks=checks or [])
    return RunStatus(stage=stages[-1], events=events, result=result)


def shown(*statuses: RunStatus) -> list[str]:
    output = io.StringIO()
    lines = ShownStatus(Console(file=output, width=140))
    for each in statuses:
        lines.update(each)
    return [line.split()[-1] if line[:1].isdigit() else line.split()[0] for line in output.getvalue().splitlines()]


def test_verdicts_are_printed_after_the_audit_and_before_what_follows_it() -> None:
    all_at_once = status("opening", "writing", "auditing", "publishing", "ended", checks=[CHECK])
    assert shown(all_at_once) == ["opening", "writing", "auditing", "pass", "publishing", "ended"]


def test_verdicts_that_are_known_later_are_printed_before_the_next_stage() -> None:
    early, late = status("opening", "auditing"), status("opening", "auditing", "publishing", checks=[CHECK])
    assert shown(early, late, late) == ["opening", "auditing", "pass", "publishing"]


def test_a_second_audit_prints_only_what_is_new() -> None:
    other = CHECK.model_copy(update={"check": "unique"})
    first = status("auditing", "rebasing", checks=[CHECK])
    second = status("auditing", "rebasing", "auditing", "ended", checks=[CHECK, other])
    assert shown(first, second) == ["auditing", "pass", "rebasing", "auditing", "pass", "ended"]


def test_a_missing_worker_is_named_once_and_so_is_its_return() -> None:
    output = io.StringIO()
    lines = ShownStatus(Console(file=output, width=140))
    for no_worker in (False, True, True, False, False):
        lines.print_absence(absence_note("orders", "") if no_worker else "")
    absent, back = output.getvalue().splitlines()
    assert absent.strip() == (
        "no worker answers: start one with `make up` or `python worker.py`; the run goes on when there is one"
    )
    assert back.strip() == "a worker answers again"


def test_checks_of_each_column_hint_at_a_check_of_the_columns_together() -> None:
    """A list of columns is one check for each column, and not one for all of them."""
    passed = CHECK.model_copy(update={"check": "unique", "columns": ["day"]})
    failed = passed.model_copy(update={"columns": ["shop"], "verdict": "fail"})
    assert hint_at_combinations([passed, failed]) == [
        f"{CHECK.table}: `unique` checks each column by itself. If only the values together are unique, write "
        "`unique_combination_of_columns: [day, shop]`"
    ]
    assert hint_at_combinations([passed, passed]) == hint_at_combinations([failed]) == []


@pytest.mark.parametrize(
    ("pipeline", "outcome", "hinted"),
    [("p-rehearsal", "discarded", True), ("p-rehearsal", "failed", False), ("p", "discarded", False)],
)
def test_a_rehearsal_that_ends_discarded_is_no_failure(pipeline: str, outcome: Outcome, *, hinted: bool) -> None:
    result = RunResult(run_id="r", workflow_id="w", pipeline=pipeline, outcome=outcome, reason="the audit failed")
    output = io.StringIO()
    print_report(result, "http://ui", Console(file=output, width=140))
    assert ("it ends like this if the checks catch them: nothing is wrong" in output.getvalue()) == hinted
    assert (_state({"outcome": outcome, "pipeline": pipeline}) == f"{outcome}, as rehearsed") == hinted


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (["a", "b"], "a, b"), ([], "[]"), ([[1, None], []], "[1, null], []"),
        ({"x": True, "y": ["z"]}, "x: true, y: [z]"),
        (None, "null"), (False, "false"), ("it's", "it's"), (1.5, "1.5"),
    ],
)  # fmt: skip
def test_values_are_not_shown_as_python_writes_them(value: object, shown: str) -> None:
    assert shown_value(value) == shown
    row = ChangedRow(key={"id": 1}, cells={"tags": ChangedCell(before=value, after=None)})
    assert changed_cells(row) == [("tags", f"{shown} → null")]


def test_the_report_uses_standard_headings() -> None:
    change = TableChange(operation="append", added_rows=2, distribution="hash")
    result = RunResult(
        run_id="r", workflow_id="w", pipeline="p", outcome="published", audited_hash="abc", tables={"t.a": change},
        checks=[CHECK], timings={"writing": 1.5, "cleaning up": 0.25, "total": 2.0},
    )  # fmt: skip
    output = io.StringIO()
    print_report(result, "http://ui", Console(file=output, width=140))
    text = output.getvalue()
    assert "distribution" in text and "audited hash  abc" in text
    assert "duration  2.0 s: writing 1.5 s, cleaning up 0.2 s" in text


def test_the_report_fits_on_a_terminal_of_80_columns() -> None:
    check = CHECK.model_copy(
        update={"table": "nyc.flights", "expected": "one of EWR, JFK, LGA", "answered_by": "duckdb"}
    )
    change = TableChange(operation="append", added_rows=336_776, total_rows=336_776, created=True)
    result = RunResult(
        run_id="r", workflow_id="w", pipeline="p", outcome="published", tables={"nyc.flights": change}, checks=[check]
    )
    output = io.StringIO()
    print_report(result, "http://ui", Console(file=output, width=80))
    text = output.getvalue()
    assert "append, created  336,776" in text and "one of EWR," in text
    assert "duckdb" in text and "…" not in text


@pytest.mark.parametrize(("program", "name"), [("run_workflow.py", "sluice"), ("worker.py", "worker")])
def test_a_python_without_the_packages_is_told_in_one_line_which_one_has_them(program: str, name: str) -> None:
    isolated = [sys.executable, "-I", "-S", "-c"]  # without the packages of this environment
    start = f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); runpy.run_path({program!r}, run_name='__main__')"
    ended = subprocess.run([*isolated, start], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert ended.stderr.startswith(f"{name}: ") and ".venv/bin/python" in ended.stderr


def test_a_python_that_is_too_old_is_told_the_version_that_is_needed() -> None:
    assert interpreter_problem((3, 10), has_packages=True) == ""
    assert "this is Python 3.9, and Sluice needs 3.10 or later" in interpreter_problem((3, 9), has_packages=False)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("lst", "there is no command or pipeline file 'lst' (did you mean 'list'?)"),
        ("statsu", "there is no command or pipeline file 'statsu' (did you mean 'status'?)"),
        ("xyzzy", "there is no command or pipeline file 'xyzzy'; `--help` lists the commands"),
        ("release", "there is no command 'release': it is `quarantine release RUN`"),
        ("relase", "there is no command or pipeline file 'relase' (did you mean 'quarantine release'?)"),
    ],
)
def test_a_first_word_that_is_no_command_is_answered_with_the_one_that_was_meant(word: str, message: str) -> None:
    ended = subprocess.run(
        [sys.executable, "run_workflow.py", word, "library-loans"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (2, f"sluice: {message}\n")


def test_files_and_options_are_no_misspelt_commands(tmp_path: Path) -> None:
    (tmp_path / "release").touch()
    for word in ("lst.yml", "pipelines/lst", "--detach", str(tmp_path / "release")):
        assert unknown_command(word, ["list"]) == ""


def test_the_commands_of_the_quarantine_are_those_that_it_has() -> None:
    names = {each.name or getattr(each.callback, "__name__", "") for each in quarantine.app.registered_commands}
    assert names - {"list"} == QUARANTINE_COMMANDS
