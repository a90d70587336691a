"""Two concurrent tries to open a branch: an earlier one that is late deletes the branch of the next."""

import time

import pytest

from activities.run.attempt_branch import AttemptBranch
from sluice.contracts.references import RunRef
from sluice.errors import NoSuchBranch, ServiceUnavailable
from tests.harness.memory_catalog import MemoryCatalog


class DeletedMeanwhile(MemoryCatalog):
    """A catalog in which an earlier try deletes the branch once, after the present try has seen it."""

    deleted = False

    def fork_point(self, branch: str) -> str:
        if not self.deleted:
            self.deleted = True
            self.delete_branch(branch)
            raise NoSuchBranch(f"the branch {branch} does not exist")
        return super().fork_point(branch)


def test_a_branch_that_is_deleted_under_an_opening_is_opened_again() -> None:
    catalog = DeletedMeanwhile()
    catalog.create_branch("wap/x/r/a1", catalog.initialize_main())
    with pytest.raises(ServiceUnavailable, match="deleted by an earlier try that came too late"):
        AttemptBranch(catalog, "here", "wap/x/r/a1")
    assert not AttemptBranch(catalog, "here", "wap/x/r/a1").is_created


def test_a_task_that_another_worker_may_have_creates_no_branch() -> None:
    """A worker was paused while it polled, and gets a task that Temporal has given to another worker since."""
    catalog = MemoryCatalog()
    run = RunRef(run_id="r", workflow_id="w", pipeline="x", label="x", attempt=1)
    with pytest.raises(ServiceUnavailable, match="requested too long ago"):
        AttemptBranch(catalog, "here", run.branch, time.time() - 9).create(run, "Begin attempt 1")
    assert catalog.find_head(run.branch) is None


def test_a_branch_that_is_there_is_completed_however_long_ago_it_was_requested() -> None:
    catalog = MemoryCatalog()
    run = RunRef(run_id="r", workflow_id="w", pipeline="x", label="x", attempt=1)
    catalog.create_branch(run.branch, catalog.initialize_main())
    AttemptBranch(catalog, "here", run.branch, time.time() - 9).create(run, "Begin attempt 1")
    assert AttemptBranch(catalog, "here", run.branch).is_created
