"""The contract of catalogs: quarantines, and earlier versions of tables that come back."""

import uuid

import pytest

from lakehouse.catalog import TableCommit
from lakehouse.publishing.published_commits import list_published_commits
from lakehouse.quarantine.quarantined_branches import (
    create_quarantine,
    find_quarantined_branch,
    list_quarantined_branches,
)
from sluice.errors import CatalogRefused, NoSuchBranch
from sluice.publishing.commit_properties import BASE, REASON, RUN_ID
from tests.harness.contract_lake import Lake, require

# Quarantine


def test_a_quarantine_outlives_its_branch_and_describes_itself(lake: Lake) -> None:
    branch, head = lake.open("a1", lake.put(1))
    name, run_id = lake.name("kept").replace("wap/", "quarantine/"), lake.table()
    described = {RUN_ID: run_id, BASE: branch.base, REASON: "two rows are bad"}
    for _ in range(2):  # a repeat after a lost answer
        create_quarantine(lake.catalog, name, head, branch.name, described)
    lake.catalog.delete_branch(branch.name)
    create_quarantine(lake.catalog, name, head, branch.name, described)
    try:
        kept = find_quarantined_branch(lake.catalog, run_id)
        assert (kept.branch, kept.base, kept.quarantined_hash) == (name, branch.base, head)
        assert name in [each.branch for each in list_quarantined_branches(lake.catalog)]
        (diff,) = lake.catalog.diff(kept.base, name, kept.quarantined_hash)
        assert (diff.name, diff.after) == (lake.table(), lake.version(1))
    finally:
        lake.catalog.delete_branch(name)


def test_a_copy_of_a_branch_that_is_gone_fails(lake: Lake) -> None:
    branch, head = lake.open("a1", lake.put(1))
    lake.catalog.delete_branch(branch.name)
    with pytest.raises(NoSuchBranch):
        lake.catalog.copy_branch(lake.name("copy"), branch.name, head)


def test_a_copy_under_a_name_that_is_taken_is_refused(lake: Lake) -> None:
    branch, head = lake.open("a1", lake.put(1))
    other, _ = lake.open("other", lake.put(1, "two"))
    with pytest.raises(CatalogRefused):
        lake.catalog.copy_branch(other.name, branch.name, head)


# Roll-back


def test_a_table_goes_back_to_an_earlier_version(lake: Lake) -> None:
    first = lake.published("a1", lake.put(1), run="r1")
    lake.published("a2", lake.put(2), run="r2")
    earlier = lake.catalog.table_version(lake.catalog.main, lake.table(), first.main_after)
    assert earlier == lake.version(1)
    branch, head = lake.open("back", TableCommit(lake.table(), earlier))
    (diff,) = lake.catalog.diff(branch.base, branch.name, head)
    assert (diff.before, diff.after) == (lake.version(2), lake.version(1))
    assert lake.publish(branch, head).merged and lake.on_main() == lake.version(1)


def test_a_created_table_is_dropped_and_comes_back(lake: Lake) -> None:
    require(lake, "new_tables")
    lake.published("a1", lake.put(1))
    lake.published("drop", lake.drop())
    assert lake.on_main() is None
    lake.published("restore", lake.put(1))
    assert lake.on_main() == lake.version(1)


def test_what_commits_on_main_published_is_listed(lake: Lake) -> None:
    run = uuid.uuid4().hex
    first = lake.published("a1", lake.put(1), lake.put(1, "two"), **{RUN_ID: run})
    second = lake.published("a2", lake.put(2, "two"), **{RUN_ID: "later"})
    later, earlier = list_published_commits(lake.catalog, run)
    assert (later.hash, set(later.tables)) == (second.main_after, {lake.table("two")})
    assert (earlier.hash, earlier.parent) == (first.main_after, first.main_before)
    assert (earlier.run_id, set(earlier.tables)) == (run, {lake.table(), lake.table("two")})
