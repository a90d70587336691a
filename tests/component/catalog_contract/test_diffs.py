"""The contract of catalogs: the difference between two hashes."""

import uuid

import pytest

from lakehouse.catalog import TableCommit
from lakehouse.nessie.catalog import NessieCatalog
from sluice.errors import NoSuchBranch
from sluice.identifiers import joined_name
from tests.harness.contract_lake import Lake, require

MANY: dict[type, int] = {NessieCatalog: 260}
"""Number of tables that exceeds one page of a catalog's answer, for the catalogs that answer in pages."""


def test_a_diff_has_tables_before_and_after(lake: Lake) -> None:
    lake.published("earlier", lake.put(1, "changed"), lake.put(1, "dropped"), lake.put(1, "kept"))
    tables = [lake.put(2, "changed"), lake.drop("dropped"), lake.put(1, "created")]
    branch, head = lake.open("a1", *tables)
    diffs = {diff.name: (diff.before, diff.after) for diff in lake.catalog.diff(branch.base, branch.name, head)}
    assert diffs == {
        lake.table("changed"): (lake.version(1, "changed"), lake.version(2, "changed")),
        lake.table("dropped"): (lake.version(1, "dropped"), None),
        lake.table("created"): (None, lake.version(1, "created")),
    }


def test_a_diff_never_has_namespaces(lake: Lake) -> None:
    branch, head = lake.open("a1")
    tables = [f"x{uuid.uuid4().hex}.inner.table"]
    newer = lake.catalog.commit_tables(branch.name, head, "namespaces", create_namespaces_for=tables)
    assert lake.catalog.diff(branch.base, branch.name, newer) == []
    again = lake.catalog.commit_tables(branch.name, newer, "again", create_namespaces_for=tables)
    assert lake.catalog.diff(branch.base, branch.name, again) == []


def test_changed_namespaces_are_told_apart_from_tables(lake: Lake) -> None:
    branch, head = lake.open("a1")
    outer = f"x{uuid.uuid4().hex}"
    tables = [f"{outer}.inner.table"]
    newer = lake.catalog.commit_tables(branch.name, head, "namespaces", create_namespaces_for=tables)
    namespaces = lake.catalog.diff_namespaces(branch.base, branch.name, newer)
    assert {(each.elements, each.before) for each in namespaces} == {((outer,), None), ((outer, "inner"), None)}
    assert [dict(each.after or {}) for each in namespaces] == [{}, {}]
    assert lake.catalog.diff_namespaces(newer, branch.name, newer) == []
    lake.catalog.delete_branch(branch.name)
    with pytest.raises(NoSuchBranch):
        lake.catalog.diff_namespaces(branch.base, branch.name, newer)


def test_a_namespace_that_main_has_is_not_changed_by_a_table_in_it(lake: Lake) -> None:
    branch, head = lake.open("a1", lake.put(1))
    assert lake.catalog.diff_namespaces(branch.base, branch.name, head) == []


def test_a_key_with_dots_in_its_elements_is_another_table(lake: Lake) -> None:
    """`a.b`.c, a.`b.c` and a.b.c are three tables: diffs, reads and conflicts must not confuse them."""
    require(lake, "names_with_dots")
    outer = f"x{uuid.uuid4().hex}"
    names = [joined_name(each) for each in ((outer, "b", "c"), (f"{outer}.b", "c"), (outer, "b.c"))]
    branch, head = lake.open("a1")
    versions = {name: lake.version(number, f"k{number}") for number, name in enumerate(names, 1)}
    commits = [TableCommit(name, version) for name, version in versions.items()]
    head = lake.catalog.commit_tables(branch.name, head, "keys", commits)
    assert {diff.name: diff.after for diff in lake.catalog.diff(branch.base, branch.name, head)} == versions
    assert {name: lake.catalog.table_version(branch.name, name, head) for name in names} == versions


def test_a_diff_of_many_tables_is_whole(lake: Lake) -> None:
    require(lake, "many_tables")
    tables = [f"t{number}" for number in range(MANY.get(type(lake.catalog), 20))]
    branch, head = lake.open("a1", *(lake.put(1, table) for table in tables))
    names = [diff.name for diff in lake.catalog.diff(branch.base, branch.name, head)]
    assert sorted(names) == sorted(map(lake.table, tables))


def test_a_diff_of_a_deleted_branch_fails(lake: Lake) -> None:
    branch, head = lake.open("a1", lake.put(1))
    lake.catalog.delete_branch(branch.name)
    with pytest.raises(NoSuchBranch):
        lake.catalog.diff(branch.base, branch.name, head)
