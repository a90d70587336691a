"""Planning a roll-back from main's history alone: what goes back to what, who stands in the way, and who read it."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.publishing.plan_rollback import PlanRollbackActivity
from activities.publishing.restore_tables import RestoreTablesActivity
from lakehouse.catalog import TableCommit
from sluice.contracts.existing_rows import ExistingRowsResult, Restore, RestoreTablesInput
from sluice.contracts.rollback import PlanRollbackInput, PlanRollbackResult
from sluice.contracts.write import WriteResult
from sluice.errors import InvalidInput, InvalidPipeline, UnexpectedWrite
from sluice.pipeline.file import parse_pipeline
from sluice.publishing import certificate
from sluice.publishing.commit_properties import REFERENCED, ROLLBACK_PIPELINE, ROLLED_BACK
from sluice.publishing.rollback import (
    check_restored,
    choose_rollback_pipeline,
    describe_missing_checks,
    describe_older_checks,
    rollback_pipeline,
    tables_without_checks,
)
from tests.harness.activity import run_activity
from tests.harness.memory_lake import MemoryLake
from tests.harness.quarantined_run import HERE, LakeRun


def test_a_roll_back_is_audited_by_the_checks_of_whole_tables_that_remain() -> None:
    text = """\
name: two
write: {job: ingest, mode: sql, statements: [INSERT INTO n.a SELECT 1]}
tables:
  n.a: {checks: [not_null: x, unique: {column: x, scope: table}]}
  n.b: {checks: [unique: {column: y, scope: table}]}
"""
    pipeline = rollback_pipeline(parse_pipeline(text, "p.yml"), ["n.a", "n.b", "n.later"], ["n.a", "n.later"])
    assert pipeline.write.job == "rollback"
    checks = {name: [check.check for check in table.checks] for name, table in pipeline.tables.items()}
    assert checks == {"n.a": ["unique"], "n.b": [], "n.later": []}


def test_a_version_is_audited_by_the_checks_that_it_was_published_under() -> None:
    now, then = (
        parse_pipeline(f"name: p\nwrite: {{job: j.py}}\ntables: {{n.a: {{checks: [{check}]}}, n.b: {{}}}}\n", "p.yml")
        for check in ("row_count: {min: 2, scope: table}", "unique: {column: x, scope: table}")
    )
    pipeline = rollback_pipeline(now, ["n.a", "n.b"], ["n.a", "n.b"], {"n.a": then.tables["n.a"]})
    assert [check.check for check in pipeline.tables["n.a"].checks] == ["unique"]
    assert rollback_pipeline(now, ["n.a"], [], {"n.a": then.tables["n.a"]}).tables["n.a"].checks == []


# The whole way, without Temporal


def plan(lake: MemoryLake, run: str, **more: bool) -> PlanRollbackResult:
    query = PlanRollbackInput.model_validate({"run": run, **more})
    result: PlanRollbackResult = run_activity(PlanRollbackActivity(lake.catalog, {}).plan_rollback, query)
    return result


def restore(lake: MemoryLake, run: LakeRun, wanted: Restore) -> ExistingRowsResult:
    input = RestoreTablesInput(run_ref=run.ref, restore=wanted)
    result: ExistingRowsResult = run_activity(RestoreTablesActivity(lake.catalog, {}, HERE).restore_tables, input)
    return result


def test_a_roll_back_is_planned_published_and_taken_back_from_main_alone(lake: MemoryLake) -> None:
    checks = {"t.x": [{"check": "unique", "column": "id", "scope": "table"}, {"check": "not_null", "column": "id"}]}
    LakeRun(lake).published(1)
    run = LakeRun(lake, checks=checks)
    run.published(2)
    with pytest.raises(ApplicationError, match="'p' names 2 published runs"):
        plan(lake, "p")
    planned = plan(lake, run.run_id)
    assert planned.changes["t.x"].deleted_rows == 1
    assert planned.restore.runs == [run.run_id] and planned.workflow_id == run.ref.workflow_id
    assert planned.recorded and [check.check for check in planned.recorded.tables["t.x"].checks] == ["unique"]
    back = LakeRun(lake)
    restored = restore(lake, back, planned.restore)
    assert restore(lake, back, planned.restore) == restored
    publication = back.publish(restored.branch, restored.write_result, restore=planned.restore)
    assert publication.merged and lake.ids("t.x") == [1]
    commit = next(each for each in lake.catalog.history("main") if each.hash == publication.main_after)
    assert commit.properties[ROLLED_BACK] == run.run_id
    again = plan(lake, publication.main_after[:12])
    redo = LakeRun(lake)
    restored = restore(lake, redo, again.restore)
    assert redo.publish(restored.branch, restored.write_result, restore=again.restore).merged
    assert lake.ids("t.x") == [1, 2]
    assert plan(lake, run.run_id, with_later=True).restore.runs[-1] == run.run_id, "main contains it again"


def test_rows_of_a_roll_back_are_shown_to_those_who_may_see_those_of_each_run(lake: MemoryLake) -> None:
    run, later, last = LakeRun(lake), LakeRun(lake, show_rows="approvers"), LakeRun(lake, tables=("t.x", "t.y"))
    for number, each in enumerate((run, later, last)):
        each.published(number)
    planned = plan(lake, run.run_id, with_later=True)
    assert planned.show_rows == "approvers" and planned.recorded and planned.recorded.show_rows == "all"
    audit = rollback_pipeline(planned.recorded, planned.restore.tables, planned.remaining, show_rows=planned.show_rows)
    assert audit.show_rows == "approvers"
    assert plan(lake, last.run_id).show_rows == "all"
    own = plan(lake, later.run_id, with_later=True)
    assert own.recorded and rollback_pipeline(own.recorded, ["t.x"], ["t.x"]).show_rows == "approvers"


def test_rows_of_a_run_that_records_no_pipeline_are_shown_to_nobody(
    lake: MemoryLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = LakeRun(lake)
    run.published(1)
    monkeypatch.setattr(certificate, "_MAX_ROLLBACK_PIPELINE", 1)
    LakeRun(lake).published(2)
    assert plan(lake, run.run_id, with_later=True).show_rows == "nobody"


def test_the_checks_of_a_version_are_found_on_main(lake: MemoryLake) -> None:
    """Those of the run that published the version, whatever other tables changed and roll-backs happened since."""
    unique, counted = ({"check": name, "scope": "table", **more} for name, more in (
        ("unique", {"column": "id"}), ("row_count", {"min": 2}),
    ))  # fmt: skip
    first = LakeRun(lake, checks={"t.x": [unique]})
    first.published(1)
    LakeRun(lake, ("t.other",), pipeline="other").published(5)
    second = LakeRun(lake, checks={"t.x": [counted]})
    second.published(2)
    LakeRun(lake, ("t.other",), pipeline="other").published(6)
    planned = plan(lake, second.run_id)
    assert planned.recorded and [check.check for check in planned.recorded.tables["t.x"].checks] == ["row_count"]
    assert planned.older["t.x"].workflow_id == first.ref.workflow_id
    assert [check.check for check in planned.older["t.x"].table.checks] == ["unique"]
    assert plan(lake, first.run_id, with_later=True).older == {}, "it was not there before"


UNIQUE = {"check": "unique", "column": "id", "scope": "table"}
COUNT = {"check": "row_count", "min": 2, "scope": "table"}


def test_a_compaction_does_not_hide_the_checks_of_the_rows(lake: MemoryLake) -> None:
    """A roll-back to what a compaction published was audited by its checks, of which it has none."""
    loaded, compaction, last = LakeRun(lake, checks={"t.x": [UNIQUE]}), LakeRun(lake, pipeline="compact"), LakeRun(lake)
    for run in (loaded, compaction, last):
        run.published(1)
    older = plan(lake, last.run_id).older
    assert [check.check for check in older["t.x"].table.checks] == ["unique"]
    assert describe_older_checks(older) == [
        f"t.x: audited by the checks under which {loaded.ref.workflow_id} published an earlier version, the last one "
        "with any"
    ]
    older = plan(lake, compaction.run_id, with_later=True).older
    assert describe_older_checks(older) == [
        f"t.x: audited by the checks under which {loaded.ref.workflow_id} published this version"
    ]


def test_checks_that_no_publication_had_are_not_those_of_a_later_one(lake: MemoryLake) -> None:
    first, checked = LakeRun(lake), LakeRun(lake, checks={"t.x": [UNIQUE]})
    first.published(1)
    checked.published(2)
    planned = plan(lake, checked.run_id)
    assert planned.recorded and not planned.older["t.x"].table.checks and not describe_older_checks(planned.older)
    older = {name: each.table for name, each in planned.older.items()}
    audit = rollback_pipeline(planned.recorded, planned.restore.tables, planned.remaining, older)
    assert tables_without_checks(audit, planned.remaining) == ["t.x"]


def test_checks_of_a_run_that_was_taken_back_are_not_those_of_what_was_restored(lake: MemoryLake) -> None:
    first, wrong = LakeRun(lake, checks={"t.x": [UNIQUE]}), LakeRun(lake, checks={"t.x": [COUNT]})
    back, last = LakeRun(lake), LakeRun(lake)
    first.published(1)
    wrong.published(2)
    wanted = plan(lake, wrong.run_id).restore
    restored = restore(lake, back, wanted)
    assert back.publish(restored.branch, restored.write_result, restore=wanted).merged
    last.published(3)
    older = plan(lake, last.run_id).older["t.x"]
    assert (older.workflow_id, older.is_of_version) == (first.ref.workflow_id, True)


def test_checks_that_are_not_recorded_are_not_guessed(lake: MemoryLake, monkeypatch: pytest.MonkeyPatch) -> None:
    LakeRun(lake, checks={"t.x": [UNIQUE]}).published(1)
    with monkeypatch.context() as patch:
        patch.setattr(certificate, "_MAX_ROLLBACK_PIPELINE", 100)
        LakeRun(lake, checks={"t.x": [COUNT]}).published(2)
    LakeRun(lake, pipeline="compact").published(3)
    last = LakeRun(lake)
    last.published(4)
    assert plan(lake, last.run_id).older == {}


def test_a_roll_back_without_checks_says_so() -> None:
    text = "name: p\nwrite: {job: j.py}\ntables: {n.a: {checks: [not_null: x]}, n.b: {}, n.b__quarantine: {}}\n"
    pipeline = parse_pipeline(text, "p.yml")
    tables = list(pipeline.tables)
    audit = rollback_pipeline(pipeline, tables, tables)
    assert tables_without_checks(audit, tables) == ["n.a", "n.b"]
    assert tables_without_checks(rollback_pipeline(pipeline, tables, []), []) == [], "what is dropped is not audited"
    message = describe_missing_checks(["n.a", "n.b"], "p", is_given=False)
    assert message.startswith("no checks are known for n.a, n.b: main's history")
    assert "name a file of p with such checks by --pipeline FILE" in message
    assert "the file of --pipeline has no check" in describe_missing_checks(["n.a"], "p", is_given=True)


def test_readers_are_told_from_certificates(lake: MemoryLake) -> None:
    run = LakeRun(lake)
    run.published(1)
    reader = LakeRun(lake, ("t.orders",), pipeline="orders")
    publication = reader.published(5, referenced=["t.other", "t.x"])
    commit = next(each for each in lake.catalog.history("main") if each.hash == publication.main_after)
    assert commit.properties[REFERENCED] == "t.other,t.x"
    with pytest.raises(ApplicationError, match=r"t\.orders of orders \(.*\) was checked against t\.x"):
        plan(lake, run.run_id)
    assert len(plan(lake, run.run_id, despite_readers=True).readers) == 1


def test_files_that_are_gone_are_noticed_before_the_roll_back(lake: MemoryLake, tmp_path: Path) -> None:
    """As after somebody's clean-up of the store: the metadata is there, and its rows are not."""
    first = LakeRun(lake)
    first.published(1)
    before, drop = lake.catalog.head("main"), LakeRun(lake)
    branch = drop.open()
    head = lake.catalog.commit_tables(branch.name, lake.catalog.head(branch.name), "drop", [TableCommit("t.x", None)])
    assert drop.publish(branch, WriteResult(head=head, tables={})).merged
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    wanted = Restore(runs=[drop.run_id], main_head=lake.catalog.head("main"), tables={"t.x": before})
    with pytest.raises(ApplicationError, match=r"t\.x cannot be restored: 1 of its files are missing") as refused:
        restore(lake, LakeRun(lake), wanted)
    assert refused.value.type == InvalidInput.__name__


def test_only_what_is_restored_is_on_the_branch() -> None:
    check_restored({"a": 1, "b": None}, {"a": 1, "b": None})
    for held in ({"a": 1}, {"a": 2, "b": None}, {"a": 1, "b": None, "c": 3}):
        with pytest.raises(UnexpectedWrite, match="does not contain the version of"):
            check_restored({"a": 1, "b": None}, held)


def test_the_checks_of_a_roll_back_are_given_recorded_or_in_temporal() -> None:
    pipeline = parse_pipeline("name: p\nwrite: {job: j.py}\ntables: {n.a: {}}\n", "p.yml")
    other = pipeline.model_copy(update={"description": "recorded"})
    assert choose_rollback_pipeline("p", None, other, pipeline) is other
    assert choose_rollback_pipeline("p", pipeline, other, None) is pipeline
    assert choose_rollback_pipeline("p", None, None, pipeline) is pipeline
    with pytest.raises(InvalidPipeline, match="name its pipeline file by --pipeline"):
        choose_rollback_pipeline("p", None, None, None)
    with pytest.raises(InvalidPipeline, match="of the pipeline 'p', not of 'q'"):
        choose_rollback_pipeline("p", pipeline.model_copy(update={"name": "q"}), None, None)


@pytest.mark.parametrize("wrong", ["long", "secret"])
def test_checks_that_are_long_or_hold_a_secret_are_not_recorded(lake: MemoryLake, wrong: str) -> None:
    check: dict[str, Any] = {"check": "unique", "column": "id", "scope": "table"}
    check["where"] = f"key = '{'x' * 16 * 1024}'" if wrong == "long" else "key = 'AKIA0123456789ABCDEF'"
    run = LakeRun(lake, checks={"t.x": [check]})
    publication = run.published(1)
    commit = next(each for each in lake.catalog.history("main") if each.hash == publication.main_after)
    assert ROLLBACK_PIPELINE not in commit.properties
    assert plan(lake, run.run_id).recorded is None
