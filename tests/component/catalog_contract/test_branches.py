"""The contract of catalogs: branches, the tables on them, and late writes to deleted branches."""

from datetime import datetime, timedelta, timezone

import pytest

from lakehouse.catalog import TableCommit, TableVersion
from sluice.errors import CatalogRefused, NoSuchBranch, ServiceUnavailable
from tests.harness.contract_lake import Lake, require

# Open


def test_main_is_initialized_once_and_stays_as_it_is(lake: Lake) -> None:
    head = lake.catalog.head(lake.catalog.main)
    assert lake.catalog.initialize_main() == head == lake.catalog.initialize_main()


def test_a_branch_begins_at_the_recorded_head_even_if_main_moved(lake: Lake) -> None:
    base = lake.catalog.head(lake.catalog.main)
    lake.published("other", lake.put(1, "other"))
    branch = lake.name()
    lake.catalog.create_branch(branch, base)
    assert lake.catalog.head(branch) == base == lake.catalog.fork_point(branch)


def test_a_repeated_create_changes_nothing(lake: Lake) -> None:
    branch = lake.name()
    lake.catalog.create_branch(branch, lake.base)
    lake.catalog.create_branch(branch, lake.base)
    assert lake.catalog.head(branch) == lake.base


def test_a_name_at_another_hash_is_refused(lake: Lake) -> None:
    branch, head = lake.open("a1", lake.put(1))
    with pytest.raises(CatalogRefused):
        lake.catalog.create_branch(branch.name, branch.base)
    assert lake.catalog.head(branch.name) == head


def test_the_first_commit_names_who_made_the_branch(lake: Lake) -> None:
    branch, head = lake.open("a1")
    commits = list(lake.catalog.history(branch.name))
    assert (commits[0].hash, commits[0].parent, commits[0].message) == (head, branch.base, "open")
    assert commits[0].properties == {"made-by": "a1"}
    assert abs(datetime.now(timezone.utc) - commits[0].committed_at) < timedelta(minutes=5)
    assert commits[1].hash == branch.base and lake.catalog.fork_point(branch.name) == branch.base


def test_a_branch_is_looked_for_by_name(lake: Lake) -> None:
    missing = lake.name("missing")
    assert lake.catalog.find_head(missing) is None
    with pytest.raises(NoSuchBranch, match=missing):
        lake.catalog.head(missing)
    branch, head = lake.open("a1")
    assert lake.catalog.find_head(branch.name) == lake.catalog.head(branch.name) == head


# Tables on a branch


def test_what_a_branch_holds_is_not_on_main(lake: Lake) -> None:
    require(lake, "new_tables")
    branch, head = lake.open("a1", lake.put(1))
    assert lake.catalog.table_version(branch.name, lake.table()) == lake.version(1)
    assert lake.catalog.table_version(branch.name, lake.table(), head) == lake.version(1)
    assert lake.catalog.table_version(branch.name, lake.table(), branch.base) is None
    assert lake.on_main() is None


def test_the_tables_of_a_branch_are_listed_at_a_hash(lake: Lake) -> None:
    require(lake, "new_tables")
    branch, head = lake.open("a1", lake.put(1))
    listed, before = (lake.catalog.list_tables(branch.name, at) for at in (head, branch.base))
    assert listed == sorted(listed) and set(listed) - set(before) == {lake.table()}


def test_an_earlier_hash_holds_the_earlier_version(lake: Lake) -> None:
    branch, first = lake.open("a1", lake.put(1))
    second = lake.catalog.commit_tables(branch.name, first, "second", [lake.put(2)])
    versions = [lake.catalog.table_version(branch.name, lake.table(), at) for at in (first, second, None)]
    assert versions == [lake.version(1), lake.version(2), lake.version(2)]


def test_two_versions_may_share_a_metadata_file(lake: Lake) -> None:
    """The snapshot is part of the version, since Iceberg's own branches share one metadata file."""
    branch, head = lake.open("a1", lake.put(1))
    other = lake.in_the_same_file()
    moved = lake.catalog.commit_tables(branch.name, head, "move", [TableCommit(lake.table(), other)])
    assert lake.catalog.table_version(branch.name, lake.table()) == other
    (diff,) = lake.catalog.diff(head, branch.name, moved)
    assert (diff.before, diff.after) == (lake.version(1), other)


def test_a_table_without_a_snapshot(lake: Lake) -> None:
    require(lake, "tables_without_snapshot")
    empty = TableVersion("file:///lake/empty.metadata.json", None)
    branch, _ = lake.open("a1", TableCommit(lake.table(), empty))
    assert lake.catalog.table_version(branch.name, lake.table()) == empty


def test_a_commit_of_properties_alone_changes_no_table(lake: Lake) -> None:
    require(lake, "commit_properties")
    branch, head = lake.open("a1", lake.put(1))
    newer = lake.catalog.commit_tables(branch.name, head, "describe", properties={"why": "it's “so”"})
    assert newer != head and lake.catalog.diff(head, branch.name, newer) == []
    assert next(lake.catalog.history(branch.name)).properties == {"why": "it's “so”"}


# Late writes of an attempt that was given up


def test_a_commit_to_a_deleted_branch_fails(lake: Lake) -> None:
    require(lake, "fencing_by_deletion")
    branch, head = lake.open("a1", lake.put(1))
    lake.catalog.delete_branch(branch.name)
    with pytest.raises(NoSuchBranch):
        lake.catalog.commit_tables(branch.name, head, "late", [lake.put(2)])
    with pytest.raises(NoSuchBranch):
        lake.publish(branch, head)
    assert lake.catalog.find_head(branch.name) is None and lake.on_main() is None


def test_a_deleted_branch_is_deleted_again(lake: Lake) -> None:
    branch, _ = lake.open("a1", lake.put(1))
    for _ in range(2):
        lake.catalog.delete_branch(branch.name)
    lake.catalog.delete_branch(lake.name("never"))
    assert lake.catalog.find_head(branch.name) is None


def test_a_commit_meant_for_an_earlier_branch_of_the_name_fails(lake: Lake) -> None:
    require(lake, "fencing_by_deletion")
    branch, head = lake.open("a1", lake.put(1))
    lake.catalog.delete_branch(branch.name)
    lake.catalog.create_branch(branch.name, branch.base)
    with pytest.raises((NoSuchBranch, ServiceUnavailable)):
        lake.catalog.commit_tables(branch.name, head, "late", [lake.put(2)])
    assert lake.catalog.head(branch.name) == branch.base


def test_a_branch_is_deleted_at_a_hash_only(lake: Lake) -> None:
    branch, head = lake.open("a1", lake.put(1))
    lake.catalog.delete_branch_at(branch.name, branch.base)
    assert lake.catalog.head(branch.name) == head
    lake.catalog.delete_branch_at(branch.name, head)
    lake.catalog.delete_branch_at(branch.name, head)
    assert lake.catalog.find_head(branch.name) is None


def test_two_commits_on_the_same_table_are_not_both_done(lake: Lake) -> None:
    branch, head = lake.open("a1", lake.put(1))
    newer = lake.catalog.commit_tables(branch.name, head, "first", [lake.put(2)])
    with pytest.raises(ServiceUnavailable):
        lake.catalog.commit_tables(branch.name, head, "second", [lake.put(3)])
    assert lake.catalog.head(branch.name) == newer


# Listing


def test_branches_are_listed_by_prefix_with_their_newest_commit(lake: Lake) -> None:
    first, _ = lake.open("b.1")
    second, head = lake.open("b-2/x")
    head = lake.catalog.commit_tables(second.name, head, "describe", properties={"newest": "yes"})
    prefix = first.name.removesuffix("1")
    assert [each.name for each in lake.catalog.list_branches(prefix)] == [first.name]
    listed = {each.name: each for each in lake.catalog.list_branches()}
    assert {first.name, second.name, lake.catalog.main} <= listed.keys()
    branch = listed[second.name]
    assert (branch.head, branch.properties) == (head, {"newest": "yes"})
    assert abs(datetime.now(timezone.utc) - branch.committed_at) < timedelta(minutes=5)
    lake.catalog.delete_branch(first.name)
    assert lake.catalog.list_branches(prefix) == []


def test_an_orphan_branch_shares_nothing_with_main(lake: Lake) -> None:
    lake.published("a1", lake.put(1))
    orphan = lake.name("orphan")
    head = lake.catalog.create_orphan_branch(orphan)
    assert lake.catalog.table_version(orphan, lake.table()) is None
    newer = lake.catalog.commit_tables(orphan, head, "first", [lake.put(5, "own")])
    assert lake.catalog.create_orphan_branch(orphan) == newer
    assert lake.catalog.table_version(orphan, lake.table("own")) == lake.version(5, "own")
    assert lake.on_main("own") is None
