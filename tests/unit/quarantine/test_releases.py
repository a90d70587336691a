"""Releases: the resumed rows are verified like a write, published once, and otherwise stay in the quarantine."""

from collections.abc import Iterator

import pytest
from temporalio.exceptions import ApplicationError

from activities.publishing.restore_tables import RestoreTablesActivity
from activities.quarantine.discard_quarantine import DiscardQuarantineActivity
from activities.quarantine.manage_quarantine import ManageQuarantineActivity
from lakehouse.catalog import TableCommit
from lakehouse.quarantine.quarantined_branches import find_quarantined_branch, read_quarantined_branch
from sluice.contracts.existing_rows import Restore, RestoreTablesInput, Resume
from sluice.contracts.load_order import ANY_ORDER
from sluice.contracts.quarantine import DiscardQuarantineInput, ManageQuarantineInput, VerifiedWrite
from sluice.pipeline.write import Write
from sluice.publishing.commit_properties import BASE, EXPIRES, INSTALLATION, QUARANTINED, VERIFIED
from sluice.publishing.load_properties import REQUEUED_RUNS, requeue_properties
from sluice.publishing.release import release_workflow_id
from tests.harness.activity import run_activity
from tests.harness.memory_lake import MemoryLake
from tests.harness.quarantined_run import HERE, LATER, FakeWorkflows, LakeRun
from tests.harness.quarantined_run import plan_release as plan


@pytest.fixture(autouse=True)
def nothing_else_moves(lake: MemoryLake) -> Iterator[None]:
    """Assert that no release without a publication changed a quarantine. Tests delete none unless they say so."""
    yield
    for each in lake.catalog.list_branches("quarantine/"):
        assert EXPIRES in each.properties


def snapshot(lake: MemoryLake, branch: str) -> tuple[str, dict[str, str]]:
    kept = read_quarantined_branch(lake.catalog, branch)
    return kept.head, dict(kept.properties)


def release(lake: MemoryLake, resume: Resume, tables: tuple[str, ...] = ("t.x",)) -> LakeRun:
    run = LakeRun(lake, tables)
    brought = run.resume(resume)
    assert run.publish(brought.branch, brought.write_result, resume=resume).merged
    return run


def redescribe(lake: MemoryLake, branch: str, properties: dict[str, str]) -> None:
    lake.catalog.commit_tables(branch, lake.catalog.head(branch), "by hand", properties=properties)


# The released rows


def test_half_of_a_job_over_two_tables_is_never_publishable(lake: MemoryLake) -> None:
    run = LakeRun(lake, ("t.x", "t.y"))
    branch = run.open()
    run.append(branch, 1, tables=["t.x"])  # the job died before the second table
    kept = run.quarantine(branch, None)
    for statements in ([], ["UPDATE t.x SET id = 2"]):
        with pytest.raises(ApplicationError, match=r"ended before the write was verified.*run the pipeline again"):
            plan(lake, run.run_id, *statements)
    quarantined = read_quarantined_branch(lake.catalog, kept)
    forged = Resume(branch=kept, run_id=run.run_id, base=quarantined.base, head=quarantined.quarantined_hash)
    with pytest.raises(ApplicationError, match="ended before the write was verified") as refused:
        LakeRun(lake, ("t.x", "t.y")).resume(forged)
    assert refused.value.non_retryable and not quarantined.summary.verified


def test_a_whole_write_over_two_tables_is_released_whole(lake: MemoryLake) -> None:
    run = LakeRun(lake, ("t.x", "t.y"))
    kept = run.quarantined(1, 2)
    assert find_quarantined_branch(lake.catalog, run.run_id).summary.verified
    LakeRun(lake, ("t.x",)).published(7)  # main changed one of the tables
    released = release(lake, plan(lake, run.run_id), ("t.x", "t.y"))
    assert (lake.ids("t.x"), lake.ids("t.y")) == ([1, 2, 7], [1, 2])
    commit = lake.catalog.find_published({"sluice.released-run": run.run_id})
    assert commit and commit.properties["sluice.run-id"] == released.run_id
    assert lake.catalog.find_head(kept) is not None, "deleting it is the last step of the workflow"


def test_a_pipeline_that_names_fewer_tables_now_is_refused(lake: MemoryLake) -> None:
    run = LakeRun(lake, ("t.x", "t.y"))
    run.quarantined(1)
    with pytest.raises(ApplicationError, match=r"changes t\.y, which the pipeline does not name"):
        LakeRun(lake, ("t.x",)).resume(plan(lake, run.run_id))


def test_a_pipeline_that_appends_now_cannot_rebase_what_did_not(lake: MemoryLake) -> None:
    """Files of a merge or an overwrite depend on main at that time."""
    run = LakeRun(lake, write=Write.model_validate({"job": "job.py", "on_conflict": "rewrite"}))
    run.quarantined(1)
    LakeRun(lake).published(2)
    with pytest.raises(ApplicationError, match="may depend on the earlier rows of main"):
        LakeRun(lake).resume(plan(lake, run.run_id))
    assert lake.ids("t.x") == [2]


@pytest.mark.parametrize("wrong", ["rows", "table", "foreign"])
def test_a_quarantine_that_is_not_what_its_run_verified_is_refused(lake: MemoryLake, wrong: str) -> None:
    run, other = LakeRun(lake), LakeRun(lake)
    branch = run.open()
    run.append(branch, 1)
    if wrong == "foreign":
        lake.append(branch.name, "t.x", [2], other.ref)
    head = lake.catalog.head(branch.name)
    tables = {"rows": {"t.x": 3}, "table": {"t.x": 1, "t.y": 1}, "foreign": {"t.x": 2}}[wrong]
    kept = run.quarantine(branch, None)
    verified = VerifiedWrite(head=head, attempt=1, tables=tables, appends=True).model_dump_json()
    redescribe(lake, kept, {**snapshot(lake, kept)[1], VERIFIED: verified})
    with pytest.raises(ApplicationError, match=r"the rebase of t\.x has|contains \[|did not make") as refused:
        LakeRun(lake, ("t.x", "t.y")).resume(plan(lake, run.run_id))
    assert refused.value.type == "UnexpectedWrite"


def test_a_data_file_that_main_holds_is_not_added_again(lake: MemoryLake) -> None:
    """Somebody may have added the files of a quarantine to main by hand."""
    run = LakeRun(lake)
    LakeRun(lake).published(7)
    kept = run.quarantined(1)
    version = lake.catalog.table_version(kept, "t.x")
    lake.catalog.commit_tables("main", lake.catalog.head("main"), "by hand", [TableCommit("t.x", version)])
    LakeRun(lake).published(8)
    with pytest.raises(ApplicationError, match=r"t\.x would list .* more than once"):
        LakeRun(lake).resume(plan(lake, run.run_id))
    assert lake.ids("t.x") == [1, 7, 8]


def test_a_request_that_names_another_hash_is_refused(lake: MemoryLake) -> None:
    run, other = LakeRun(lake), LakeRun(lake)
    run.quarantined(1)
    other.quarantined(2)
    resume, foreign = plan(lake, run.run_id), plan(lake, other.run_id)
    for forged in (
        resume.model_copy(update={"head": foreign.head}),
        resume.model_copy(update={"run_id": foreign.run_id}),
        resume.model_copy(update={"base": lake.catalog.head("main") + "x"}),
    ):
        with pytest.raises(ApplicationError, match="is not the quarantine that this release was planned for"):
            LakeRun(lake).resume(forged)


def test_a_partition_that_is_published_together_with_others_is_not_released_by_itself(lake: MemoryLake) -> None:
    """Both the plan and a run that was started without a plan are refused."""
    run = LakeRun(lake)
    kept = run.quarantined(1, 2, target="sluice/backfill/here/p")
    quarantined = read_quarantined_branch(lake.catalog, kept)
    forged = Resume(branch=kept, run_id=run.run_id, base=quarantined.base, head=quarantined.quarantined_hash)
    for refused in (lambda: plan(lake, kept), lambda: LakeRun(lake).resume(forged)):
        with pytest.raises(ApplicationError, match="begin it again by `backfill retry"):
            refused()


def test_what_another_installation_quarantined_is_its_own(lake: MemoryLake) -> None:
    run = LakeRun(lake)
    run.quarantined(1, installation="elsewhere")
    with pytest.raises(ApplicationError, match="belongs to the installation 'elsewhere', and this one is 'here'"):
        plan(lake, run.run_id)


def test_a_quarantine_of_a_branch_that_was_fenced_before_is_released_too(lake: MemoryLake) -> None:
    """It is recreated from the verified versions of its tables, under another hash."""
    run = LakeRun(lake)
    branch = run.open()
    run.append(branch, 1)
    written = run.verify(branch)
    lake.catalog.delete_branch(branch.name)
    run.quarantine(branch, written)
    kept = find_quarantined_branch(lake.catalog, run.run_id)
    assert kept.quarantined_hash != written.head and kept.summary.verified
    release(lake, plan(lake, run.run_id))
    assert lake.ids("t.x") == [1]


# Published once


def test_two_releases_at_once_publish_once(lake: MemoryLake) -> None:
    """The second meets a conflict and checks again: the quarantine still exists, and main has its rows."""
    run = LakeRun(lake)
    run.quarantined(1)
    resume = plan(lake, run.run_id)
    second = LakeRun(lake)
    waiting = second.resume(resume)
    release(lake, resume)
    publication = second.publish(waiting.branch, waiting.write_result, resume=resume)
    assert (publication.merged, publication.conflicts) == (False, ["t.x"])
    second.ref = second.ref.model_copy(update={"attempt": 2})
    with pytest.raises(ApplicationError, match=r"the rows of .* were published by p-.*quarantine discard"):
        second.resume(resume)
    with pytest.raises(ApplicationError, match="were published by"):
        plan(lake, run.run_id)
    assert lake.ids("t.x") == [1]


def test_a_repair_after_a_release_publishes_nothing_although_it_would_write_other_files(lake: MemoryLake) -> None:
    run = LakeRun(lake)
    run.quarantined(1)
    repair = plan(lake, run.run_id, "UPDATE t.x SET id = 2")
    release(lake, plan(lake, run.run_id))
    with pytest.raises(ApplicationError, match="were published by"):
        LakeRun(lake).resume(repair)


def test_a_run_that_was_published_after_all_is_not_released(lake: MemoryLake) -> None:
    run = LakeRun(lake)
    branch = run.open()
    run.append(branch, 1)
    written = run.verify(branch)
    kept = run.quarantine(branch, written)
    lake.catalog.create_branch(branch.name, written.head)
    assert run.publish(branch, written).merged  # a merge that was already under way
    with pytest.raises(ApplicationError, match=f"were published by {run.ref.workflow_id}"):
        plan(lake, run.run_id)
    assert lake.catalog.find_head(kept)


def test_a_release_that_was_rolled_back_may_be_repeated(lake: MemoryLake) -> None:
    LakeRun(lake).published(7)
    run = LakeRun(lake)
    run.quarantined(1)
    before = lake.catalog.head("main")
    released = release(lake, plan(lake, run.run_id))
    back = LakeRun(lake)
    restore = Restore(runs=[released.run_id], main_head=lake.catalog.head("main"), tables={"t.x": before})
    input = RestoreTablesInput(run_ref=back.ref, restore=restore)
    restored = run_activity(RestoreTablesActivity(lake.catalog, {}, HERE).restore_tables, input)
    assert back.publish(restored.branch, restored.write_result, restore=restore).merged
    assert lake.ids("t.x") == [7]
    release(lake, plan(lake, run.run_id))
    assert lake.ids("t.x") == [1, 7]


def test_a_release_of_requeued_rows_names_the_runs_that_had_them_first(lake: MemoryLake) -> None:
    """In an earlier version, it did not, and a second requeue added them beside a corrected version of their file."""
    run = LakeRun(lake)
    kept = run.quarantined(1)
    requeued = {REQUEUED_RUNS: "r1,r2"}
    redescribe(lake, kept, {**read_quarantined_branch(lake.catalog, kept).properties, **requeued})
    assert requeue_properties(ANY_ORDER, plan(lake, run.run_id)) == requeued


def test_every_release_of_a_quarantine_is_the_same_workflow() -> None:
    first = release_workflow_id("p", "quarantine/p/d/r", "h" * 64)
    assert first == release_workflow_id("p", "quarantine/p/d/r", "h" * 64) and first.startswith("p-")
    assert first != release_workflow_id("p", "quarantine/p/d/r", "g" * 64)


# Unchanged quarantines


@pytest.mark.parametrize("why", ["rejected", "overtaken", "refused"])
def test_a_release_that_does_not_publish_leaves_the_quarantine_as_it_was(lake: MemoryLake, why: str) -> None:
    run = LakeRun(lake)
    kept = run.quarantined(1)
    before = snapshot(lake, kept)
    resume = plan(lake, run.run_id)
    second = LakeRun(lake)
    if why == "refused":
        with pytest.raises(ApplicationError):
            second.resume(resume.model_copy(update={"head": "x"}))
    else:
        brought = second.resume(resume)
        if why == "overtaken":
            LakeRun(lake).published(2)
            assert not second.publish(brought.branch, brought.write_result, resume=resume).merged
        lake.catalog.delete_branch(brought.branch.name)
    assert snapshot(lake, kept) == before
    release(lake, plan(lake, run.run_id))


def test_a_quarantine_that_is_gone_is_named(lake: MemoryLake) -> None:
    run = LakeRun(lake)
    kept = run.quarantined(1)
    resume = plan(lake, run.run_id)
    lake.catalog.delete_branch(kept)
    with pytest.raises(ApplicationError, match="discarded or released, or it expired"):
        LakeRun(lake).resume(resume)


# After the publication


def discard(lake: MemoryLake, branch: str, head: str) -> str:
    activity = DiscardQuarantineActivity(lake.catalog).discard_quarantine
    input = DiscardQuarantineInput(branch=branch, head=head, catalog_id=lake.catalog.identity())
    left: str = run_activity(activity, input)
    return left


def test_a_released_quarantine_is_deleted_at_the_hash_that_was_released(lake: MemoryLake) -> None:
    run = LakeRun(lake)
    kept = run.quarantined(1)
    resume = plan(lake, run.run_id)
    keep = ManageQuarantineInput(action="keep", branch=kept, by="ana", until="2200-01-01T00:00:00+00:00")
    run_activity(ManageQuarantineActivity(lake.catalog, FakeWorkflows(), HERE).manage_quarantine, keep)
    assert discard(lake, kept, resume.head) == "" == discard(lake, kept, resume.head)
    assert lake.catalog.find_head(kept) is None


def test_a_quarantine_that_somebody_changed_outlives_its_release(lake: MemoryLake) -> None:
    run = LakeRun(lake)
    kept = run.quarantined(1)
    resume = plan(lake, run.run_id)
    described = snapshot(lake, kept)[1]
    lake.append(kept, "t.x", [5])
    redescribe(lake, kept, described)
    assert "was changed meanwhile, so it was not deleted" in discard(lake, kept, resume.head)
    assert lake.ids("t.x", kept) == [1, 5]


def test_only_quarantines_of_that_hash_are_deleted(lake: MemoryLake) -> None:
    run = LakeRun(lake)
    kept = run.quarantined(1)
    head = plan(lake, run.run_id).head
    for name, hash in (("main", lake.catalog.head("main")), (kept, "another")):
        assert "was not deleted" in discard(lake, name, hash)
    assert lake.catalog.find_head("main") and lake.catalog.find_head(kept) and head


# Concurrent actions of people


def test_a_quarantine_is_not_discarded_while_it_is_released_and_may_be_kept_longer(lake: MemoryLake) -> None:
    run = LakeRun(lake)
    kept = run.quarantined(1)
    resume = plan(lake, run.run_id)
    releasing = FakeWorkflows(release_workflow_id("p", kept, resume.head))
    manage = ManageQuarantineActivity(lake.catalog, releasing, HERE).manage_quarantine
    with pytest.raises(ApplicationError, match=r"is not discarded while p-.* releases it: .*cancel it first"):
        run_activity(manage, ManageQuarantineInput(action="discard", branch=kept, by="ana"))
    keep = ManageQuarantineInput(action="keep", branch=kept, by="ana", until=LATER)
    assert run_activity(manage, keep) == kept
    release(lake, resume)
    idle = ManageQuarantineActivity(lake.catalog, FakeWorkflows(), HERE).manage_quarantine
    assert run_activity(idle, ManageQuarantineInput(action="discard", branch=kept, by="ana")) == ""
    assert lake.catalog.find_head(kept) is None


# Incomplete quarantines


@pytest.mark.parametrize("missing", [QUARANTINED, BASE, EXPIRES, INSTALLATION])
def test_a_quarantine_that_lacks_something_says_what(lake: MemoryLake, missing: str) -> None:
    run = LakeRun(lake)
    kept = run.quarantined(1)
    properties = {key: value for key, value in snapshot(lake, kept)[1].items() if key != missing}
    redescribe(lake, kept, {**properties, EXPIRES: properties.get(EXPIRES, "")})
    assert missing in find_quarantined_branch(lake.catalog, kept).summary.problem
    with pytest.raises(ApplicationError, match=f"cannot be released or repaired: its last commit lacks {missing}"):
        plan(lake, run.run_id)
