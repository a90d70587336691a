"""The worker dies, is paused, or is asked to end, at every relevant point of a run."""

import signal
import time
from pathlib import Path

import pytest

from tests.harness.faults import FaultHarness
from tests.harness.processes import wait_for

POINTS = (
    "NessieCatalog.create_branch:before",
    "NessieCatalog.create_branch:after",
    "NessieCatalog.commit_tables:after",
    "InputManifests.write:before",
    "InputManifests.write:after",
    "Spark.run:before",
    "Spark.run:during",
    "Spark.run:after",
    "NessieCatalog.find_conflicts:before",
    "NessieCatalog.find_conflicts:after",
    "ReportStore.write_verdicts:after",
    "NessieCatalog.find_published:before",
    "NessieCatalog.publish:before",
    "NessieCatalog.publish:after",
    "NessieCatalog.delete_branch:before",
    "NessieCatalog.delete_branch:after",
    "AuditResultsTable.record:before",
    "AuditResultsTable.record:after",
    "NotifyActivities.notify:before",
    "EmitLineageActivity.emit_lineage:before",
    "EmitLineageActivity.emit_lineage:after",
)
QUARANTINE_POINTS = ("NessieCatalog.copy_branch:before", "NessieCatalog.copy_branch:after")
PUBLICATION_POINTS = (
    "Publisher._move:before",
    "Publisher._move:after",
    "Publisher._finish:before",
    "Publisher._finish:after",
)
"""Points of a pending publication: before and after it moves the tables, and before and after it moves the log."""
BESIDE_THE_CATALOG = ("InputManifests", "ReportStore", "NotifyActivities", "EmitLineageActivity")
"""Classes that behave the same on every catalog, so that Nessie's cases suffice."""
JOB_POINTS = ("IcebergCatalog.record_job:before", "IcebergCatalog.record_job:after")
"""Points before and after the job's writes are recorded on its branch."""
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGSTOP": signal.SIGSTOP, "SIGTERM": signal.SIGTERM}
SLACK = {"SLACK_TOKEN": "xoxb-1", "SLACK_CHANNEL": "#loads", "SLACK_API_URL": "http://127.0.0.1:9/api/"}
"""Settings of a Slack that does not answer. Without any, no worker reaches the point where it notifies."""
LINEAGE = {"OPENLINEAGE__TRANSPORT__TYPE": "console"}
"""Settings that send events to the worker's log."""
ALWAYS = {
    ("NessieCatalog.publish:after", "SIGKILL"),
    ("Spark.run:during", "SIGTERM"),
}
"""The cases of `make test ALL=1`; `make faults` runs all.

On Iceberg's own catalog, tests/component/iceberg_catalog kills processes at each point of a publication.
"""
AFTER_THE_MERGE, SENTINEL = ("NessieCatalog.publish:after", "SIGKILL"), "the worker killed after a merge"


def _cases(points: tuple[str, ...]) -> list[object]:
    """Return the cases on Nessie. If Spark does not notice the fault, the write runs on the warm engine."""
    return [
        pytest.param(
            "nessie",
            point,
            name,
            id=f"{name} {point}",
            marks=[
                *([] if (point, name) in ALWAYS else [pytest.mark.matrix]),
                *([] if point.startswith("Spark.") else [pytest.mark.warm]),
                *([pytest.mark.sentinel(SENTINEL)] if (point, name) == AFTER_THE_MERGE else []),
            ],
        )
        for point in points
        for name in SIGNALS
    ]


def _iceberg_cases(points: tuple[str, ...]) -> list[object]:
    """Return the cases on Iceberg's own catalog, at its points instead of Nessie's."""
    return [
        pytest.param(
            "rest",
            point,
            name,
            id=f"iceberg {name} {point}",
            marks=[
                pytest.mark.matrix,
                *([] if point.startswith("Spark.") or point in JOB_POINTS else [pytest.mark.warm]),
            ],
        )
        for point in (each.replace("NessieCatalog", "IcebergCatalog") for each in points)
        if not point.startswith(BESIDE_THE_CATALOG)
        for name in SIGNALS
    ]


@pytest.mark.parametrize(
    ("catalog_kind", "point", "name"),
    [*_cases(POINTS), *_iceberg_cases((*POINTS, *PUBLICATION_POINTS, *JOB_POINTS))],
    indirect=["catalog_kind"],
)
def test_published_once(point: str, name: str, faults: FaultHarness, tmp_path: Path) -> None:
    """One run, published once, by the next worker."""
    flag = tmp_path / "flag"
    service = {"NotifyActivities": SLACK, "EmitLineageActivity": LINEAGE}.get(point.split(".", maxsplit=1)[0], {})
    broken = faults.start_faulty_worker(CRASH=f"{point} {SIGNALS[name]} {flag}", **service)
    table = f"t.crash_{abs(hash((point, name)))}"
    if point in PUBLICATION_POINTS:
        run = faults.start_tagged_pair("crash", [table, f"{table}_too"])
    else:
        run = faults.start_tagged("crash", table)
    wait_for(flag.exists, broken.log.read_text)
    faults.start_worker(**service)
    result = faults.result(run)
    assert (result["outcome"], result["reason"]) == ("published", ""), result
    assert not faults.problems([result])
    if name == "SIGSTOP":
        head = faults.checker.head()
        broken.resume()
        time.sleep(8)
        assert faults.checker.head() == head and not faults.problems([result])


@pytest.mark.parametrize(
    ("catalog_kind", "point", "name"),
    [*_cases(QUARANTINE_POINTS), *_iceberg_cases(QUARANTINE_POINTS)],
    indirect=["catalog_kind"],
)
def test_quarantined_once(point: str, name: str, faults: FaultHarness, tmp_path: Path) -> None:
    """One run that the audit stops, quarantined once, by the next worker."""
    flag = tmp_path / "flag"
    broken = faults.start_faulty_worker(CRASH=f"{point} {SIGNALS[name]} {flag}")
    run = faults.start_tagged("stopped", f"t.stopped_{abs(hash((point, name)))}", checks=f"row_count: {10**6}")
    wait_for(flag.exists, broken.log.read_text)
    faults.start_worker()
    result = faults.result(run)
    assert (result["outcome"], result["cause"]) == ("quarantined", "audit"), result
    if name == "SIGSTOP":
        broken.resume()
        time.sleep(8)
    assert not faults.problems([result], kept=[result["branch"]])
    assert result["branch"] in faults.checker.branches()
