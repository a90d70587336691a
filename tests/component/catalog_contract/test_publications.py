"""The contract of catalogs: publications to main, repeated requests, and lost answers."""

import uuid
from datetime import datetime, timedelta, timezone

import pytest

from lakehouse.publishing.published_commits import find_merge_of_run
from sluice.errors import NoSuchBranch, ServiceUnavailable
from sluice.publishing.commit_properties import RUN_ID
from tests.harness.contract_lake import Lake, require

# Publish


def test_a_publish_changes_main_by_one_commit(lake: Lake) -> None:
    require(lake, "many_tables")
    branch, head = lake.open("a1", lake.put(1), lake.put(1, "two"))
    before = lake.catalog.head(lake.catalog.main)
    publication = lake.publish(branch, head, run="r1")
    assert (publication.merged, publication.main_before) == (True, before)
    assert publication.main_after == lake.catalog.head(lake.catalog.main)
    commit = next(lake.catalog.history(lake.catalog.main))
    assert (commit.hash, commit.parent, commit.message) == (publication.main_after, before, "publish")
    assert commit.properties.items() >= {"run": "r1"}.items()
    assert (lake.on_main(), lake.on_main("two")) == (lake.version(1), lake.version(1, "two"))


def test_a_publish_takes_exactly_the_given_hash(lake: Lake) -> None:
    branch, head = lake.open("a1", lake.put(1))
    lake.catalog.commit_tables(branch.name, head, "after the audit", [lake.put(2), lake.put(1, "two")])
    assert lake.publish(branch, head).merged
    assert (lake.on_main(), lake.on_main("two")) == (lake.version(1), None)


def test_a_publish_by_properties_is_found(lake: Lake) -> None:
    require(lake, "commit_properties")
    key = lake.table()
    lake.published("a1", lake.put(1), run=key, input="o'clock \\ 1")
    second = lake.published("a2", lake.put(2), run=key, input="2")
    lake.published("a3", lake.put(3, "two"), run="another")
    newest = lake.catalog.find_published({"run": key})
    assert newest and (newest.hash, newest.properties["input"]) == (second.main_after, "2")
    assert lake.catalog.find_published({"run": key, "input": "o'clock \\ 1"})
    assert lake.catalog.find_published({"run": key, "input": "3"}) is None


def test_a_publish_by_properties_is_found_after_a_hash(lake: Lake) -> None:
    require(lake, "commit_properties")
    key = lake.table()
    first = lake.published("a1", lake.put(1), run=key)
    second = lake.published("a2", lake.put(2), run="another")
    find = lake.catalog.find_published
    commits = [find({"run": key}, since) for since in ("", lake.base, first.main_before)]
    assert [commit and commit.hash for commit in commits] == [first.main_after] * 3
    assert find({"run": key}, first.main_after) is None and find({"run": key}, second.main_after) is None


def test_publishes_by_properties_are_listed_back_to_a_time(lake: Lake) -> None:
    require(lake, "commit_properties")
    key = lake.table()
    before = datetime.now(timezone.utc) - timedelta(minutes=5)
    first = lake.published("a1", lake.put(1), run=key, waives="it's")
    lake.published("a2", lake.put(2), run=key)
    lake.published("a3", lake.put(3), waives="it's")
    last = lake.published("a4", lake.put(4), run=key, waives="it's")
    wanted = {"run": key, "waives": "it's"}
    listed = list(lake.catalog.list_published(wanted, before))
    assert [each.hash for each in listed] == [last.main_after, first.main_after]
    assert listed[0].properties == wanted
    assert list(lake.catalog.list_published(wanted, before + timedelta(minutes=10))) == []
    assert list(lake.catalog.list_published({"run": key, "waives": "another"}, before)) == []


def test_a_run_is_found_by_whichever_attempt_published_it(lake: Lake) -> None:
    require(lake, "commit_properties")
    run, since = uuid.uuid4().hex, lake.catalog.head(lake.catalog.main)
    paused, head = lake.open("a1", lake.put(1))
    assert find_merge_of_run(lake.catalog, run, since) is None
    lake.published("other", lake.put(1, "two"))
    lake.open("a2", lake.put(2))
    merged = lake.publish(paused, head, **{RUN_ID: run})
    lake.published("third", lake.put(2, "two"))
    assert merged.merged and find_merge_of_run(lake.catalog, run, since) == merged
    assert find_merge_of_run(lake.catalog, run, "") == merged


def test_a_branch_that_is_deleted_is_not_merged(lake: Lake) -> None:
    """A fence relies on this: a merge that was not requested before the branch was deleted fails."""
    require(lake, "fencing_by_deletion")
    branch, head = lake.open("a1", lake.put(1))
    before = lake.catalog.head(lake.catalog.main)
    lake.catalog.delete_branch(branch.name)
    with pytest.raises(NoSuchBranch):
        lake.publish(branch, head)
    assert (lake.catalog.head(lake.catalog.main), lake.on_main()) == (before, None)


# Lost answer, repeat


def test_a_repeated_publish_finds_the_first(lake: Lake) -> None:
    lake.published("earlier", lake.put(1))
    branch, head = lake.open("a1", lake.put(2), lake.put(1, "created"))
    first = lake.publish(branch, head)
    assert lake.publish(branch, head) == first
    lake.published("second", lake.put(1, "two"))
    assert lake.publish(branch, head) == first
    publishing = [commit for commit in lake.catalog.history(lake.catalog.main) if commit.hash == first.main_after]
    assert len(publishing) == 1


def test_a_repeated_publish_is_recognised_in_the_declared_way(lake: Lake) -> None:
    """The answer to the first publish was lost: only the commit on main shows the outcome."""
    lake.published("earlier", lake.put(1))
    branch, head = lake.open("a1", lake.put(2))
    first = lake.publish(branch, head)
    lake.published("theirs", lake.put(1, "two"))
    (commit,) = [each for each in lake.catalog.history(lake.catalog.main) if each.hash == first.main_after]
    if lake.catalog.capabilities.repeated_publish == "merge parent":
        assert commit.merged == head
    else:
        assert head in commit.properties.values()
    before = lake.catalog.head(lake.catalog.main)
    again = lake.catalog.publish(branch, head, "ben", "publish again", {"another": "request"})
    assert (again, lake.catalog.head(lake.catalog.main)) == (first, before)


def test_a_commit_that_merged_nothing_names_no_merged_hash(lake: Lake) -> None:
    branch, _ = lake.open("a1", lake.put(1))
    assert next(lake.catalog.history(branch.name)).merged == ""


def test_a_publication_is_found_by_its_hash(lake: Lake) -> None:
    branch, head = lake.open("a1", lake.put(1))
    assert lake.catalog.find_publication(head, branch.base) is None
    publication = lake.publish(branch, head)
    lake.published("second", lake.put(1, "two"))
    lake.catalog.delete_branch(branch.name)
    assert lake.catalog.find_publication(head, branch.base) == publication
    assert lake.catalog.find_publication(head, "") == publication
    assert lake.catalog.find_publication(branch.base, branch.base) is None


def test_a_repeated_commit_is_not_done_twice(lake: Lake) -> None:
    branch, head = lake.open("a1", lake.put(1))
    newer = lake.catalog.commit_tables(branch.name, head, "second", [lake.put(2)])
    with pytest.raises(ServiceUnavailable):
        lake.catalog.commit_tables(branch.name, head, "second", [lake.put(2)])
    assert lake.catalog.head(branch.name) == newer
