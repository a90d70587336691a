"""A worker is paused between its last check and its merge, and another worker meets a conflict meanwhile."""

import signal
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import StaticTable, Table

from lakehouse.iceberg.commit import BranchCommitCatalog, table_commit
from lakehouse.nessie.catalog import NessieCatalog
from lakehouse.open_catalog import open_catalog
from sluice.contracts.references import BranchRef
from sluice.publishing.commit_properties import RUN_ID
from sluice.settings import read_settings
from tests.harness.faults import FaultHarness, on_both_catalogs
from tests.harness.processes import wait_for


def _change_on_main(faults: FaultHarness, table: str) -> None:
    """Change a table on main, as another installation or another program would."""
    if faults.environment.get("CATALOG") == "rest":
        _append_by_another_program(faults, table)
    else:
        _publish_by_another_installation(faults, table)


def _append_by_another_program(faults: FaultHarness, table: str) -> None:
    writable = RestCatalog("lake", uri=faults.environment["ICEBERG_URI"]).load_table(table)
    writable.append(_another_row(writable))
    open_catalog(read_settings(faults.environment)).head("main")  # the next read of main records it


def _publish_by_another_installation(faults: FaultHarness, table: str) -> None:
    token = Path(faults.environment["NESSIE_PUBLISHER_TOKEN_FILE"]).read_text()
    catalog = NessieCatalog(faults.environment["NESSIE_URI"], token=token)
    base, name = catalog.head("main"), f"wap/other/{uuid.uuid4().hex}/a1"
    catalog.create_branch(name, base)
    version = catalog.table_version(name, table)
    assert version
    static = StaticTable.from_metadata(version.metadata_location)

    def commit(location: str, metadata: Any) -> None:
        catalog.commit_tables(name, catalog.head(name), "another", [table_commit(table, location, metadata)])

    writable = Table(
        ("x", *table.split(".")), static.metadata, version.metadata_location, static.io, BranchCommitCatalog(commit)
    )
    writable.append(_another_row(writable))
    branch = BranchRef(name=name, base=base, catalog_id=catalog.identity())
    assert catalog.publish(branch, catalog.head(name), "another", "another", {}).merged
    catalog.delete_branch(name)


def _another_row(table: Table) -> pa.Table:
    return pa.Table.from_pylist([{"id": 99, "tag": "another"}], schema=table.schema().as_arrow())


@pytest.mark.matrix
@pytest.mark.warm
@on_both_catalogs()
@pytest.mark.parametrize("cancel", [False, True], ids=["", "cancelled"])
def test_a_paused_merge_overtakes_the_fence(cancel: bool, faults: FaultHarness, tmp_path: Path) -> None:
    """A merge that was paused happens while another worker is about to fence: one merge, every row once."""
    # The resumed worker may also execute the step that fences, and complete it before its merge.
    tries = ((tmp_path / str(number)) for number in range(4))
    assert any(_overtakes(faults, folder, cancel=cancel) for folder in tries), "the fence was always faster"


def _overtakes(faults: FaultHarness, folder: Path, *, cancel: bool) -> bool:
    """Pause a merge until another worker is about to fence, then resume both; return True if the merge came first.

    In either order, main and the run must agree.
    """
    folder.mkdir()
    catalog = "IcebergCatalog" if faults.environment.get("CATALOG") == "rest" else "NessieCatalog"
    first, second, stop = folder / "first", folder / "second", int(signal.SIGSTOP)
    suffix = uuid.uuid4().hex[:8]
    other, table = f"t.read_{suffix}", f"t.written_{suffix}"
    sound = faults.start_worker()
    assert faults.result(faults.start_tagged(f"read-{suffix}", other))["outcome"] == "published"
    sound.stop()
    paused = faults.start_faulty_worker(CRASH=f"{catalog}.publish:before {stop} {first}")
    checks = f"{{relationships: {{column: id, to: {other}, field: id}}}}"
    run = faults.start_tagged(f"written-{suffix}", table, checks=checks)
    wait_for(first.exists, paused.log.read_text)
    _change_on_main(faults, other)
    before = faults.checker.head()
    fencing = faults.start_faulty_worker(CRASH=f"{catalog}.delete_branch:before {stop} {second}")
    wait_for(second.exists, fencing.log.read_text)
    if cancel:
        faults.cancel(run)
    assert faults.checker.head() == before
    paused.resume()

    def is_branch_deleted() -> bool:
        return not any(f"written-{suffix}" in name for name in faults.checker.branches())

    wait_for(lambda: faults.checker.head() != before or is_branch_deleted(), paused.log.read_text)
    is_merged = faults.checker.head() != before
    fencing.resume()
    result = faults.result(run)
    merges = [
        each for each in faults.checker.commits(before) if each["allProperties"].get(RUN_ID) == [result["run_id"]]
    ]
    if cancel and not is_merged:
        assert (result["outcome"], merges, faults.checker.head()) == ("cancelled", [], before), result
    else:
        assert result["outcome"] == "published", result
        assert sorted(faults.checker.tags(table)) == sorted(faults.tags[run][1])
        assert len(merges) == 1 and result["main_after"] == merges[0]["hash"]
    assert not [name for name in faults.checker.branches() if result["run_id"] in name]
    for worker in (paused, fencing):
        worker.stop()
    return is_merged
