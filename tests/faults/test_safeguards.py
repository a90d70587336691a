"""Each safeguard works where it is needed, and the same test fails without it: these tests can fail."""

import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable, Table

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.commit import BranchCommitCatalog, table_commit
from lakehouse.nessie.catalog import NessieCatalog
from lakehouse.open_catalog import open_catalog
from sluice.settings import read_settings
from tests.harness.faults import FaultHarness, on_both_catalogs
from tests.harness.processes import wait_for
from tests.harness.proxies import NessieProxy, once


def _append_late(faults: FaultHarness, branch: str, table: str) -> None:
    """Append a row to a table on an attempt's branch, as an abandoned Spark job would."""
    catalog = _open_as_writer(faults)
    version = catalog.table_version(branch, table)
    assert version
    static = StaticTable.from_metadata(version.metadata_location)

    def commit(location: str, metadata: Any) -> None:
        catalog.commit_tables(branch, catalog.head(branch), "late", [table_commit(table, location, metadata)])

    late = Table(
        ("late", *table.split(".")), static.metadata, version.metadata_location, static.io, BranchCommitCatalog(commit)
    )
    late.append(pa.Table.from_pylist([{"id": 1, "tag": "late"}], schema=late.schema().as_arrow()))


def _open_as_writer(faults: FaultHarness) -> BranchCatalog:
    if faults.environment.get("CATALOG") == "rest":
        return open_catalog(read_settings(faults.environment))
    token = Path(faults.environment["NESSIE_WRITER_TOKEN_FILE"]).read_text()
    return NessieCatalog(faults.environment["NESSIE_URI"], token=token)


def _late_commit(faults: FaultHarness, name: str, **left_out: str) -> tuple[dict[str, Any], list[str]]:
    faults.start_faulty_worker(**left_out)
    run = faults.start_tagged(name, f"t.{name}", more="approval: {timeout: 1h}")
    waiting = faults.wait_for_stage(run, "waiting for approval")
    _append_late(faults, waiting["branch"], f"t.{name}")
    faults.approve(run)
    result = faults.result(run)
    return result, faults.problems([result])


@pytest.mark.warm
@on_both_catalogs(pytest.mark.matrix)
def test_what_lands_on_the_branch_after_the_audit_stays_out(faults: FaultHarness) -> None:
    """A commit after the audit stays out: the merge takes exactly the audited hash."""
    result, problems = _late_commit(faults, "pinned")
    assert result["outcome"] == "published" and not problems


@pytest.mark.warm
@on_both_catalogs(pytest.mark.matrix)
def test_without_the_pinned_hash_it_gets_in(faults: FaultHarness) -> None:
    """Without the pinned hash, the checker finds the late row on main."""
    _, problems = _late_commit(faults, "pinless", WITHOUT="pinned hash")
    assert any("late is on main" in problem for problem in problems), problems
    assert any("was audited" in problem for problem in problems), problems


@pytest.mark.matrix
@pytest.mark.warm
def test_without_confirmation_a_lost_answer_is_taken_for_a_failure(faults: FaultHarness) -> None:
    """Without confirmation, the checker finds rows of a run that says it failed."""
    faults.changeable["SLUICE_STEP_TIMEOUT"] = "12"
    proxy = NessieProxy(faults.environment["NESSIE_URI"], once("merge", "drop"))
    try:
        faults.start_faulty_worker(WITHOUT="confirmation", NESSIE_URI=proxy.uri)
        result = faults.result(faults.start_tagged("unconfirmed", "t.unconfirmed"))
    finally:
        proxy.stop()
    assert result["outcome"] != "published"
    assert any("says that it was not published" in problem for problem in faults.problems([result]))


@pytest.mark.matrix
def test_without_fencing_two_attempts_meet_on_one_branch(faults: FaultHarness, tmp_path: Path) -> None:
    """Without fencing, the second attempt finds the snapshot of the first, and the run is not published."""
    flag = tmp_path / "flag"
    broken = faults.start_faulty_worker(CRASH=f"Spark.run:after {int(signal.SIGKILL)} {flag}", WITHOUT="fencing")
    run = faults.start_tagged("unfenced", "t.unfenced")
    wait_for(flag.exists, broken.log.read_text)
    faults.start_faulty_worker(WITHOUT="fencing")
    result = faults.result(run)
    assert result["outcome"] == "failed" and "this attempt did not make" in result["reason"], result


@pytest.mark.matrix
@pytest.mark.warm
@pytest.mark.parametrize("catalog_kind", [pytest.param("rest", id="iceberg")], indirect=True)
def test_without_the_log_s_memory_a_publication_is_taken_for_a_failure(faults: FaultHarness) -> None:
    """Without the publications that the commit log remembers, the checker finds rows that no run says it published."""
    faults.changeable["SLUICE_STEP_TIMEOUT"] = "12"
    faults.start_faulty_worker(WITHOUT="confirmation")
    result = faults.result(faults.start_tagged("unremembered", "t.unremembered"))
    problems = faults.problems([result], kept=[result["branch"]])
    assert any("says that it was not published" in each or "is on main 2 times" in each for each in problems), result


@pytest.mark.matrix
@pytest.mark.parametrize("catalog_kind", [pytest.param("rest", id="iceberg")], indirect=True)
def test_without_fencing_the_second_attempt_meets_what_the_first_one_s_job_wrote(
    faults: FaultHarness, tmp_path: Path
) -> None:
    """Without fencing, the second attempt finds what the first one's job wrote, and the run is not published."""
    flag = tmp_path / "flag"
    crash = f"IcebergCatalog.record_job:after {int(signal.SIGKILL)} {flag}"
    broken = faults.start_faulty_worker(CRASH=crash, WITHOUT="fencing")
    run = faults.start_tagged("unfenced", "t.unfenced")
    wait_for(flag.exists, broken.log.read_text)
    faults.start_faulty_worker(WITHOUT="fencing")
    result = faults.result(run)
    assert result["outcome"] == "failed" and "this attempt did not make" in result["reason"], result
