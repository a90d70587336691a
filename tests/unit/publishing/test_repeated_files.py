"""The last defence: a merge adds no data file that a table lists already, and none twice."""

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from temporalio.exceptions import ApplicationError

from lakehouse.iceberg.commit import BranchCommitCatalog, table_commit
from lakehouse.iceberg.repeated_files import files_added_twice
from lakehouse.iceberg.table_state import TableState, load_table
from sluice.contracts.references import BranchRef, RunRef
from sluice.publishing.branch_properties import marks
from tests.harness.branch_run import Run
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake


@pytest.fixture
def lake(tmp_path: Path) -> MemoryLake:
    catalog = MemoryCatalog()
    catalog.initialize_main()
    return MemoryLake(catalog, tmp_path)


def add_again(lake: MemoryLake, branch: str, files_of: str, run_ref: RunRef, times: int = 1) -> None:
    """Add the live files of a branch to another branch's table in one commit, even if the table lists them already."""
    version, source = (lake.catalog.table_version(each, "t.x") for each in (branch, files_of))
    assert version and source
    files = [entry.data_file for entry in TableState.load(source, None, {}).entries(added_only=False)]
    table = load_table(version, {})

    def commit(location: str, metadata: TableMetadata) -> None:
        head = lake.catalog.head(branch)
        lake.catalog.commit_tables(branch, head, "again", [table_commit("t.x", location, metadata)])

    writable = Table(("t", "x"), table.metadata, version.metadata_location, table.io, BranchCommitCatalog(commit))
    with writable.transaction() as transaction:
        for _ in range(times):
            with transaction.update_snapshot(snapshot_properties=marks(run_ref)).fast_append() as append:
                for file in files:
                    append.append_data_file(file)


def published(lake: MemoryLake, run_id: str, *ids: int) -> None:
    run = Run(lake, run_id)
    branch, written = run.write(*ids)
    assert run.publish(branch, written.head).merged


def publish(run: Run, branch: BranchRef, **more: Any) -> Any:
    return run.publish(branch, run.catalog.head(branch.name), **more)


def test_files_that_main_holds_are_refused_right_before_the_merge(lake: MemoryLake) -> None:
    published(lake, "r1", 1, 2)
    since = lake.catalog.head("main")
    published(lake, "r2", 3)
    run = Run(lake, "r3")
    branch = run.open()
    add_again(lake, branch.name, "main", run.ref)
    before = lake.catalog.head("main")
    with pytest.raises(ApplicationError, match=r"t\.x would list .* more than once") as refused:
        publish(run, branch, first_base=since)
    assert (refused.value.type, refused.value.non_retryable) == ("UnexpectedWrite", True)
    assert lake.catalog.head("main") == before


def test_files_of_long_ago_are_found_where_all_are_compared(lake: MemoryLake) -> None:
    """A user's program may add a file that the table has had for years. Then every file is compared."""
    published(lake, "r1", 1, 2)
    run = Run(lake, "r2")
    branch = run.open()
    add_again(lake, branch.name, "main", run.ref)
    with pytest.raises(ApplicationError, match="more than once"):
        publish(run, branch, all_files=True)


def test_a_file_that_a_run_adds_twice_is_refused(lake: MemoryLake) -> None:
    run, other = Run(lake, "r1"), Run(lake, "r2")
    branch, _ = run.write(1)
    copied = other.open()
    lake.append(copied.name, "t.x", [2], other.ref)
    add_again(lake, branch.name, copied.name, run.ref, times=2)
    with pytest.raises(ApplicationError, match="more than once"):
        publish(run, branch)


def test_a_file_that_was_there_twice_before_the_run_does_not_stop_it(lake: MemoryLake) -> None:
    published(lake, "r1", 1)
    ref = Run(lake, "r1").ref
    add_again(lake, "main", "main", ref)
    since = lake.catalog.head("main")
    run = Run(lake, "r2")
    branch, _ = run.write(2)
    assert publish(run, branch, first_base=since, all_files=True).merged
    assert lake.ids("t.x") == [1, 1, 2]


def test_manifests_from_before_the_run_are_not_read(lake: MemoryLake) -> None:
    published(lake, "r1", 1)
    earlier = lake.catalog.table_version("main", "t.x")
    run = Run(lake, "r2")
    branch, _ = run.write(2)
    later = lake.catalog.table_version(branch.name, "t.x")
    assert earlier and later
    state = TableState.load(later, earlier, {})
    old = {manifest.manifest_path for manifest in TableState.load(earlier, None, {}).manifests}
    read: list[str] = []
    for manifest in state.manifests:
        path, fetch = manifest.manifest_path, manifest.fetch_manifest_entry

        def noted(*given: Any, path: str = path, fetch: Any = fetch, **more: Any) -> Any:
            read.append(path)
            return fetch(*given, **more)

        object.__setattr__(manifest, "fetch_manifest_entry", noted)
    assert files_added_twice(state, load_table(earlier, {})) == []
    assert read and not {*read} & old
