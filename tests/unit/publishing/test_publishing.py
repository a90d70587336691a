"""The decisions about branches: complete writes, orphans, and refusals at opening."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from sluice.contracts.existing_rows import ResumeBranchInput
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.table_changes import TableChange
from sluice.contracts.write import JobReport, OpenBranchInput, VerifyWriteInput, WriteResult
from sluice.errors import InvalidInput, InvalidPipeline, NothingWritten, UnexpectedWrite
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.publishing.branch_properties import quarantine_properties
from sluice.publishing.capabilities import (
    CatalogCapabilities,
    describe_capabilities,
    missing_capabilities,
    require_capabilities,
)
from sluice.publishing.commit_properties import AUDITED, EXPIRES, INSTALLATION, PIPELINE, RUN_ID, WORKFLOW_ID
from sluice.publishing.opening import opening_problems, published_before, tables_to_read, writable_tables
from sluice.publishing.orphans import is_expired, is_idle, names_its_run, orphan_action, orphan_quarantine
from sluice.publishing.rollback import check_unchanged_since_plan, restored_change
from sluice.publishing.written_tables import (
    LastStep,
    WrittenTable,
    check_changed_tables,
    check_rebased,
    check_resumed_tables,
    check_something_changed,
    check_write,
)

RUN = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=1)
BRANCH = BranchRef(name="wap/p/r/a1", base="b", catalog_id="c")
ALL = CatalogCapabilities(
    many_tables=True,
    new_tables=True,
    fencing_by_deletion=True,
    main_permissions=True,
    commit_properties=True,
    repeated_publish="merge parent",
    commit_timeout=5.0,
)
ADDED = TableChange(operation="append", added_rows=3)


def verify(mode: str = "sql", tables: str = "t.x", rows: int | None = None, **more: object) -> VerifyWriteInput:
    fields = {"statements": ["DELETE FROM t.x"]} if mode == "sql" else {}
    write = Write.model_validate({"mode": mode, **fields} if mode != "job" else {"job": "j.py"})
    job = JobReport(rows_written=rows)
    return VerifyWriteInput.model_validate(
        {"run_ref": RUN, "branch": BRANCH, "write": write, "tables": tables.split(), "job": job, **more}
    )


def test_a_complete_write_is_what_it_changed() -> None:
    input = verify("job", "t.x t.y", rows=3)
    tables = [WrittenTable("t.x", ADDED), WrittenTable("t.y", ADDED)]
    check_changed_tables(input, ["t.x", "t.y"])
    assert check_write(input, tables) == {"t.x": ADDED, "t.y": ADDED}


@pytest.mark.parametrize(
    ("mode", "table", "words"),
    [
        ("job", WrittenTable("t.x", None), "dropped t.x"),
        ("job", WrittenTable("t.x", ADDED, foreign_snapshots=1), "this attempt did not make"),
        ("job", WrittenTable("t.x", ADDED), "counted 4 rows for t.x, but its snapshots have 3"),
        ("compact", WrittenTable("t.x", ADDED, same_rows=False), "other rows than before it was compacted"),
    ],
)
def test_a_write_that_is_another(mode: str, table: WrittenTable, words: str) -> None:
    with pytest.raises(UnexpectedWrite, match=words):
        check_write(verify(mode, rows=4), [table])


def test_a_table_that_the_pipeline_does_not_name() -> None:
    with pytest.raises(UnexpectedWrite, match=r"changed t\.z, which the pipeline does not name under `tables`"):
        check_changed_tables(verify(), ["t.x", "t.z"])
    check_changed_tables(verify(quarantined_rows={"t.x": 1}), ["t.x", "t.x__quarantine"])


def test_every_table_must_be_written_unless_the_job_reads_tables() -> None:
    with pytest.raises(NothingWritten, match=r"wrote nothing to t\.y"):
        check_write(verify("job", "t.x t.y"), [WrittenTable("t.x", ADDED)])
    assert check_write(verify("sql", "t.x t.y"), [WrittenTable("t.x", ADDED)]) == {"t.x": ADDED}
    with pytest.raises(NothingWritten, match=r"wrote nothing to t\.x, t\.y"):
        check_write(verify("sql", "t.x t.y"), [])


def test_quarantined_rows_left_their_table_for_the_quarantine_table() -> None:
    input = verify("job", quarantined_rows={"t.x": 3})
    left, gained = LastStep(deleted_rows=10, added_rows=7), LastStep(added_rows=3)
    tables = [WrittenTable("t.x", ADDED, last_step=left), WrittenTable("t.x__quarantine", ADDED, last_step=gained)]
    assert len(check_write(input, tables)) == 2
    with pytest.raises(UnexpectedWrite, match=r"3 bad rows of t\.x were quarantined, and t\.x__quarantine got 0"):
        check_write(input, tables[:1])
    for step, words in (
        (replace(left, deleted_rows=11), "3 bad rows of t.x were quarantined, and 4 left it"),
        (replace(left, removed_base_files=1), "that this run did not bring"),
        (replace(left, added_rows=8, appended_rows=1), "added 1 rows to t.x, but moved 3"),
    ):
        with pytest.raises(UnexpectedWrite, match=words):
            check_write(input, [replace(tables[0], last_step=step), tables[1]])


def test_a_bad_update_of_a_merge_may_leave_its_old_version() -> None:
    merge = {"mode": "merge", "source": {"path": "a.csv"}, "keys": ["id"]}
    input = verify("job", quarantined_rows={"t.x": 3}, write=merge)
    left = LastStep(deleted_rows=10, added_rows=9, appended_rows=2)  # two of three rows were updates
    tables = [WrittenTable("t.x", ADDED, last_step=left)]
    tables.append(WrittenTable("t.x__quarantine", ADDED, last_step=LastStep(added_rows=3)))
    assert len(check_write(input, tables)) == 2


@pytest.mark.parametrize(
    ("arrived", "left", "keys", "words"),
    [
        (3, 3, [], ""),
        (2, 3, [], "3 rows left t.x__quarantine, and 2 came into t.x"),
        (4, 3, [], "3 rows left t.x__quarantine, and 4 came into t.x"),
        (1, 3, ["id"], ""),
        (4, 3, ["id"], "3 rows left t.x__quarantine, and 4 came into t.x"),
        (3, 0, [], "0 rows left t.x__quarantine, and 3 came into t.x"),
    ],
)
def test_a_requeue_moves_every_row(arrived: int, left: int, keys: list[str], words: str) -> None:
    write = {"mode": "requeue", "statements": ["INSERT INTO t.x SELECT 1"], "keys": keys}
    input = verify("job", "t.x t.x__quarantine", write=write)
    changes = [TableChange(operation="append", added_rows=arrived), TableChange(operation="delete", deleted_rows=left)]
    tables = [WrittenTable(name, change) for name, change in zip(input.tables, changes, strict=True)]
    if not words:
        assert len(check_write(input, tables)) == 2
        return
    with pytest.raises(UnexpectedWrite, match=words):
        check_write(input, tables)


WRITTEN = WriteResult(head="h", tables={"t.x": ADDED})


def test_a_rebased_branch_holds_what_the_other_held() -> None:
    replaced = TableChange(operation="append+overwrite", added_rows=4, deleted_rows=1)
    assert check_rebased("new", "old", WRITTEN, [WrittenTable("t.x", replaced)]) == {"t.x": replaced}


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ([WrittenTable("t.y", ADDED)], "new changes t.y, and old did not"),
        ([WrittenTable("t.x", None)], "new changes t.x, and old did not"),
        ([WrittenTable("t.x", ADDED, foreign_snapshots=1)], "this run did not make"),
        (
            [WrittenTable("t.x", TableChange(operation="append", added_rows=2))],
            "the rebase of t.x has 2 rows, and the write had 3",
        ),
        ([], r"new contains \[\], not \['t.x'\]"),
    ],
)
def test_a_rebased_branch_that_holds_something_else(tables: list[WrittenTable], words: str) -> None:
    with pytest.raises(UnexpectedWrite, match=words):
        check_rebased("new", "old", WRITTEN, tables)


def test_what_a_quarantined_branch_may_change() -> None:
    resume = {"branch": "quarantine/p", "run_id": "r", "base": "b", "head": "h"}
    input = ResumeBranchInput.model_validate(
        {"run_ref": RUN, "resume": resume, "write": {"job": "j.py"}, "tables": ["t.x"]}
    )
    check_resumed_tables(input, ["t.x", "t.x__quarantine"])
    with pytest.raises(UnexpectedWrite, match=r"quarantine/p changes t\.y"):
        check_resumed_tables(input, ["t.y"])
    check_something_changed(["t.x"])
    with pytest.raises(InvalidInput, match="main contains all of it already"):
        check_something_changed([])


NOW = datetime(2026, 1, 31, tzinfo=timezone.utc)
OWNER = {RUN_ID: "a" * 36, WORKFLOW_ID: "w", PIPELINE: "p", INSTALLATION: "here"}


@pytest.mark.parametrize(
    ("attempt", "changed", "published", "action"),
    [(1, 2, False, "quarantine"), (1, 2, True, "delete"), (1, 0, False, "delete"), (None, 2, False, "report")],
)
def test_what_becomes_of_an_orphan_branch(attempt: int | None, changed: int, published: bool, action: str) -> None:
    assert orphan_action(attempt, changed_tables=changed, is_published=published) == action
    if action != "report":
        kept = orphan_action(attempt, changed_tables=changed, is_published=published, rows_are_kept_already=True)
        assert kept == "delete"
        assert orphan_action(attempt, changed_tables=changed, is_published=published, keeps_rows=False) == "delete"


def test_when_the_reaper_may_touch_a_branch() -> None:
    branch = f"wap/p/{OWNER[RUN_ID]}/a1"
    assert names_its_run(branch, OWNER) and not names_its_run(branch, {RUN_ID: OWNER[RUN_ID]})
    assert not names_its_run(branch, {**OWNER, RUN_ID: "0" * 36}), "a job named another run"
    assert is_idle(NOW - timedelta(hours=1), NOW, 3600) and not is_idle(NOW - timedelta(minutes=59), NOW, 3600)
    assert is_expired(NOW, NOW) and not is_expired(NOW + timedelta(seconds=1), NOW) and not is_expired(None, NOW)


def test_an_orphan_branch_becomes_a_quarantine_that_names_its_run() -> None:
    quarantine = orphan_quarantine(OWNER, 2, "base", NOW)
    assert quarantine.name == f"quarantine/p/2026-01-31/{OWNER[RUN_ID]}-a2"
    assert quarantine.properties.items() >= OWNER.items()
    assert quarantine.properties[EXPIRES] == (NOW + timedelta(days=14)).isoformat()
    assert AUDITED not in quarantine.properties


@pytest.mark.parametrize(("audited_hash", "recorded"), [("h", "h"), ("older", None), (None, None)])
def test_a_quarantine_names_the_audited_hash_only_if_it_keeps_that(
    audited_hash: str | None, recorded: str | None
) -> None:
    properties = quarantine_properties(RUN, "b", "audit", "why", "later", head="h", audited_hash=audited_hash)
    assert properties.get(AUDITED) == recorded
    assert AUDITED not in quarantine_properties(RUN, "b", "error", "why", "later")


def opening(**more: object) -> OpenBranchInput:
    fields = {"run_ref": RUN, "tables": {"t.x": Table()}, "schema_is_fixed": True, "input_digest": "d", "again": False}
    return OpenBranchInput.model_validate({**fields, **more})


@pytest.mark.parametrize(
    ("missing", "more", "problem"),
    [
        ("many_tables", {"tables": {"t.x": {}, "t.y": {}}}, "cannot publish 2 tables at once (t.x, t.y)"),
        ("many_tables", {"tables": {"t.x": {"on_bad_rows": "quarantine", "max_bad_rows": 1}}}, "t.x__quarantine"),
        ("new_tables", {"tables": {"t.x": {}, "t.new": {}}}, "cannot create a table on a branch (t.new)"),
        ("fencing_by_deletion", {"attempts": 3}, "set `attempts: 1`"),
    ],
)
def test_what_the_catalog_cannot_do_is_refused_before_spark_starts(
    missing: str, more: dict[str, object], problem: str
) -> None:
    capabilities = replace(ALL, **{missing: False})  # type: ignore[arg-type]  # the name of a field
    input, types = opening(**more), {"t.x": {"a": "int"}, "t.y": {"a": "int"}}
    (actual,) = opening_problems(input, types, capabilities)
    assert problem in actual
    assert opening_problems(input, types, ALL) == []
    assert opening_problems(opening(), types, capabilities) == []


def test_every_pipeline_needs_properties_on_commits() -> None:
    without = replace(ALL, commit_properties=False)
    (problem,) = opening_problems(opening(), {"t.x": {"a": "int"}}, without)
    assert problem.startswith("the catalog does not store properties of commits, and every pipeline needs them")
    with pytest.raises(InvalidPipeline, match="repeated inputs, quarantines, orphan branches and runs"):
        require_capabilities(without, ())


def test_capabilities_are_described_in_one_line() -> None:
    assert describe_capabilities(replace(ALL, main_permissions=False)) == (
        "publish many tables at once: yes; create tables on branches: yes; fence by deleting a branch: yes; "
        "forbid writers to change main: no; keep properties on commits: yes; "
        "a publish of several tables is atomic; "
        "a repeated publish is recognised by a merge parent; a commit takes at most 5 s"
    )


def test_capabilities_that_a_resumed_run_or_a_roll_back_needs() -> None:
    require_capabilities(ALL, ["t.x", "t.y"])
    assert missing_capabilities(replace(ALL, many_tables=False), ["t.x"], []) == []
    with pytest.raises(InvalidPipeline, match="cannot publish 2 tables"):
        require_capabilities(replace(ALL, many_tables=False), ["t.x", "t.y"])


def test_which_tables_are_read_at_opening() -> None:
    input = opening(tables={"t.x": {"on_bad_rows": "quarantine", "max_bad_rows": 1}})
    assert writable_tables(input) == ["t.x", "t.x__quarantine"]
    assert tables_to_read(input, ALL) == ["t.x"]
    assert tables_to_read(opening(schema_is_fixed=False), ALL) == []
    assert tables_to_read(input, replace(ALL, new_tables=False)) == ["t.x", "t.x__quarantine"]


def test_checks_that_cannot_be_answered_are_refused_at_opening() -> None:
    input = opening(tables={"t.x": {"checks": [{"check": "not_null", "column": "b"}]}})
    assert "'b'" in opening_problems(input, {"t.x": {"a": "int"}}, ALL)[0]
    assert opening_problems(input, {"t.x": None}, ALL) == []
    keys = {"check": "relationships", "column": "a", "to": "t.y", "field": "id", "at": "p.yml:7"}
    input = opening(tables={"t.x": {"checks": [keys]}})
    assert opening_problems(input, {"t.x": None, "t.y": None}, ALL) == [
        "p.yml:7: relationships: there is no table t.y on main"
    ]
    assert opening_problems(opening(tables={"t.x": {"checks": [keys]}, "t.y": {}}), {"t.x": None}, ALL) == []


def test_an_input_that_was_published_names_its_commit() -> None:
    words = published_before("p", "0123456789abcdef", "w")
    assert "published by p already: run w, commit 0123456789ab on main" in words and "--again" in words


def test_what_a_roll_back_does_to_a_table() -> None:
    assert restored_change(None, 5) == TableChange(operation="drop", deleted_rows=5)
    assert restored_change(2, 5) == TableChange(operation="restore", deleted_rows=3, total_rows=2)
    assert restored_change(4, None) == TableChange(operation="restore", added_rows=4, total_rows=4)
    check_unchanged_since_plan("t.x", True)
    with pytest.raises(InvalidInput, match=r"main changed t\.x since"):
        check_unchanged_since_plan("t.x", False)
