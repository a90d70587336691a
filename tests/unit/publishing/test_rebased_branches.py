"""The activities on branches while main moves: rebases, conflicts, and tables that another program replaced."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import pytest
from pyiceberg.manifest import ManifestFile
from pyiceberg.table.snapshots import Snapshot
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.approval.require_approval import ApprovalPolicy
from activities.errors import with_mapped_errors
from activities.publishing.find_conflicts import FindConflictsActivity
from activities.publishing.publish_branch import PublishBranchActivity
from activities.run.discard_branch import DiscardBranchActivity
from lakehouse.catalog import TableDiff
from lakehouse.iceberg.rebase import TableRebase, read_rebase
from sluice.contracts.publish import DiscardBranchInput, FindConflictsInput, Publication
from sluice.pipeline.write import Write
from sluice.publishing.certificate import approved_properties
from sluice.publishing.rebase import rebase_problem
from tests.harness.activity import run_activity
from tests.harness.branch_run import APPEND, Run, replace_table, write_rows
from tests.harness.memory_lake import MemoryLake
from tests.harness.publish_input import publish_input


def test_appends_are_rebased_onto_a_newer_main(lake: MemoryLake) -> None:
    first = Run(lake, "r0")
    first.publish(*write_rows(first, 0))
    run, other = Run(lake, "r1"), Run(lake, "r2")
    branch, written = run.write(1)
    other.publish(*write_rows(other, 2))
    conflicts = run_activity(
        FindConflictsActivity(lake.catalog).find_conflicts, FindConflictsInput(branch=branch, head=written.head)
    )
    assert conflicts == ["t.x"] == run.publish(branch, written.head).conflicts
    rebased = run.rebase(branch, written)
    assert rebased.branch and rebased.write_result and rebased.write_result.tables["t.x"].added_rows == 1
    assert run.publish(rebased.branch, rebased.write_result.head).merged
    assert lake.ids("t.x") == [0, 1, 2]


def test_what_depends_on_the_older_main_is_not_rebased(lake: MemoryLake, no_manifests: Callable[[], None]) -> None:
    """The catalog alone shows that, so no manifest is read."""
    run, other = Run(lake, "r1"), Run(lake, "r2")
    branch, written = run.write(1)
    other.publish(*write_rows(other, 2))
    no_manifests()
    result = run.rebase(branch, written, APPEND.model_copy(update={"on_conflict": "rewrite"}))
    assert result.branch is None and "may depend on the earlier rows of main" in result.why_not
    assert lake.catalog.find_head(run.ref.branch) is None


def test_a_branch_that_was_opened_to_write_again_is_no_rebase(lake: MemoryLake) -> None:
    """A worker died after the refusal of the rebase and the opening of the next branch; Temporal repeats the step."""
    run, other = Run(lake, "r1"), Run(lake, "r2")
    branch, written = run.write(1)
    theirs, head = other.write(2)
    assert other.publish(theirs, head.head).merged
    rewriting = APPEND.model_copy(update={"on_conflict": "rewrite"})
    assert run.rebase(branch, written, rewriting).why_not
    opened = run.open()
    run.ref = run.ref.model_copy(update={"attempt": run.ref.attempt - 1})  # the same step, repeated
    again = run.rebase(branch, written, rewriting)
    assert again.branch is None and "opened to write again" in again.why_not
    assert run.open() == opened


def test_tables_that_checks_looked_at_may_not_change_meanwhile(lake: MemoryLake) -> None:
    other = Run(lake, "r0", "t.other")
    other.publish(*write_rows(other, 0))
    run, other = Run(lake, "r1"), Run(lake, "r2", "t.other")
    branch, written = run.write(1)
    other.publish(*write_rows(other, 2))
    publication = run.publish(branch, written.head, watched_tables=["t.other"])
    assert (publication.merged, publication.conflicts) == (False, ["t.other"])


def test_appends_are_rebased_when_their_branch_is_gone(lake: MemoryLake) -> None:
    run, other = Run(lake, "r1"), Run(lake, "r2")
    branch, written = run.write(1)
    other.publish(*write_rows(other, 2))
    run_activity(DiscardBranchActivity(lake.catalog).discard_branch, DiscardBranchInput(branch=branch.name))
    rebased = run.rebase(branch, written)
    assert rebased.branch and rebased.write_result
    assert run.publish(rebased.branch, rebased.write_result.head).merged and lake.ids("t.x") == [1, 2]


@pytest.mark.parametrize("mode", [{"on_conflict": "rebase"}, {"on_conflict": "rewrite"}])
def test_a_run_does_not_go_into_a_table_that_was_dropped_and_created_again(
    mode: dict[str, str], lake: MemoryLake
) -> None:
    """An earlier version rebased it onto the new table, or rewrote it into that table."""
    first, run = Run(lake, "r0"), Run(lake, "r1")
    first.publish(*write_rows(first, 0))
    branch, written = run.write(1)
    replace_table(lake)
    assert run.publish(branch, written.head).conflicts == ["t.x"]
    run_activity(DiscardBranchActivity(lake.catalog).discard_branch, DiscardBranchInput(branch=branch.name))
    with pytest.raises(ApplicationError, match=r"t\.x on main is another table .* run the pipeline again") as refused:
        run.rebase(branch, written, Write.model_validate({"job": "job.py", **mode}))
    assert (refused.value.type, refused.value.non_retryable) == ("TableReplaced", True)
    assert lake.ids("t.x") == [9] and lake.catalog.find_head(run.ref.branch) is None


def test_a_table_that_moves_in_the_moment_of_the_merge_is_named(
    lake: MemoryLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No catalog compares a table that a merge does not change: the publication names the late change."""
    other = Run(lake, "r0", "t.other")
    other.publish(*write_rows(other, 0))
    run, later = Run(lake, "r1"), Run(lake, "r2", "t.other")
    branch, written = run.write(1)
    theirs = write_rows(later, 2)
    publish = lake.catalog.publish

    def after_another(*given: Any) -> Publication:
        monkeypatch.undo()
        assert later.publish(*theirs).merged
        return publish(*given)

    monkeypatch.setattr(lake.catalog, "publish", after_another)
    publication = run.publish(branch, written.head, watched_tables=["t.other", "t.x"])
    assert publication.merged and publication.overtaken == ["t.other"]


def test_a_conflict_that_the_first_try_finds_needs_no_wait(lake: MemoryLake) -> None:
    run, other = Run(lake, "r1"), Run(lake, "r2")
    branch, written = run.write(1)
    other.publish(*write_rows(other, 2))
    first = run.publish(branch, written.head)
    assert (first.conflicts, first.merge_requested) == (["t.x"], False)
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=2)
    properties = approved_properties(run.ref, written.head, "", [], [])
    input = publish_input(run.ref, branch, written.head, properties)
    publish = PublishBranchActivity(lake.catalog, ApprovalPolicy(lake.catalog)).publish_branch
    second = environment.run(with_mapped_errors(publish), input)
    assert (second.conflicts, second.merge_requested) == (["t.x"], True)


def test_no_manifest_is_read_where_another_table_was_dropped(
    lake: MemoryLake, no_manifests: Callable[[], None]
) -> None:
    run, other = Run(lake, "r1"), Run(lake, "r2")
    branch, written = run.write(1)
    other.publish(*write_rows(other, 2))
    (diff,) = lake.catalog.diff(branch.base, branch.name, written.head)
    appended = read_rebase(lake.catalog, {}, diff, lake.catalog.head("main"))
    dropped = TableRebase(TableDiff("t.y", before=diff.after, after=None), diff.after, {})
    no_manifests()
    assert rebase_problem([appended, dropped], appends=True, rows_quarantined=False) == "t.y was dropped"


@pytest.fixture
def no_manifests(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A function after whose call reading a manifest is an error."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a manifest was read")

    def forbid() -> None:
        monkeypatch.setattr(Snapshot, "manifests", refuse)
        monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", refuse)

    return forbid
