"""The activities on branches, from opening to a roll-back, on a catalog in memory and tables in a folder."""

from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.publishing.confirm_publication import ConfirmPublicationActivity
from activities.publishing.restore_tables import RestoreTablesActivity
from activities.quarantine.manage_quarantine import ManageQuarantineActivity
from activities.quarantine.plan_release import PlanReleaseActivity
from activities.quarantine.quarantine_branch import QuarantineBranchActivity
from activities.quarantine.resume_branch import ResumeBranchActivity
from activities.run.discard_branch import DiscardBranchActivity
from lakehouse.audit.results_table import AuditResultsTable
from lakehouse.iceberg.table_state import TableState, load_table
from lakehouse.quarantine.quarantined_branches import find_quarantined_branch
from sluice.contracts.existing_rows import Restore, RestoreTablesInput, Resume, ResumeBranchInput
from sluice.contracts.lake_queries import PlanReleaseInput
from sluice.contracts.publish import ConfirmPublicationInput, DiscardBranchInput
from sluice.contracts.quarantine import ManageQuarantineInput, QuarantineBranchInput
from sluice.errors import NoSuchBranch
from sluice.publishing.branch_properties import quarantine_properties
from sluice.publishing.commit_properties import AUDITED
from sluice.publishing.release import verified_write
from tests.harness.activity import run_activity
from tests.harness.branch_run import APPEND, Run, write_rows
from tests.harness.memory_catalog import CAPABILITIES, MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.quarantined_run import FakeWorkflows

LATER = "2026-02-01T00:00:00+00:00"


def test_a_run_is_published_once(lake: MemoryLake) -> None:
    run = Run(lake, "r1")
    branch, written = run.write(1, 2)
    assert (written.tables["t.x"].added_rows, written.tables["t.x"].created) == (2, True)
    first = run.publish(branch, written.head)
    assert first.merged and lake.ids("t.x") == [1, 2]
    assert run.publish(branch, written.head) == first
    confirm = ConfirmPublicationActivity(lake.catalog).confirm_publication
    assert run_activity(confirm, ConfirmPublicationInput(run_id="r1", since=branch.base)) == first
    assert run_activity(confirm, ConfirmPublicationInput(run_id="reset", since=branch.base, head=written.head)) == first
    assert not run_activity(confirm, ConfirmPublicationInput(run_id="r2", since=branch.base)).merged
    assert not run_activity(confirm, ConfirmPublicationInput(run_id="r1", since=first.main_after)).merged
    with pytest.raises(ApplicationError, match="published by p already") as refused:
        Run(lake, "r1").open()
    assert (refused.value.type, refused.value.non_retryable) == ("AlreadyPublished", True)


def test_a_repeated_open_finds_the_branch(lake: MemoryLake) -> None:
    run = Run(lake, "r1")
    assert run.open() == run.open()
    assert run.open().commit_timeout == CAPABILITIES.commit_timeout


def test_a_snapshot_of_another_attempt_is_refused(lake: MemoryLake) -> None:
    run = Run(lake, "r1")
    branch = run.open()
    lake.append(branch.name, "t.x", [1], run.ref)
    lake.append(branch.name, "t.x", [2], run.ref.model_copy(update={"attempt": 2}))
    with pytest.raises(ApplicationError, match="this attempt did not make") as refused:
        run.verify(branch)
    assert refused.value.type == "UnexpectedWrite"


def test_a_zombie_cannot_write_to_a_discarded_branch(lake: MemoryLake) -> None:
    run = Run(lake, "r1")
    branch = run.open()
    discard = DiscardBranchInput(branch=branch.name, catalog_id=branch.catalog_id)
    run_activity(DiscardBranchActivity(lake.catalog).discard_branch, discard)
    with pytest.raises(NoSuchBranch):
        lake.append(branch.name, "t.x", [1], run.ref)
    run_activity(DiscardBranchActivity(lake.catalog).discard_branch, discard)


def test_a_quarantined_branch_is_resumed(lake: MemoryLake) -> None:
    run = Run(lake, "r1")
    branch, written = run.write(1)
    verified = verified_write(written, 1, APPEND, rows_quarantined=False)
    properties = quarantine_properties(
        run.ref, branch.base, "audit", "why", LATER, head=written.head, audited_hash=written.head, verified=verified
    )
    input = QuarantineBranchInput(
        branch=branch, head=written.head, name="quarantine/p/2026-01-31/r1", properties=properties
    )
    quarantine = QuarantineBranchActivity(lake.catalog, "here").quarantine_branch
    assert [run_activity(quarantine, input), run_activity(quarantine, input)] == [input.name, input.name]
    assert lake.catalog.find_head(branch.name) is None
    kept = find_quarantined_branch(lake.catalog, "r1")
    assert kept.quarantined_hash == kept.properties[AUDITED] == written.head
    again = Run(lake, "r2")
    resume = Resume(branch=kept.branch, run_id="r1", base=kept.base, head=kept.quarantined_hash)
    resumed = run_activity(
        ResumeBranchActivity(lake.catalog, {}, "here").resume_branch,
        ResumeBranchInput(run_ref=again.ref, resume=resume, write=APPEND, tables=["t.x"]),
    )
    assert again.publish(resumed.branch, resumed.write_result.head).merged and lake.ids("t.x") == [1]


def test_a_quarantine_of_what_was_never_audited_has_no_audited_hash(lake: MemoryLake) -> None:
    run = Run(lake, "r1")
    branch, written = run.write(1)
    properties = quarantine_properties(run.ref, branch.base, "error", "it broke", LATER)
    name = "quarantine/p/2026-01-31/r1"
    input = QuarantineBranchInput(branch=branch, name=name, properties=properties)  # the run failed before its audit
    assert run_activity(QuarantineBranchActivity(lake.catalog, "here").quarantine_branch, input) == name
    kept = find_quarantined_branch(lake.catalog, "r1")
    assert kept.quarantined_hash == written.head and AUDITED not in kept.properties
    keep = ManageQuarantineInput(action="keep", branch=name, by="ana", until="2026-03-01T00:00:00+00:00")
    activity = ManageQuarantineActivity(lake.catalog, FakeWorkflows(), "here")
    assert run_activity(activity.manage_quarantine, keep) == name
    kept = find_quarantined_branch(lake.catalog, "r1")
    assert kept.quarantined_hash == written.head and AUDITED not in kept.properties
    with pytest.raises(ApplicationError, match="ended before the write was verified"):
        run_activity(PlanReleaseActivity(lake.catalog, "here").plan_release, PlanReleaseInput(run="r1"))


def test_what_a_fenced_branch_held_is_quarantined_all_the_same(lake: MemoryLake) -> None:
    """Its rebase failed after the branch was deleted. An earlier try of the quarantine may have stopped at any step."""
    run = Run(lake, "r1")
    branch, written = run.write(1)
    run_activity(DiscardBranchActivity(lake.catalog).discard_branch, DiscardBranchInput(branch=branch.name))
    properties = quarantine_properties(
        run.ref, branch.base, "error", "it broke", LATER, head=written.head, audited_hash=written.head
    )
    name = "quarantine/p/2026-01-31/r1"
    input = QuarantineBranchInput(
        branch=branch, head=written.head, name=name, properties=properties, versions=written.versions
    )
    quarantine = QuarantineBranchActivity(lake.catalog, "here").quarantine_branch
    assert [run_activity(quarantine, input), run_activity(quarantine, input)] == [name, name]
    kept = find_quarantined_branch(lake.catalog, "r1")
    assert (kept.branch, kept.base, AUDITED in kept.properties) == (name, branch.base, False)
    assert lake.ids("t.x", name) == [1]
    (diff,) = lake.catalog.diff(kept.base, name, kept.quarantined_hash)
    assert diff.name == "t.x" and len(list(lake.catalog.history(name))) == 3
    lake.catalog.delete_branch(name)
    lake.catalog.create_branch(name, branch.base)  # left by a try that stopped after its first step
    assert run_activity(quarantine, input) == name and lake.ids("t.x", name) == [1]
    assert find_quarantined_branch(lake.catalog, "r1").branch == name


def test_an_attempt_that_changed_nothing_leaves_no_quarantine(lake: MemoryLake) -> None:
    branch = Run(lake, "r1").open()
    input = QuarantineBranchInput(branch=branch, name="quarantine/p/2026-01-31/r1", properties={})
    assert run_activity(QuarantineBranchActivity(lake.catalog, "here").quarantine_branch, input) == ""
    assert [each.name for each in lake.catalog.list_branches()] == ["main"]


def test_a_roll_back_restores_an_earlier_version(lake: MemoryLake) -> None:
    for number in (1, 2):
        run = Run(lake, f"r{number}")
        publication = run.publish(*write_rows(run, number))
    back = Run(lake, "back")
    restore = Restore(runs=["r2"], main_head=lake.catalog.head("main"), tables={"t.x": publication.main_before})
    activity = RestoreTablesActivity(lake.catalog, {}, "here").restore_tables
    input = RestoreTablesInput(run_ref=back.ref, restore=restore)
    result = run_activity(activity, input)
    assert run_activity(activity, input) == result
    change = result.write_result.tables["t.x"]
    assert (change.operation, change.deleted_rows, change.total_rows) == ("restore", 1, 1)
    assert back.publish(result.branch, result.write_result.head).merged and lake.ids("t.x") == [1]
    with pytest.raises(ApplicationError, match=r"main changed t\.x since this roll-back was planned"):
        run_activity(activity, input.model_copy(update={"run_ref": Run(lake, "late").ref}))


def test_a_catalog_without_a_capability_refuses_before_spark_starts(tmp_path: Path) -> None:
    catalog = MemoryCatalog(capabilities=replace(CAPABILITIES, new_tables=False))
    with pytest.raises(ApplicationError, match=r"cannot create a table on a branch \(t\.x\)") as refused:
        Run(MemoryLake(catalog, tmp_path), "r1").open()
    assert (refused.value.type, refused.value.non_retryable) == ("InvalidPipeline", True)
    assert [each.name for each in catalog.list_branches()] == ["main"]


def test_a_catalog_without_properties_on_commits_refuses_every_pipeline(tmp_path: Path) -> None:
    catalog = MemoryCatalog(capabilities=replace(CAPABILITIES, commit_properties=False))
    with pytest.raises(ApplicationError, match="does not store properties of commits, and every pipeline") as refused:
        Run(MemoryLake(catalog, tmp_path), "r1").open()
    assert (refused.value.type, refused.value.non_retryable) == ("InvalidPipeline", True)
    assert [each.name for each in catalog.list_branches()] == ["main"]


def test_another_catalog_is_noticed(lake: MemoryLake) -> None:
    branch, written = Run(lake, "r1").write(1)
    other = branch.model_copy(update={"catalog_id": "another"})
    with pytest.raises(ApplicationError) as refused:
        Run(lake, "r1").publish(other, written.head)
    assert refused.value.type == "CatalogChanged"


def test_verdicts_are_recorded_once_on_an_orphan_branch(catalog: MemoryCatalog, tmp_path: Path) -> None:
    table = AuditResultsTable(catalog, tmp_path.as_uri(), {})
    assert table.read() is None
    for run_id, again in (("r1", False), ("r1", False), ("r1", True), ("r2", False)):
        table.record(run_id, [{"run_id": run_id, "pipeline": "p"}], again=again)
    recorded = table.read()
    assert recorded and sorted(recorded.scan().to_arrow()["run_id"].to_pylist()) == ["r1", "r2"]
    assert catalog.table_version("main", "sluice.audit_results") is None


def test_a_table_is_read_at_the_snapshot_of_its_version(lake: MemoryLake) -> None:
    """Two versions may share a metadata file: the snapshots between them count as written."""
    run = Run(lake, "r1")
    branch = run.open()
    for number in (1, 2, 3):
        lake.append(branch.name, "t.x", [number], run.ref)
    newest = lake.catalog.table_version(branch.name, "t.x")
    assert newest and newest.snapshot_id
    snapshots = load_table(newest, {}).snapshots()
    first, second = (replace(newest, snapshot_id=each.snapshot_id) for each in snapshots[:2])
    assert load_table(second, {}).scan().to_arrow()["id"].to_pylist() in ([1, 2], [2, 1])
    state = TableState.load(second, first, {})
    assert [each.snapshot_id for each in state.snapshots] == [second.snapshot_id]
    assert (state.change().added_rows, state.change().total_rows) == (1, 2)
    assert TableState.load(replace(newest, snapshot_id=None), None, {}).snapshots == []
