"""The scan engines without Spark: the input of a job, the use of its answer, and the groups that DuckDB hands back."""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import duckdb
import pytest

from activities.audit.scan_branch import ScanBranchActivity
from activities.audit.scan_files import ScanFilesActivity
from activities.audit.scan_tables import TableScanner
from engine.duckdb_scan import DuckDBScan, scan_groups_by
from engine.duckdb_session import DuckDBSession
from engine.job import JobResult, SparkJob
from engine.runner import Spark
from engine.scan import ScanContext, ScanEngine
from engine.scan_engines import in_process_engines
from engine.spark_scan import SparkScan
from lakehouse.audit.audited_tables import AuditedTables
from lakehouse.audit.report_store import ReportStore
from sluice.audit.answers import check_key
from sluice.audit.scan_groups import ScanGroup, scan_groups
from sluice.audit.tables import AuditedTable
from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditInput, ScanInput
from sluice.contracts.references import RunRef
from sluice.contracts.spark_jobs import JobAnswer, ScanAnswer, ScanSpec
from sluice.errors import JobFailed
from sluice.sealed_answer import seal_answer
from sluice.setting_groups import SparkJobSettings
from sluice.settings import Settings
from sluice.sql.dialect import DUCKDB, SPARK
from tests.harness.activity import run_activity
from tests.harness.audit_inputs import RANGE, UNIQUE, audit_input, file, table
from tests.harness.bound_catalog import FakeCatalog


@dataclass
class FakeSpark:
    """A stand-in for a worker's Spark that leaves this answer, and records the job."""

    answer: JobAnswer | None
    settings: SparkJobSettings
    jobs: list[tuple[SparkJob, ScanSpec]] = field(default_factory=list)

    async def run(self, job: SparkJob, _: Any) -> JobResult:
        spec = ScanSpec.model_validate_json(Path(job.args[0]).read_text())
        self.jobs.append((job, spec))
        if self.answer:
            Path(spec.answer).write_text(seal_answer(self.answer, spec.answer_key))
        return JobResult(0, ["the last line"], job.folder / "log")


def context(folder: Path, heartbeat: Callable[[Any], None] = lambda _: None, **more: Any) -> ScanContext:
    return ScanContext(audit_input(), folder, heartbeat, **more)


def groups(dialect: Any = SPARK) -> list[ScanGroup]:
    audited = table(RANGE, UNIQUE, added=[file("/a")], live=[file("/b")])
    return scan_groups(audited, dict(enumerate(audited.checks)), dialect)[0]


def scanned(spark: FakeSpark, folder: Path, **more: Any) -> dict[str, ScanAnswer]:
    engine = SparkScan(cast(Spark, spark), FakeCatalog())
    return asyncio.run(engine.scan(groups(), context(folder, **more)))


def test_spark_scans_the_audited_hash_and_answers_every_check(tmp_path: Path) -> None:
    good = ScanAnswer(metrics={"failed": 0})
    spark = FakeSpark(JobAnswer(scans={check_key("n.t", 0): good}), Settings.of(sluice_home=tmp_path).spark_jobs)
    answers = scanned(spark, tmp_path, try_number=3, last_attempt=False)
    assert answers == {"n.t#0": good, "n.t#1": ScanAnswer(error="the scan gave no answer")}
    ((job, spec),) = spark.jobs
    assert (job.branch, job.catalog, job.try_number, job.input_bytes) == ("b", {"nessie": "b@1"}, 3, None)
    assert (spec.main, spec.last_attempt, [view.name for view in spec.targets[0].views]) == (
        "main", False, ["sluice_rows", "sluice_other_rows"],
    )  # fmt: skip


def test_a_job_that_fails_as_a_whole_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(JobAnswer().model_dump_json())  # left by an earlier attempt
    with pytest.raises(JobFailed):
        scanned(FakeSpark(None, Settings.of(sluice_home=tmp_path).spark_jobs), tmp_path)
    with pytest.raises(JobFailed, match="no Nessie"):
        scanned(FakeSpark(JobAnswer(error="no Nessie", error_kind="InvalidInput"), Settings().spark_jobs), tmp_path)


def test_a_group_that_duckdb_cannot_answer_is_handed_back(tmp_path: Path) -> None:
    with DuckDBSession("64MB", tmp_path) as session:
        assert scan_groups_by(session, groups(DUCKDB)) == {}  # the file does not exist
        session.interrupt()
        with pytest.raises(duckdb.InterruptException):
            scan_groups_by(session, groups(DUCKDB))


def scan_by(monkeypatch: pytest.MonkeyPatch, scan: Callable[[DuckDBSession, object], dict[str, ScanAnswer]]) -> None:
    """Scan by a function that knows when its query runs."""
    monkeypatch.setattr("engine.duckdb_scan.scan_groups_by", scan)


def test_a_cancelled_scan_interrupts_its_query_and_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def slow(session: DuckDBSession, _: object) -> dict[str, ScanAnswer]:
        begun.set()
        while not session.interrupted:
            pass
        ended.set()
        raise duckdb.InterruptException("interrupted")

    scan_by(monkeypatch, slow)

    async def cancelled() -> None:
        work = asyncio.create_task(DuckDBScan(Settings.of(sluice_home=tmp_path).scan).scan([], context(tmp_path)))
        await asyncio.to_thread(begun.wait)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(cancelled())
    assert ended.is_set()


def test_a_scan_that_is_cancelled_again_still_waits_for_its_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker may shut down while a cancelled scan ends."""
    begun, go_on = threading.Event(), threading.Event()
    closed_during_query: list[bool] = []
    unread: list[dict[str, Any]] = []

    def slow(session: DuckDBSession, _: object) -> dict[str, ScanAnswer]:
        connection = session._open([])
        begun.set()
        go_on.wait(60)
        try:
            connection.execute("SELECT 1")
            closed_during_query.append(False)
        except duckdb.ConnectionException:
            closed_during_query.append(True)
        raise duckdb.InterruptException("interrupted")

    scan_by(monkeypatch, slow)

    async def cancelled_twice() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, problem: unread.append(problem))
        work = asyncio.create_task(DuckDBScan(Settings.of(sluice_home=tmp_path).scan).scan([], context(tmp_path)))
        await asyncio.to_thread(begun.wait)
        for _ in range(2):
            work.cancel()
            await asyncio.wait([work], timeout=0.1)
        assert not work.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await work
        gc.collect()  # asyncio reports an unread error when its task is freed

    try:
        asyncio.run(cancelled_twice())
    finally:
        go_on.set()
    assert (closed_during_query, unread) == ([False], [])


def test_a_session_may_be_interrupted_once_it_is_closed(tmp_path: Path) -> None:
    with DuckDBSession("64MB", tmp_path) as session:
        pass
    session.interrupt()
    assert session.interrupted


class SilentEngine:
    """An engine that answers only the first of its checks."""

    name, dialect = "spark", SPARK

    def refusals(self, *_: object) -> dict[int, str]:
        return {}

    async def scan(self, scanned: Sequence[ScanGroup], _: ScanContext) -> dict[str, ScanAnswer]:
        return {check_key(scanned[0].table.name, 0): ScanAnswer(error="no")}


class FakeTables:
    def load(self, input: AuditInput) -> Iterable[tuple[str, AuditedTable]]:
        yield "n.t", table(RANGE, UNIQUE, added=[file("/a")])


class FakeReports:
    def __init__(self) -> None:
        self.written: list[CheckResult] = []

    def write_verdicts(self, run_ref: RunRef, head: str, part: str, checks: Sequence[CheckResult]) -> None:
        self.written += checks


def test_a_check_that_no_engine_answers_is_handed_back_or_an_error(tmp_path: Path) -> None:
    reports, engine = FakeReports(), cast(ScanEngine, SilentEngine())
    scanner = TableScanner(
        cast(AuditedTables, FakeTables()), cast(ReportStore, reports), Settings.of(sluice_home=tmp_path).storage
    )
    order = ScanInput(audit=audit_input(t=[RANGE, UNIQUE]), undecided={"n.t": [0, 1]})
    by_files = asyncio.run(run_activity(ScanFilesActivity(scanner, [engine]).scan_files, order))
    assert ([each.index for each in by_files.decided], by_files.undecided) == ([0], {"n.t": [1]})
    reports.written.clear()
    by_spark = asyncio.run(run_activity(ScanBranchActivity(scanner, engine).scan_branch, order))
    assert [(each.index, each.verdict) for each in by_spark.decided] == [(0, "error"), (1, "error")]
    assert by_spark.undecided == {} and reports.written == by_spark.decided
    assert by_spark.decided[1].message == "spark, the last engine, did not answer it"


def test_the_settings_leave_all_scans_to_spark() -> None:
    assert [engine.name for engine in in_process_engines(Settings().scan)] == ["duckdb"]
    assert in_process_engines(Settings.of(sluice_scan_engine="spark").scan) == []
