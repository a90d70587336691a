"""No activity blocks the event loop of its worker, which would delay the heartbeats and cancellations of all others."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

import activities.audit.scan_tables
import activities.quarantine.quarantine_rows
import activities.run.write_table
import engine.spark.built_in_job
import engine.spark.engine
import engine.spark_scan
from activities.audit.scan_branch import ScanBranchActivity
from activities.audit.scan_files import ScanFilesActivity
from activities.audit.scan_tables import TableScanner
from activities.quarantine.quarantine_rows import QuarantineRowsActivity
from activities.run.write_table import WriteTableActivity
from engine.duckdb_scan import DuckDBScan
from engine.job import JobResult, SparkJob
from engine.process.heartbeat import no_heartbeat
from engine.process.progress import OutputReader
from engine.process.supervise import run_supervised
from engine.runner import Spark
from engine.scan import ScanContext
from engine.spark.engine import SubmitEngine
from engine.spark_scan import SparkScan
from lakehouse.audit.audited_tables import AuditedTables
from lakehouse.audit.report_store import ReportStore
from lakehouse.input.manifests import InputManifests
from lakehouse.source_files import find_files
from sluice.contracts.audit import AuditInput, QuarantineRowsInput, ScanInput
from sluice.contracts.references import RunRef
from sluice.contracts.run_request import InputFile
from sluice.contracts.selected_input import ManifestRef
from sluice.contracts.spark_jobs import JobAnswer
from sluice.contracts.write import WriteTableInput
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.sealed_answer import seal_answer
from sluice.settings import Settings
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.pipelines import csv_file

T = TypeVar("T")
_SLOW = 1.0
"""Duration of each slow call, in seconds."""
_LAG = 0.9
"""Maximum lag of the event loop, in seconds: less than a slow call, more than a busy machine causes."""
_REF = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=1)


def on_a_watched_loop(work: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
    """Run work; assert that the event loop never lagged meanwhile."""
    lags = []

    async def watch() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            lags.append(time.monotonic() - before)

    async def watched() -> T:
        watching = asyncio.create_task(watch())
        await asyncio.sleep(0)
        try:
            return await work(*args)
        finally:
            await asyncio.sleep(0.05)
            watching.cancel()

    result: T = asyncio.run(run_activity(watched))
    assert max(lags) < _LAG, "something blocked the event loop"
    return result


def slowly(monkeypatch: pytest.MonkeyPatch, owner: Any, *names: str) -> list[str]:
    """Make functions of a module or a class slow; return a list that collects their calls."""
    called: list[str] = []

    def make_slow(name: str) -> None:
        function = getattr(owner, name)

        def run(*args: Any, **more: Any) -> Any:
            called.append(name)
            time.sleep(_SLOW)
            return function(*args, **more)

        monkeypatch.setattr(owner, name, run)

    for name in names:
        make_slow(name)
    return called


class FakeSpark:
    """A worker's Spark whose jobs end at once with an answer."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings.of(sluice_home=folder).spark_jobs

    async def run(self, job: SparkJob, _: Any) -> JobResult:
        spec = json.loads(Path(job.args[0]).read_text())
        Path(spec["answer"]).write_text(seal_answer(JobAnswer(), spec["answer_key"]))
        return JobResult(0, [], job.folder / "log")


class NoTables:
    """An audit without tables, whose loading is slow."""

    catalog = MemoryCatalog()

    def load(self, _: AuditInput) -> list[Any]:
        time.sleep(_SLOW)
        return []


class NoReports:
    """A slow report store."""

    def write_verdicts(self, *_: Any) -> None:
        time.sleep(_SLOW)


class SlowManifests:
    """A slow store with one manifest."""

    def __init__(self, files: list[InputFile]) -> None:
        self.loaded = files

    def read(self, _: ManifestRef) -> "SlowManifests":
        time.sleep(_SLOW)
        return self


def scanner(folder: Path) -> TableScanner:
    return TableScanner(
        cast(AuditedTables, NoTables()), cast(ReportStore, NoReports()), Settings.of(sluice_home=folder).storage
    )


def audit_input() -> AuditInput:
    return AuditInput(run_ref=_REF, branch="b", base="0", head="1", tables={"t.x": Table()})


def test_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Write.model_validate({"source": {"path": str(csv_file(tmp_path / "in.csv", [{"id": 1}]))}})
    assert write.source
    files = find_files(write.source)
    names = ("check_unchanged", "create_job_folder", "base_path", "read_answer")
    called = slowly(monkeypatch, activities.run.write_table, *names)
    manifest = ManifestRef(location="m", digest="d")
    given = WriteTableInput(
        run_ref=_REF, branch="b", write=write, tables={"t.x": Table()}, input_digest="d", manifest=manifest
    )
    spark, manifests = cast(Spark, FakeSpark(tmp_path)), cast(InputManifests, SlowManifests(files))
    activity = WriteTableActivity(MemoryCatalog(), spark, manifests)
    on_a_watched_loop(activity.write_table, given)
    assert set(called) == set(names)


def test_a_scan_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called = slowly(monkeypatch, activities.audit.scan_tables, "create_job_folder", "trim_samples")
    activity = ScanFilesActivity(scanner(tmp_path), [])
    on_a_watched_loop(activity.scan_files, ScanInput(audit=audit_input(), undecided={}))
    assert called == ["create_job_folder", "trim_samples"]


def test_a_scan_by_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called = slowly(monkeypatch, engine.spark.built_in_job, "read_answer", "_write_spec")
    called_too = slowly(monkeypatch, engine.spark_scan, "_bytes_read")
    scan = SparkScan(cast(Spark, FakeSpark(tmp_path)), MemoryCatalog())
    on_a_watched_loop(scan.scan, [], ScanContext(audit_input(), tmp_path, no_heartbeat))
    assert (called, called_too) == (["_write_spec", "read_answer"], ["_bytes_read"])
    on_a_watched_loop(
        ScanBranchActivity(scanner(tmp_path), scan).scan_branch, ScanInput(audit=audit_input(), undecided={})
    )


def test_a_quarantine_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called = slowly(monkeypatch, activities.quarantine.quarantine_rows, "create_job_folder")
    spark, scan = cast(Spark, FakeSpark(tmp_path)), DuckDBScan(Settings.of(sluice_home=tmp_path).scan)
    activity = QuarantineRowsActivity(cast(AuditedTables, NoTables()), spark, scan)
    on_a_watched_loop(activity.quarantine_rows, QuarantineRowsInput(audit=audit_input(), failing={}))
    assert called == ["create_job_folder"]


def test_a_start_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called = slowly(monkeypatch, engine.spark.engine, "find_java", "find_archive", "environment")
    monkeypatch.setattr(engine.spark.engine, "command", lambda *_: ["true"])
    job = SparkJob(Path("job.py"), tmp_path, "b", catalog={})
    on_a_watched_loop(SubmitEngine(Settings.of(sluice_home=tmp_path).spark_jobs).run, job, no_heartbeat)
    assert called == ["find_java", "find_archive", "environment"]


def test_a_flood_of_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece is searched for secrets, which takes time."""
    called = slowly(monkeypatch, OutputReader, "feed")
    result = on_a_watched_loop(run_supervised, ["echo", "a line"], {}, tmp_path, no_heartbeat)
    assert (result.code, result.tail) == (0, ["a line"]) and called
