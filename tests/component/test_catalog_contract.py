"""The contract of the port for catalogs (`lakehouse/catalog.py`, ADR 21), which every implementation must fulfil.

To test a new implementation, add a line to `IMPLEMENTATIONS`: a function from the fixtures of a test to an open
catalog. If it declares `main_permissions`, also add a line to `WRITERS`: the same catalog, opened with the identity of
a writer. A test of a capability is skipped if the catalog declares that it lacks the capability.
"""

import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from lakehouse.catalog import BranchCatalog, TableCommit, TableVersion
from lakehouse.iceberg.table_identity import is_another_table
from lakehouse.iceberg_catalog.connect import open_iceberg
from lakehouse.open_catalog import open_catalog
from lakehouse.published_commits import find_merge_of_run, list_published_commits
from lakehouse.quarantine import create_quarantine, find_quarantined_branch, list_quarantined_branches
from lakehouse.table_versions import tables_changed_since
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.errors import BadEnvironment, CatalogChanged, CatalogRefused, NoSuchBranch, ServiceUnavailable
from sluice.identifiers import joined_name
from sluice.publishing.capabilities import Guarantee
from sluice.publishing.commit_properties import BASE, REASON, RUN_ID
from sluice.settings import read_settings
from tests.harness.glue_server import GlueServer
from tests.harness.iceberg_rest import IcebergRestServer
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.postgres_server import PostgresServer
from tests.harness.table_versions import PathVersions, SnapshotVersions

IMPLEMENTATIONS: dict[str, Callable[[pytest.FixtureRequest], BranchCatalog]] = {
    "memory": lambda _: MemoryCatalog(),
    "nessie": lambda request: open_catalog(read_settings(request.getfixturevalue("stack"))),
    "iceberg-sql": lambda request: open_sql_catalog(request.getfixturevalue("tmp_path")),
    "iceberg-rest": lambda request: open_rest_catalog(request.getfixturevalue("iceberg_rest")),
    "iceberg-postgres": lambda request: open_postgres_catalog(
        request.getfixturevalue("postgres_server"), request.getfixturevalue("tmp_path")
    ),
    "iceberg-glue": lambda request: open_glue_catalog(
        request.getfixturevalue("glue_server"), request.getfixturevalue("tmp_path")
    ),
}
WRITERS: dict[str, Callable[[pytest.FixtureRequest], BranchCatalog]] = {
    "nessie": lambda request: open_catalog(
        read_settings({**request.getfixturevalue("stack"), "NESSIE_PUBLISHER_TOKEN_FILE": ""})
    ),
}
"""The same catalogs, opened without the publisher's identity."""
MANY = 260
"""Number of tables that exceeds one page of a catalog's answer."""


def open_sql_catalog(folder: Path) -> BranchCatalog:
    """Open a JDBC catalog on an SQLite file."""
    return open_iceberg("lake", "sql", f"sqlite:///{folder}/catalog.db", folder.as_uri(), {})


def open_rest_catalog(server: IcebergRestServer) -> BranchCatalog:
    """Open the catalog of Iceberg's REST reference server."""
    return open_iceberg("lake", "rest", server.uri, server.warehouse.as_uri(), {})


def open_postgres_catalog(server: PostgresServer, folder: Path) -> BranchCatalog:
    """Open a JDBC catalog in a PostgreSQL database of its own."""
    return open_iceberg("lake", "sql", server.create_database(), folder.as_uri(), {})


def open_glue_catalog(server: GlueServer, folder: Path) -> BranchCatalog:
    """Open a Glue Data Catalog."""
    return open_iceberg("lake", "glue", "", folder.as_uri(), server.properties)


class Lake:
    """A catalog in which each test has names of its own, so that tests can share a server."""

    def __init__(self, catalog: BranchCatalog, versions: PathVersions | SnapshotVersions) -> None:
        self.catalog, self._key, self._versions = catalog, uuid.uuid4().hex[:12], versions
        self._opened: list[str] = []
        self._another: TableVersion | None = None
        catalog.initialize_main()
        self.publish(*self.open("namespace"))  # so that no two branches of a test create it
        self.base = catalog.head(catalog.main)

    def table(self, name: str = "one") -> str:
        """Return the name of a table of this test."""
        return f"n{self._key}.{name}"

    def version(self, number: int, table: str = "one") -> TableVersion:
        """Return a version of a table."""
        return self._versions.version(self.table(table), number)

    def in_the_same_file(self) -> TableVersion:
        """Return a version with another snapshot in the metadata file of version 1."""
        return self._versions.in_the_same_file(self.table())

    def another_table(self) -> TableVersion:
        """Return a version of another table of the same name."""
        self._another = self._another or self._versions.of_another_table(self.table())
        return self._another

    def put(self, number: int, table: str = "one") -> TableCommit:
        """Return the change that sets a table to a version."""
        return TableCommit(self.table(table), self.version(number, table))

    def drop(self, table: str = "one") -> TableCommit:
        """Return the change that drops a table."""
        return TableCommit(self.table(table), None)

    def name(self, name: str = "a1") -> str:
        """Return the name of a branch of this test."""
        self._opened.append(f"wap/contract/{self._key}/{name}")
        return self._opened[-1]

    def open(self, name: str = "a1", *tables: TableCommit, base: str = "") -> tuple[BranchRef, str]:
        """Create a branch of main with a first commit; return it and its head."""
        base = base or self.catalog.head(self.catalog.main)
        branch = BranchRef(name=self.name(name), base=base, catalog_id=self.catalog.identity())
        self.catalog.create_branch(branch.name, base)
        namespaces = [self.table()]
        head = self.catalog.commit_tables(branch.name, base, "open", tables, {"made-by": name}, namespaces)
        return branch, head

    def publish(self, branch: BranchRef, head: str, **properties: str) -> Publication:
        """Publish a hash of a branch."""
        return self.catalog.publish(branch, head, "ana", "publish", properties)

    def published(self, name: str, *tables: TableCommit, **properties: str) -> Publication:
        """Publish versions of tables from a branch of their own."""
        branch, head = self.open(name, *tables)
        publication = self.publish(branch, head, **properties)
        assert publication.merged
        return publication

    def on_main(self, table: str = "one") -> TableVersion | None:
        """Return the version of a table that readers see."""
        return self.catalog.table_version(self.catalog.main, self.table(table))

    def close(self) -> None:
        """Delete the branches of this test."""
        for name in self._opened:
            self.catalog.delete_branch(name)


_SLOW = ("iceberg-rest", "iceberg-postgres", "iceberg-glue")


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.slow) if name in _SLOW else name for name in IMPLEMENTATIONS]
)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    versions = SnapshotVersions(tmp_path / "versions") if request.param.startswith("iceberg") else PathVersions()
    lake = Lake(IMPLEMENTATIONS[request.param](request), versions)
    yield lake
    lake.close()


@pytest.fixture
def writer(lake: Lake, request: pytest.FixtureRequest) -> BranchCatalog:
    """The catalog of `lake`, opened with the identity of a writer."""
    _require(lake, "main_permissions")
    implementation = request.node.callspec.params["lake"]
    assert implementation in WRITERS, f"{implementation} declares main_permissions: add it to WRITERS"
    return WRITERS[implementation](request)


def _require(lake: Lake, capability: str) -> None:
    if not getattr(lake.catalog.capabilities, capability):
        pytest.skip(f"the catalog declares no {capability}")


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
    _require(lake, "new_tables")
    branch, head = lake.open("a1", lake.put(1))
    assert lake.catalog.table_version(branch.name, lake.table()) == lake.version(1)
    assert lake.catalog.table_version(branch.name, lake.table(), head) == lake.version(1)
    assert lake.catalog.table_version(branch.name, lake.table(), branch.base) is None
    assert lake.on_main() is None


def test_the_tables_of_a_branch_are_listed_at_a_hash(lake: Lake) -> None:
    _require(lake, "new_tables")
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
    _require(lake, "tables_without_snapshot")
    empty = TableVersion("file:///lake/empty.metadata.json", None)
    branch, _ = lake.open("a1", TableCommit(lake.table(), empty))
    assert lake.catalog.table_version(branch.name, lake.table()) == empty


def test_a_commit_of_properties_alone_changes_no_table(lake: Lake) -> None:
    _require(lake, "commit_properties")
    branch, head = lake.open("a1", lake.put(1))
    newer = lake.catalog.commit_tables(branch.name, head, "describe", properties={"why": "it's “so”"})
    assert newer != head and lake.catalog.diff(head, branch.name, newer) == []
    assert next(lake.catalog.history(branch.name)).properties == {"why": "it's “so”"}


# Diff


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
    _require(lake, "names_with_dots")
    outer = f"x{uuid.uuid4().hex}"
    names = [joined_name(each) for each in ((outer, "b", "c"), (f"{outer}.b", "c"), (outer, "b.c"))]
    branch, head = lake.open("a1")
    versions = {name: lake.version(number, f"k{number}") for number, name in enumerate(names, 1)}
    commits = [TableCommit(name, version) for name, version in versions.items()]
    head = lake.catalog.commit_tables(branch.name, head, "keys", commits)
    assert {diff.name: diff.after for diff in lake.catalog.diff(branch.base, branch.name, head)} == versions
    assert {name: lake.catalog.table_version(branch.name, name, head) for name in names} == versions


def test_a_diff_of_many_tables_is_whole(lake: Lake) -> None:
    _require(lake, "many_tables")
    branch, head = lake.open("a1", *(lake.put(1, f"t{number}") for number in range(MANY)))
    names = [diff.name for diff in lake.catalog.diff(branch.base, branch.name, head)]
    assert sorted(names) == sorted(lake.table(f"t{number}") for number in range(MANY))


def test_a_diff_of_a_deleted_branch_fails(lake: Lake) -> None:
    branch, head = lake.open("a1", lake.put(1))
    lake.catalog.delete_branch(branch.name)
    with pytest.raises(NoSuchBranch):
        lake.catalog.diff(branch.base, branch.name, head)


# Late writes of an attempt that was given up


def test_a_commit_to_a_deleted_branch_fails(lake: Lake) -> None:
    _require(lake, "fencing_by_deletion")
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
    _require(lake, "fencing_by_deletion")
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


# Publish


def test_a_publish_changes_main_by_one_commit(lake: Lake) -> None:
    _require(lake, "many_tables")
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
    _require(lake, "commit_properties")
    key = lake.table()
    lake.published("a1", lake.put(1), run=key, input="o'clock \\ 1")
    second = lake.published("a2", lake.put(2), run=key, input="2")
    lake.published("a3", lake.put(3, "two"), run="another")
    newest = lake.catalog.find_published({"run": key})
    assert newest and (newest.hash, newest.properties["input"]) == (second.main_after, "2")
    assert lake.catalog.find_published({"run": key, "input": "o'clock \\ 1"})
    assert lake.catalog.find_published({"run": key, "input": "3"}) is None


def test_a_publish_by_properties_is_found_after_a_hash(lake: Lake) -> None:
    _require(lake, "commit_properties")
    key = lake.table()
    first = lake.published("a1", lake.put(1), run=key)
    second = lake.published("a2", lake.put(2), run="another")
    find = lake.catalog.find_published
    commits = [find({"run": key}, since) for since in ("", lake.base, first.main_before)]
    assert [commit and commit.hash for commit in commits] == [first.main_after] * 3
    assert find({"run": key}, first.main_after) is None and find({"run": key}, second.main_after) is None


def test_publishes_by_properties_are_listed_back_to_a_time(lake: Lake) -> None:
    _require(lake, "commit_properties")
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
    _require(lake, "commit_properties")
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
    _require(lake, "fencing_by_deletion")
    branch, head = lake.open("a1", lake.put(1))
    before = lake.catalog.head(lake.catalog.main)
    lake.catalog.delete_branch(branch.name)
    with pytest.raises(NoSuchBranch):
        lake.publish(branch, head)
    assert (lake.catalog.head(lake.catalog.main), lake.on_main()) == (before, None)


# Conflict


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
    _require(lake, "new_tables")
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
    _require(lake, "many_tables")
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
    _require(lake, "new_tables")
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


# Permissions on main


def test_a_writer_cannot_commit_to_main(lake: Lake, writer: BranchCatalog) -> None:
    lake.published("a1", lake.put(1))
    before = lake.catalog.head(lake.catalog.main)
    assert writer.identity() == lake.catalog.identity()
    with pytest.raises(BadEnvironment):
        writer.commit_tables(writer.main, before, "bypass", [lake.put(2)])
    assert (lake.catalog.head(lake.catalog.main), lake.on_main()) == (before, lake.version(1))


def test_a_writer_cannot_publish(lake: Lake, writer: BranchCatalog) -> None:
    branch, head = lake.open("a1", lake.put(1))
    before = lake.catalog.head(lake.catalog.main)
    with pytest.raises(BadEnvironment):
        writer.publish(branch, head, "ana", "bypass", {})
    assert (lake.catalog.head(lake.catalog.main), lake.on_main()) == (before, None)


def test_a_writer_can_commit_to_the_branch_of_an_attempt(lake: Lake, writer: BranchCatalog) -> None:
    branch, head = lake.open("a1", lake.put(1))
    newer = writer.commit_tables(branch.name, head, "write", [lake.put(2)])
    assert lake.catalog.table_version(branch.name, lake.table(), newer) == lake.version(2)


# Identity, capabilities, Spark


def test_another_identity_is_noticed(lake: Lake) -> None:
    identity = lake.catalog.identity()
    assert lake.catalog.identity() == identity
    lake.catalog.check_identity(identity)
    with pytest.raises(CatalogChanged):
        lake.catalog.check_identity(f"not {identity}")


def test_what_is_declared_of_several_tables_holds_when_it_is_tried(lake: Lake) -> None:
    before = lake.catalog.head(lake.catalog.main)
    detail = lake.catalog.probe()
    assert not detail or lake.catalog.capabilities.guarantee in detail
    assert lake.catalog.head(lake.catalog.main) == before


def test_a_rest_server_without_the_endpoint_for_several_tables_commits_them_one_by_one(
    iceberg_rest: IcebergRestServer,
) -> None:
    def guarantee(several: Guarantee | None = None) -> str:
        catalog = open_iceberg("lake", "rest", iceberg_rest.uri, iceberg_rest.warehouse.as_uri(), {}, several=several)
        return catalog.capabilities.guarantee

    assert guarantee() == "checked"  # the server lists the endpoint
    assert [guarantee("one by one"), guarantee("atomic")] == ["one by one", "atomic"]


def test_capabilities_are_declared(lake: Lake) -> None:
    capabilities = lake.catalog.capabilities
    assert capabilities.repeated_publish in ("merge parent", "commit property")
    assert 0 <= capabilities.commit_timeout < 60


def test_spark_is_bound_to_a_branch_or_pinned_to_a_hash(lake: Lake, tmp_path: Path) -> None:
    branch, head = lake.open("a1", lake.put(1))
    bound = lake.catalog.spark_properties("lake", branch.name, None, tmp_path)
    _, pinned = lake.catalog.audited_catalog("audited", branch.name, head, tmp_path)
    pinned |= lake.catalog.spark_properties("lake", branch.name, head, tmp_path)
    assert all(key.startswith("spark.sql.catalog.") for key in bound | pinned)
    assert bound and pinned and bound != pinned


def test_output_without_a_refusal_explains_none(lake: Lake) -> None:
    assert lake.catalog.explain_refused_write(["java.lang.OutOfMemoryError: Java heap space", ""]) is None
