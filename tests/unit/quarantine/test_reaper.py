"""One round of the reaper: each branch by itself, at the head that was read, and only branches of its installation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.quarantine import reap_branches
from activities.quarantine.describe_quarantine import DescribeQuarantineActivity
from activities.quarantine.list_quarantine import ListQuarantineActivity
from activities.quarantine.reap_branches import ReapBranchesActivity
from activities.run.open_branch import OpenBranchActivity
from lakehouse.audit.report_store import ReportStore
from lakehouse.catalog import TableCommit, TableVersion
from lakehouse.quarantine.quarantined_branches import read_quarantined_branch
from sluice.contracts.quarantine import ReapBranchesInput, ReapBranchesResult
from sluice.contracts.quarantine_queries import DescribeQuarantineInput, ListQuarantineInput
from sluice.contracts.write import OpenBranchInput
from sluice.publishing.commit_properties import (
    ATTEMPT,
    BASE,
    EXPIRES,
    INSTALLATION,
    PIPELINE,
    QUARANTINED,
    RUN_ID,
    WORKFLOW_ID,
)
from sluice.publishing.release import release_workflow_id
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.quarantined_run import HERE, LATER, PAST, FakeWorkflows, LakeRun, plan_release


def reap(lake: MemoryLake, *running: str, installation: str = HERE, is_away: bool = False) -> ReapBranchesResult:
    activity = ReapBranchesActivity(lake.catalog, {}, FakeWorkflows(*running, is_away=is_away), installation)
    result: ReapBranchesResult = run_activity(activity.reap_branches, ReapBranchesInput(grace=0))
    return result


def written(lake: MemoryLake, *ids: int) -> LakeRun:
    run = LakeRun(lake)
    run.append(run.open(), *ids)
    return run


def redescribe(lake: MemoryLake, branch: str, changes: dict[str, str]) -> None:
    properties = {**read_quarantined_branch(lake.catalog, branch).properties, **changes}
    named = {key: value for key, value in properties.items() if value}
    lake.catalog.commit_tables(branch, lake.catalog.head(branch), "by hand", properties=named)


# Owner of a branch


def test_another_installation_leaves_orphans_and_expired_quarantines_alone(lake: MemoryLake) -> None:
    orphan, kept = written(lake, 1).ref.branch, LakeRun(lake).quarantined(2, expires=PAST)
    result = reap(lake, installation="elsewhere")
    assert (result.quarantined, result.expired, result.other_installations) == ([], [], {HERE: 2})
    assert lake.catalog.find_head(orphan) and lake.catalog.find_head(kept)
    result = reap(lake)
    assert len(result.quarantined) == 1 and result.expired == [kept]


@pytest.mark.parametrize("running", ["same run", "reset"])
def test_a_run_that_goes_on_keeps_its_branch_also_under_the_run_id_of_a_reset(lake: MemoryLake, running: str) -> None:
    run = written(lake, 1)
    workflow_id = run.ref.workflow_id
    result = reap(lake, f"{workflow_id}/{run.run_id}" if running == "same run" else workflow_id)
    assert result == ReapBranchesResult() and lake.catalog.find_head(run.ref.branch)


def test_a_job_that_commits_as_another_run_does_not_hand_its_branch_over(lake: MemoryLake) -> None:
    """A job may commit anything to its branch, but the first commit, which the run wrote, counts."""
    run = written(lake, 1)
    forged = {RUN_ID: run.run_id, WORKFLOW_ID: "ended-long-ago", PIPELINE: "p", INSTALLATION: HERE, ATTEMPT: "1"}
    lake.catalog.commit_tables(run.ref.branch, lake.catalog.head(run.ref.branch), "x", properties=forged)
    assert reap(lake, run.ref.workflow_id) == ReapBranchesResult()
    assert lake.catalog.find_head(run.ref.branch)


def test_a_published_branch_that_was_left_behind_is_deleted(lake: MemoryLake) -> None:
    run = LakeRun(lake)
    run.published(1)
    assert reap(lake).deleted == [run.ref.branch] and lake.ids("t.x") == [1]


def test_an_attempt_of_a_run_that_another_attempt_published_is_deleted(lake: MemoryLake) -> None:
    """Its rows are on main already. Their quarantine would invite people to load them twice."""
    first = written(lake, 1)
    second = LakeRun(lake, run_id=first.run_id)
    second.ref = first.ref.model_copy(update={"attempt": 2})
    second.published(1)
    result = reap(lake)
    assert sorted(result.deleted) == [first.ref.branch, second.ref.branch]
    assert result.quarantined == [] and lake.ids("t.x") == [1]


def test_a_terminated_run_that_publishes_nothing_leaves_no_quarantine(lake: MemoryLake) -> None:
    """Somebody could release the rows that a rehearsal generated."""
    run = LakeRun(lake)
    input = OpenBranchInput(
        run_ref=run.ref, tables={}, schema_is_fixed=False, input_digest="d", again=True, publish=False
    )
    opening = OpenBranchActivity(lake.catalog, {}, HERE, lake.loaded_files)
    run.append(run_activity(opening.open_branch, input), 1)
    result = reap(lake)
    assert (result.deleted, result.quarantined) == ([run.ref.branch], [])


# A waiting release


def test_an_expired_quarantine_is_kept_while_its_release_waits(lake: MemoryLake) -> None:
    run = LakeRun(lake)
    kept = run.quarantined(1, expires=PAST)
    release = release_workflow_id("p", kept, read_quarantined_branch(lake.catalog, kept).quarantined_hash)
    result = reap(lake, release)
    assert (result.in_use, result.expired, result.kept) == ([kept], [], 1)
    assert reap(lake).expired == [kept]


def test_what_an_orphaned_release_brought_is_in_its_quarantine_already(lake: MemoryLake) -> None:
    run, lost = LakeRun(lake), LakeRun(lake)
    kept = run.quarantined(1)
    resume = plan_release(lake, run.run_id)
    lost.resume(resume)
    result = reap(lake)
    assert (result.deleted, result.quarantined) == ([lost.ref.branch], [])
    assert lake.ids("t.x", kept) == [1]
    lost = LakeRun(lake)
    lost.resume(resume)
    lake.catalog.delete_branch(kept)  # by hand: the rows are nowhere else now
    (saved,) = reap(lake).quarantined
    assert lake.ids("t.x", saved) == [1]


def test_what_the_run_quarantined_itself_is_not_quarantined_again(lake: MemoryLake) -> None:
    """It may be terminated between the quarantine and the deletion of its branch."""
    run = LakeRun(lake)
    branch = run.open()
    run.append(branch, 1)
    head = lake.catalog.head(branch.name)
    run.quarantine(branch, run.verify(branch))
    lake.catalog.create_branch(branch.name, head)
    result = reap(lake)
    assert (result.deleted, result.quarantined) == ([branch.name], [])


# One malformed branch


def test_one_malformed_branch_does_not_stop_the_round(lake: MemoryLake) -> None:
    """In an earlier version, each of these made the whole round fail, and the branches after it had to wait."""
    catalog, main = lake.catalog, lake.catalog.initialize_main()
    version = TableVersion("file:///nowhere/00000.metadata.json", 1)
    dated, undescribed, naive, nonsense, unreadable = (LakeRun(lake).quarantined(2, expires=PAST) for _ in range(5))
    head = catalog.commit_tables(unreadable, catalog.head(unreadable), "x", [TableCommit("t.x", version)])
    named = {RUN_ID: "r", WORKFLOW_ID: "w", PIPELINE: "p", INSTALLATION: HERE, BASE: main, EXPIRES: PAST}
    catalog.commit_tables(unreadable, head, "by hand", properties={**named, QUARANTINED: head})
    redescribe(lake, dated, {EXPIRES: "the day after tomorrow"})
    redescribe(lake, undescribed, {BASE: "", QUARANTINED: ""})
    redescribe(lake, naive, {EXPIRES: "2026-01-01T00:00:00"})
    redescribe(lake, nonsense, {BASE: "no hash at all"})
    by_hand = "quarantine/by/hand"
    catalog.create_branch(by_hand, main)
    hostile, orphan = LakeRun(lake), written(lake, 5)
    catalog.create_branch(hostile.ref.branch, main)
    owner = {RUN_ID: hostile.run_id, WORKFLOW_ID: "w", PIPELINE: "../..", INSTALLATION: HERE}
    catalog.commit_tables(hostile.ref.branch, main, "open", [TableCommit("t.z", version)], owner)

    result = reap(lake)

    assert set(result.expired) == {undescribed, naive, nonsense, unreadable}
    assert catalog.find_head(dated) and catalog.find_head(by_hand) and catalog.find_head(hostile.ref.branch)
    (saved,) = result.quarantined
    assert orphan.run_id in saved and catalog.find_head(orphan.ref.branch) is None
    assert result.failed.keys() == {nonsense, unreadable, hostile.ref.branch} and result.failures == 3
    assert "is not a pipeline name" in result.failed[hostile.ref.branch]


def test_quarantines_that_lack_a_description_are_listed_and_shown(lake: MemoryLake, tmp_path: Path) -> None:
    whole, partial = LakeRun(lake).quarantined(1), LakeRun(lake).quarantined(2)
    redescribe(lake, partial, {QUARANTINED: ""})
    by_hand = "quarantine/by/hand"
    lake.catalog.create_branch(by_hand, lake.catalog.head("main"))
    listed = run_activity(ListQuarantineActivity(lake.catalog, {}).list_quarantine, ListQuarantineInput(sizes=True))
    problems = {entry.summary.branch: entry.summary.problem for entry in listed.quarantined}
    assert problems[whole] == "" and problems[partial] == f"its last commit lacks {QUARANTINED}"
    assert RUN_ID in problems[by_hand]
    describe = DescribeQuarantineActivity(lake.catalog, {}, ReportStore(tmp_path.as_uri(), {})).describe_quarantine
    for branch, tables in ((whole, ["t.x"]), (partial, []), (by_hand, [])):
        described = run_activity(describe, DescribeQuarantineInput(run=branch))
        assert (described.summary.problem, list(described.tables)) == (problems[branch], tables)


def test_a_service_that_is_away_ends_the_round_and_not_each_branch(lake: MemoryLake) -> None:
    branches = [LakeRun(lake).quarantined(number, expires=PAST) for number in range(12)]

    with pytest.raises(ApplicationError, match="it is away") as error:
        reap(lake, is_away=True)
    assert not error.value.non_retryable and all(map(lake.catalog.find_head, branches))


def test_a_round_reports_at_most_so_many_failures(lake: MemoryLake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise ValueError("token=abcdefghijkl is wrong")

    for number in range(4):
        LakeRun(lake).quarantined(number, expires=PAST)
    monkeypatch.setattr(reap_branches, "_MAX_FAILURES", 2)
    monkeypatch.setattr(reap_branches, "read_quarantined_tables", fail)
    result = reap(lake)
    assert (len(result.failed), result.failures, len(result.expired)) == (2, 4, 4)
    assert all("abcdefghijkl" not in why for why in result.failed.values())


# Concurrent changes


class _Moving(MemoryCatalog):
    """A catalog in which something happens to a branch just before it is deleted."""

    before_delete: Callable[[str], None] | None = None

    def delete_branch_at(self, name: str, head: str) -> None:
        """Call the hook, then delete the branch if it did not move."""
        if self.before_delete:
            self.before_delete(name)
        super().delete_branch_at(name, head)


def test_a_branch_that_moves_meanwhile_is_left_for_the_next_round(tmp_path: Path) -> None:
    catalog = _Moving()
    lake = MemoryLake(catalog, tmp_path)
    kept = LakeRun(lake).quarantined(1, expires=PAST)
    orphan = written(lake, 2)
    late = orphan.ref.branch

    def move(name: str) -> None:
        if name == kept:
            redescribe(lake, kept, {EXPIRES: LATER})  # somebody keeps it longer just now
        else:
            lake.append(name, "t.x", [9], orphan.ref)  # a zombie commits just now

    catalog.before_delete = move
    first = reap(lake)
    assert (first.expired, first.kept) == ([], 1) and catalog.find_head(kept) and catalog.find_head(late)
    assert lake.ids("t.x", first.quarantined[0]) == [2]
    catalog.before_delete = None
    second = reap(lake)
    assert catalog.find_head(late) is None and second.expired == [] and second.kept == 2
    (more,) = second.quarantined
    assert more != first.quarantined[0] and lake.ids("t.x", more) == [2, 9]


def test_two_rounds_at_once_do_what_one_does(tmp_path: Path) -> None:
    catalog = _Moving()
    lake = MemoryLake(catalog, tmp_path)
    kept, orphan = LakeRun(lake).quarantined(1, expires=PAST), written(lake, 2)
    inner: list[ReapBranchesResult] = []

    def other_round(_: str) -> None:
        catalog.before_delete = None
        inner.append(reap(lake))

    catalog.before_delete = other_round
    outer = reap(lake)
    assert outer.failures == inner[0].failures == 0
    assert kept in inner[0].expired and catalog.find_head(kept) is None and catalog.find_head(orphan.ref.branch) is None
    (saved,) = {each.name for each in catalog.list_branches("quarantine/")}
    assert lake.ids("t.x", saved) == [2]
