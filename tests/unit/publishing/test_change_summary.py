"""The summary of what a run changes: its totals, and the same sentence in every report."""

import io
import json

import pytest
from rich.console import Console

from cli.run.report import print_report
from sluice.contracts.run import Notification, RunResult, RunStatus
from sluice.contracts.table_changes import ChangeSummary, RowCounts, TableChange
from sluice.pipeline.publish_options import PublishOptions
from sluice.presentation.changes import describe_change, describe_rows_after, describe_summary
from sluice.presentation.markdown import markdown_report
from sluice.presentation.web_ui import details
from sluice.publishing.change_summary import summarize_changes
from sluice.publishing.rollback import restored_change
from tests.harness.slack import blocks

NEW = TableChange(operation="append", added_rows=1_000, created=True)
ADDED = TableChange(operation="append", added_rows=200)
MERGED = TableChange(
    operation="overwrite",
    added_rows=60,
    deleted_rows=55,
    rows=RowCounts(inserted=0, updated=10, removed=5, rewritten=45, known_by="rows compared"),
)
REPLACED = TableChange(
    operation="overwrite",
    added_rows=400,
    deleted_rows=365,
    rows=RowCounts(inserted=400, replaced=365, known_by="replacement"),
)
COMPACTED = TableChange(operation="replace", added_rows=250, deleted_rows=250, added_files=1, removed_files=9)
UNKNOWN = TableChange(operation="overwrite", added_rows=200, deleted_rows=200)
BY_VALUE = TableChange(operation="overwrite", added_rows=5, deletes_by_value=True)


def result(tables: dict[str, TableChange], **more: object) -> RunResult:
    summary = summarize_changes(tables) if tables else None
    return RunResult(run_id="r", workflow_id="w", pipeline="p", tables=tables, summary=summary).model_copy(update=more)


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        (
            {"a.new": NEW, "a.added": ADDED, "a.merged": MERGED},
            "3 tables: 1,200 rows added, 10 updated, 5 removed; new: a.new",
        ),
        ({"a.x": ADDED.model_copy(update={"added_rows": 1})}, "1 table: 1 row added"),
        ({"a.x": TableChange(operation="delete", deleted_rows=30)}, "1 table: 30 rows removed"),
        ({"a.x": REPLACED}, "1 table: 400 rows added, 365 replaced"),
        ({"a.x": COMPACTED}, "1 table: no row changed"),
        ({"a.x": TableChange(operation="alter")}, "1 table: no row changed"),
        ({"a.x": UNKNOWN}, "1 table: changed; rows not counted: a.x"),
        ({"a.x": UNKNOWN, "a.y": BY_VALUE, "a.z": ADDED}, "3 tables: 200 rows added; rows not counted: a.x, a.y"),
        (
            {"a.x": ADDED, "a.x__quarantine": NEW},
            "1 table: 200 rows added; new: a.x__quarantine; 1,000 bad rows quarantined",
        ),
        (
            {"a.x": ADDED, "a.x__quarantine": TableChange(operation="delete", deleted_rows=1)},
            "1 table: 200 rows added; 1 row left quarantine",
        ),
        ({"a.x": restored_change(None, 5)}, "1 table: 5 rows removed; dropped: a.x"),
        ({"a.x": restored_change(7, 5), "a.y": restored_change(7, 7)}, "2 tables: 2 rows added; restored: a.x, a.y"),
        ({"a.x": restored_change(7, 7)}, "1 table: changed; restored: a.x"),
        (
            {f"a.t{number}": NEW for number in range(7)},
            "7 tables: 7,000 rows added; new: a.t0, a.t1, a.t2, a.t3, a.t4, and 2 more",
        ),
        ({}, ""),
    ],
)  # fmt: skip
def test_the_totals_as_one_sentence(tables: dict[str, TableChange], sentence: str) -> None:
    assert describe_summary(result(tables)) == sentence
    assert describe_summary(result(tables, summary=None)) == sentence  # a run from before there were summaries


def test_the_totals_in_json() -> None:
    tables = {"a.new": NEW, "a.merged": MERGED, "a.replaced": REPLACED, "a.unknown": UNKNOWN, "a.new__quarantine": NEW}
    assert json.loads(result(tables).model_dump_json())["summary"] == {
        "tables": 4,
        "added": 1_400,
        "updated": 10,
        "replaced": 365,
        "removed": 5,
        "quarantined": 1_000,
        "left_quarantine": 0,
        "new_tables": ["a.new", "a.new__quarantine"],
        "dropped_tables": [],
        "restored_tables": [],
        "uncounted_tables": ["a.unknown"],
    }
    assert result({}).summary is None and ChangeSummary(tables=1).added == 0


def test_rows_that_were_added_and_deleted_again_were_never_on_main() -> None:
    change = TableChange(operation="append+delete", added_rows=10, deleted_rows=3, created=True, total_rows=None)
    assert describe_change(change) == "7 inserted"
    assert describe_summary(result({"a.x": change})) == "1 table: 7 rows added; new: a.x"


@pytest.mark.parametrize(
    ("rows", "before", "description"),
    [
        (7, 5, "restored, 2 rows more than before"),
        (4, 5, "restored, 1 row fewer than before"),
        (5, 5, "restored, as many rows as before"),
        (None, 5, "5 removed"),
    ],
)
def test_what_a_roll_back_does_to_a_table(rows: int | None, before: int, description: str) -> None:
    assert describe_change(restored_change(rows, before)) == description


def reports(of: RunResult) -> dict[str, str]:
    """Return the report of a run in each form."""
    output = io.StringIO()
    print_report(of, "http://ui", Console(file=output, width=140))
    status = RunStatus(stage="ended" if of.outcome else "waiting for approval", events=[], result=of)
    return {
        "terminal": output.getvalue(),
        "markdown": markdown_report(of, "http://ui"),
        "Web UI": details(status),
        "Slack": json.dumps(blocks(Notification(result=of), "http://ui")),
    }


@pytest.mark.parametrize(
    ("outcome", "heading"), [(None, "to merge"), ("published", "merged"), ("checked", "not merged")]
)
def test_every_report_has_the_totals(outcome: str | None, heading: str) -> None:
    for form, text in reports(result({"a.new": NEW, "a.merged": MERGED}, outcome=outcome)).items():
        line = next(each for each in text.lower().splitlines() if "2 tables: 1,000 rows added, 10 updated" in each)
        assert heading in line and (heading == "not merged") == ("not merged" in line), form


def test_every_report_has_the_message_before_and_after_the_merge() -> None:
    stated = PublishOptions(message="Load <May>\nagain", metadata={"owner": "ana"})
    for outcome in (None, "published"):
        shown = reports(result({"a.x": ADDED}, outcome=outcome, publish=stated))
        for form, text in shown.items():
            assert "again" in text and "May" in text, form
        assert "<May>" not in shown["Slack"] + shown["markdown"] + shown["Web UI"]
        assert "owner=ana" in shown["terminal"] and "owner=ana" in shown["markdown"]
    for text in reports(result({"a.x": ADDED}, outcome="quarantined", publish=stated)).values():
        assert "again" not in text  # no commit has the message
    for text in reports(result({"a.x": ADDED}, outcome="published")).values():
        assert "message" not in text.lower()


def test_a_table_that_was_dropped_has_no_rows_after_the_run() -> None:
    assert describe_rows_after(TableChange(operation="drop")) == "dropped"
    assert describe_rows_after(TableChange(operation="append", total_rows=1_000)) == "1,000"
    assert describe_rows_after(TableChange(operation="append")) == "?"
