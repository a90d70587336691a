"""The commit log of an Iceberg catalog over a long history: the content of its table, and its pages in files."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from unittest import mock

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from lakehouse.iceberg_catalog.catalog import IcebergCatalog
from lakehouse.iceberg_catalog.commit_pages import CommitPages
from lakehouse.iceberg_catalog.connect import open_iceberg
from lakehouse.iceberg_catalog.log_commits import PAGE, LogCommit, LogState
from lakehouse.iceberg_catalog.sql_committer import SqlCommitter
from lakehouse.iceberg_catalog.transactions import TableChange
from sluice.contracts.references import BranchRef
from sluice.errors import CatalogRefused, NoSuchBranch
from tests.harness.iceberg_lake import IcebergLake

RUNS = 3 * PAGE + 3


def open_catalog(folder: Path) -> IcebergCatalog:
    """Open the catalog as another process would."""
    return open_iceberg("lake", "sql", f"sqlite:///{folder}/catalog.db", folder.as_uri(), {})


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    catalog = open_catalog(tmp_path)
    uri = f"sqlite:///{tmp_path}/catalog.db?timeout=60"
    return IcebergLake(catalog, SqlCatalog("lake", uri=uri, warehouse=tmp_path.as_uri()), "t")


def commits_on(lake: IcebergLake, number: int) -> tuple[BranchRef, list[str]]:
    """Create a branch with this number of commits; return their hashes, oldest first."""
    branch = lake.branch()
    heads = [branch.base]
    for each in range(number):
        heads.append(lake.catalog.commit_tables(branch.name, heads[-1], f"commit {each}"))
    return branch, heads[1:]


def pages(folder: Path) -> dict[str, Path]:
    """Return the files of the pages, by hash."""
    return {file.stem: file for file in (folder / "sluice" / "commits" / "commits").glob("*.json")}


def test_its_table_holds_the_heads_alone_and_a_new_process_reads_all(lake: IcebergLake, tmp_path: Path) -> None:
    heads = []
    for number in range(RUNS):
        lake.append("t", 100 + number)
        heads.append(lake.catalog.head("main"))
    kept, own = commits_on(lake, 2 * PAGE)
    log = lake.reader.load_table("sluice.commits")
    assert dict.fromkeys(log.refs(), 1) == {"main": 1, "sluice/root": 1, kept.name: 1}
    assert len(log.metadata.snapshots) == 3
    fresh = open_catalog(tmp_path)
    versions = [fresh.table_version("main", lake.name("t"), head) for head in heads]
    snapshots = [each.snapshot_id for each in lake.table("t").history()]
    assert [version.snapshot_id for version in versions if version] == snapshots[-RUNS:]
    assert [commit.hash for commit in fresh.history("main")][:RUNS] == heads[::-1]
    assert [commit.hash for commit in fresh.history(kept.name)][: len(own)] == own[::-1]
    assert fresh.fork_point(kept.name) == kept.base == heads[-1]


def test_a_process_that_starts_reads_few_pages(lake: IcebergLake, tmp_path: Path) -> None:
    for number in range(RUNS):
        lake.append("t", 100 + number)
        lake.catalog.head("main")
    fresh = open_catalog(tmp_path)
    read: list[str] = []
    whole = CommitPages._read_file

    def count(self: CommitPages, hash: str) -> object:
        read.append(hash)
        return whole(self, hash)

    with mock.patch.object(CommitPages, "_read_file", count):
        fresh.list_tables("main", fresh.head("main"))
    assert 1 <= len(read) <= 2


def test_a_deleted_branch_leaves_no_page_and_a_copy_keeps_those_that_it_needs(
    lake: IcebergLake, tmp_path: Path
) -> None:
    before = {*pages(tmp_path)}
    branch, heads = commits_on(lake, 5)
    assert {*pages(tmp_path)} - before == {branch.base, *heads[:-1]}
    lake.catalog.copy_branch("wap/x/copy/a1", branch.name, heads[2])
    lake.catalog.delete_branch(branch.name)
    assert {*pages(tmp_path)} - before == {branch.base, *heads[:3]}
    history = [commit.hash for commit in open_catalog(tmp_path).history("wap/x/copy/a1")]
    assert history[:3] == heads[2::-1]
    lake.catalog.delete_branch("wap/x/copy/a1")
    assert {*pages(tmp_path)} - before == {branch.base}
    with pytest.raises(CatalogRefused, match="the commit log has no commit"):
        open_catalog(tmp_path).create_branch("wap/x/again/a1", heads[2])


def test_a_branch_begins_on_main(lake: IcebergLake) -> None:
    _, heads = commits_on(lake, 1)
    with pytest.raises(CatalogRefused, match=f"{heads[0][:12]} is not a hash of main"):
        lake.catalog.create_branch("wap/x/again/a1", heads[0])


@pytest.mark.parametrize("copied_first", [True, False])
def test_a_branch_that_is_deleted_while_it_is_copied(lake: IcebergLake, tmp_path: Path, copied_first: bool) -> None:
    """The copy fails, or has its whole history, depending on the order of the two."""
    branch, heads = commits_on(lake, 3)
    copy = f"wap/x/copy{copied_first}/a1"
    first, second = open_catalog(tmp_path), open_catalog(tmp_path)
    commit = SqlCommitter.commit
    raced: list[bool] = []

    def race(self: SqlCommitter, changes: Sequence[TableChange]) -> None:
        if not raced:  # the other process was faster
            raced.append(True)
            second.copy_branch(copy, branch.name, heads[-1]) if copied_first else second.delete_branch(branch.name)
        commit(self, changes)

    with mock.patch.object(SqlCommitter, "commit", race):
        if copied_first:
            first.delete_branch(branch.name)
        else:
            with pytest.raises(NoSuchBranch):
                first.copy_branch(copy, branch.name, heads[-1])
    fresh = open_catalog(tmp_path)
    assert raced and fresh.find_head(branch.name) is None
    assert (fresh.find_head(copy) == heads[-1]) is copied_first
    if copied_first:
        assert [commit.hash for commit in fresh.history(copy)][:3] == heads[::-1]


def test_branches_of_one_base_that_are_deleted_at_once(lake: IcebergLake, tmp_path: Path) -> None:
    """No process fails because the other branch's pages are missing already."""
    base = lake.catalog.head("main")
    (one, _), (two, own) = commits_on(lake, 3), commits_on(lake, 3)
    assert one.base == two.base == base
    for hash in own[:-1]:
        pages(tmp_path)[hash].unlink()  # as another process does that deletes `two`
    fresh = open_catalog(tmp_path)
    fresh.delete_branch(one.name)
    assert fresh.find_head(one.name) is None
    with pytest.raises(CatalogRefused):
        list(fresh.history(two.name))


def test_a_history_that_is_read_while_its_branch_is_deleted(lake: IcebergLake, tmp_path: Path) -> None:
    branch, _ = commits_on(lake, 3)
    history = open_catalog(tmp_path).history(branch.name)
    next(history)
    lake.catalog.delete_branch(branch.name)
    with pytest.raises(NoSuchBranch):
        list(history)


def test_a_page_that_a_power_failure_cut_is_replaced(lake: IcebergLake, tmp_path: Path) -> None:
    branch, heads = commits_on(lake, 2)
    (tmp_path / "sluice" / "commits" / "commits" / f"{heads[-1]}.json").write_bytes(b"")
    head = open_catalog(tmp_path).commit_tables(branch.name, heads[-1], "one more")
    assert [commit.hash for commit in open_catalog(tmp_path).history(branch.name)][:3] == [head, *heads[::-1]]


def test_two_processes_create_the_branch_of_audits_at_once(lake: IcebergLake, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        catalogs = [open_catalog(tmp_path) for _ in range(4)]
        heads = [*threads.map(lambda each: each.create_orphan_branch("sluice/audits"), catalogs)]
    assert len({*heads}) == 1


def test_a_table_whose_metadata_file_is_missing_is_named(lake: IcebergLake, tmp_path: Path) -> None:
    Path(lake.table("t").metadata_location.removeprefix("file://")).unlink()
    with pytest.raises(CatalogRefused, match=f"the metadata file that the catalog names for {lake.name('t')} is not"):
        open_catalog(tmp_path).head("main")


@pytest.mark.parametrize("content", [b"", b'{"commits": []}', b"{", None])
def test_a_damaged_page_is_refused_and_nothing_is_taken_for_it(
    lake: IcebergLake, tmp_path: Path, content: bytes | None
) -> None:
    branch, heads = commits_on(lake, 3)
    page, other = pages(tmp_path)[heads[1]], pages(tmp_path)[heads[0]]
    page.write_bytes(other.read_bytes() if content is None else content)
    fresh = open_catalog(tmp_path)
    with pytest.raises(CatalogRefused, match=f"the commit log is damaged, or .*{heads[1]}.json"):
        list(fresh.history(branch.name))
    page.unlink()
    with pytest.raises(CatalogRefused, match=f"has no commit {heads[1][:12]}"):
        list(open_catalog(tmp_path).history(branch.name))
    open_catalog(tmp_path).delete_branch(branch.name)
    assert lake.catalog.find_head(branch.name) is None


def test_a_page_is_read_again_while_it_is_under_way(tmp_path: Path) -> None:
    commit = LogCommit(at=datetime(2026, 1, 1, tzinfo=timezone.utc), message="first")
    writer, reader = CommitPages({}, tmp_path.as_uri()), CommitPages({}, tmp_path.as_uri())
    writer.write(commit.hash, iter([commit]), LogState)
    file = tmp_path / f"{commit.hash}.json"
    whole = file.read_bytes()
    file.write_bytes(whole[:20])
    threading.Timer(0.3, file.write_bytes, args=(whole,)).start()
    page = reader.read(commit.hash)
    assert page and page.commits == [commit] and page.state == LogState()
    assert reader.read("../../etc/passwd") is None


def test_the_publication_of_an_old_branch(lake: IcebergLake, tmp_path: Path) -> None:
    """The search starts at the branch's base, and also works after the branch was deleted."""
    branch, heads = commits_on(lake, 2)
    published = lake.publish(branch, heads[-1])
    _, unpublished = commits_on(lake, 1)
    for number in range(RUNS):
        lake.append("t", 100 + number)
        lake.catalog.head("main")
    fresh = open_catalog(tmp_path)
    assert fresh.find_publication(heads[-1], "") == fresh.find_publication(heads[-1], branch.base) == published
    assert fresh.find_publication(unpublished[-1], "") is None
    assert fresh.fork_point(branch.name) == heads[-1]
    lake.catalog.delete_branch(branch.name)
    assert open_catalog(tmp_path).find_publication(heads[-1], "") == published
    since = datetime.now(timezone.utc) - timedelta(hours=1)
    assert [each.hash for each in fresh.list_published({"run": branch.name}, since)] == [published.main_after]
