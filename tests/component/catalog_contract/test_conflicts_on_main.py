"""The contract of catalogs: conflicts with a main that moved."""

from lakehouse.catalog import TableCommit
from lakehouse.iceberg.table_identity import is_another_table
from lakehouse.publishing.table_versions import tables_changed_since
from tests.harness.contract_lake import Lake, require


def test_main_that_moved_at_the_same_table_is_a_conflict(lake: Lake) -> None:
    lake.published("earlier", lake.put(1))
    branch, head = lake.open("first", lake.put(2))
    lake.published("second", lake.put(3))
    before = lake.catalog.head(lake.catalog.main)
    assert lake.catalog.find_conflicts(branch.name, head) == [lake.table()]
    publication = lake.publish(branch, head)
    assert (publication.merged, publication.conflicts) == (False, [lake.table()])
    assert (lake.on_main(), lake.catalog.head(lake.catalog.main)) == (lake.version(3), before)


def test_a_table_that_was_dropped_and_created_again_is_a_conflict(lake: Lake) -> None:
    lake.published("first", lake.put(1))
    branch, head = lake.open("a1", lake.put(2))
    first = lake.on_main()
    lake.published("drop", lake.drop())
    lake.published("again", TableCommit(lake.table(), lake.another_table()))
    assert lake.catalog.find_conflicts(branch.name, head) == [lake.table()]
    publication = lake.publish(branch, head)
    assert (publication.merged, publication.conflicts) == (False, [lake.table()])
    assert first is not None and lake.on_main() == lake.another_table()
    if first.identity:
        assert is_another_table(first, lake.on_main(), {})


def test_two_branches_that_create_the_same_table_conflict(lake: Lake) -> None:
    require(lake, "new_tables")
    branch, head = lake.open("first", lake.put(1))
    lake.published("second", lake.put(2))
    assert lake.catalog.find_conflicts(branch.name, head) == [lake.table()]
    assert lake.publish(branch, head).conflicts == [lake.table()]


def test_main_that_moved_at_another_table_is_no_conflict(lake: Lake) -> None:
    branch, head = lake.open("first", lake.put(1))
    lake.published("second", lake.put(1, "two"))
    assert lake.catalog.find_conflicts(branch.name, head) == []
    assert lake.publish(branch, head).merged
    assert (lake.on_main(), lake.on_main("two")) == (lake.version(1), lake.version(1, "two"))


def test_a_conflict_at_one_table_keeps_all_out(lake: Lake) -> None:
    require(lake, "many_tables")
    lake.published("earlier", lake.put(1), lake.put(1, "two"))
    branch, head = lake.open("first", lake.put(2), lake.put(2, "two"))
    lake.published("second", lake.put(3, "two"))
    assert lake.publish(branch, head).conflicts == [lake.table("two")]
    assert (lake.on_main(), lake.on_main("two")) == (lake.version(1), lake.version(3, "two"))


def test_a_look_for_conflicts_changes_nothing(lake: Lake) -> None:
    branch, head = lake.open("a1", lake.put(1))
    before = lake.catalog.head(lake.catalog.main)
    lake.catalog.find_conflicts(branch.name, head)
    lake.catalog.fork_point(branch.name)
    assert (lake.catalog.head(lake.catalog.main), lake.catalog.head(branch.name)) == (before, head)


def test_tables_that_main_changed_since_a_hash(lake: Lake) -> None:
    since = lake.published("earlier", lake.put(1), lake.put(1, "two")).main_after
    lake.published("later", lake.put(2))
    names = [lake.table(), lake.table("two"), lake.table("none")]
    assert tables_changed_since(lake.catalog, names, since) == [lake.table()]
    assert tables_changed_since(lake.catalog, names, since, at=since) == []
    assert tables_changed_since(lake.catalog, names, lake.base, at=since) == [lake.table(), lake.table("two")]
