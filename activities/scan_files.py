"""Ask the rows by DuckDB, in this process, straight over the undecided data files."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
from temporalio import activity

from activities.audit_tables import AuditedTable, fields_of, load_audited_tables
from activities.errors import as_application_error
from activities.job_folder import create_job_folder
from engine.duckdb_scan import DuckDBScan, FileView
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.table_state import TableState
from lakehouse.report_store import ReportStore
from sluice.audit.planner import READABLE, ScanGroup, clusters, duckdb_refusal, scan_groups
from sluice.audit.statistics import FileStatistics
from sluice.audit.verdicts import SAMPLE_ROWS, AnswerSource, CheckResult, check_result, trim_samples
from sluice.checks.base import REST, ROWS, Check
from sluice.checks.rows import RowCheck
from sluice.contracts.activity_inputs import AuditPlan, RunRef, ScanInput
from sluice.settings import Settings
from sluice.sql.dialect import DUCKDB
from sluice.sql.values import kind_of

_BEAT = 1.0
_SAMPLE_MEMORY = "256MB"
log = logging.getLogger("sluice.scan")


@dataclass(frozen=True)
class ScanFilesActivity:
    """Needs the catalog, the properties by which Iceberg reads the lake, and the worker's settings."""

    catalog: BranchCatalog
    io: dict[str, str]
    settings: Settings
    reports: ReportStore

    @activity.defn(name="scan_files")
    async def scan_files(self, input: ScanInput) -> AuditPlan:
        """Answer checks; those that turn out to be beyond DuckDB are handed back as undecided."""
        with as_application_error():
            duck = open_duck(self.settings, input.audit.run_ref)
            work = asyncio.create_task(asyncio.to_thread(self._scan, duck, input))
            try:
                while not (await asyncio.wait({work}, timeout=_BEAT))[0]:
                    activity.heartbeat("scanning data files")
            except asyncio.CancelledError:
                duck.interrupt()
                await asyncio.wait({work})
                raise
            return work.result()

    def _scan(self, duck: DuckDBScan, input: ScanInput) -> AuditPlan:
        with duck:
            if not duck.take_turn():
                raise duckdb.InterruptException("interrupted before its turn")
            try:
                return self._answers(duck, input)
            finally:
                duck.end_turn()

    def _answers(self, duck: DuckDBScan, input: ScanInput) -> AuditPlan:
        decided: list[CheckResult] = []
        left: dict[str, list[int]] = {}
        for name, table in load_audited_tables(self.catalog, input.audit, self.io):
            indexes = input.undecided.get(name, [])
            if table is None or not indexes:
                continue
            try:
                decided += answered(duck, table, {index: table.checks[index] for index in indexes})
            except duckdb.InterruptException:
                raise
            except duckdb.Error as error:
                log.warning("%s: DuckDB gives up, Spark takes over: %s", name, str(error).split("\n", 1)[0])
                left[name] = indexes
        self.reports.keep_part(input.audit.run_ref, input.audit.head, "files", decided)
        return AuditPlan(decided=trim_samples(decided), undecided=left)


def open_duck(settings: Settings, run_ref: RunRef) -> DuckDBScan:
    """Start a DuckDB within the bounds of the settings."""
    return DuckDBScan(settings.sluice_scan_memory, create_job_folder(settings, run_ref, "scan") / "scratch")


def unreadable(table: AuditedTable, checks: Mapping[int, Check], settings: Settings) -> dict[int, str]:
    """Return the checks that DuckDB must not answer, with the reason."""
    if settings.sluice_scan_engine == "spark":
        return dict.fromkeys(checks, "the settings say Spark")
    evolved = _evolved(table.state)
    found, left = scan_groups(checks, table.facts, DUCKDB)
    for reading in found:
        for index, question in reading.questions.items():
            files = [*reading.files, *_beside(table, reading, index)]
            columns = {name: table.facts.types[name] for name in question.columns}
            why = evolved or duckdb_refusal(files, columns, settings.sluice_scan_bytes)
            if why:
                left[index] = why
    return left


def sample_of(table: AuditedTable, check: Check, settings: Settings) -> list[dict[str, object]]:
    """Return a few of the rows that metadata proves to be bad; none where DuckDB may not read them."""
    if not isinstance(check, RowCheck) or unreadable(table, {0: check}, settings):
        return []
    types = table.facts.types
    files = [file for file in table.facts.files(check.scope) if check.known_in(file, types) != 0]
    question = check.question(DUCKDB, types)
    if question.groups:
        return []
    with DuckDBScan(_SAMPLE_MEMORY, settings.runs / "duckdb") as duck:
        views = [_view(ROWS, table.state, files)]
        try:
            answers = duck.ask(views, {"sample": question}, types, with_rest=False, sample_rows=SAMPLE_ROWS)
        except duckdb.Error as error:
            log.warning("%s: no sample of bad rows: %s", table.name, str(error).split("\n", 1)[0])
            return []
    return answers["sample"].sample


def answered(duck: DuckDBScan, table: AuditedTable, checks: Mapping[int, Check]) -> list[CheckResult]:
    results: list[CheckResult] = []
    for reading in scan_groups(checks, table.facts, DUCKDB)[0]:
        questions = {str(index): question for index, question in reading.questions.items()}
        rest = table.rest_of(reading.questions.values(), reading.files)
        views = [_view(ROWS, table.state, reading.files), *_other_views(table, reading)]
        views += [_view(REST, table.state, rest)] if rest else []
        answers = duck.ask(
            views,
            questions,
            table.facts.types,
            with_rest=bool(rest),
            sample_rows=SAMPLE_ROWS,
            apart={} if rest else _apart(table, reading),
        )
        for index, check in reading.checks.items():
            answer = answers[str(index)]
            read = [*reading.files, *_beside(table, reading, index)]
            reply = AnswerSource("duckdb", answer.sample, len(read), reading.bytes_of(index))
            results.append(check_result(table.name, index, check, reading.finding(index, answer), reply))
    return results


def _apart(table: AuditedTable, reading: ScanGroup) -> dict[str, list[FileView]]:
    """Part the files of each question of keys by the bounds of the key, where no key can lie in two parts."""
    found = {}
    for index, question in reading.questions.items():
        if question.groups_with_rest and question.key and not question.null_keys:
            parts = clusters(reading.files, question.key, table.facts.types[question.key])
            if len(parts) > 1:
                found[str(index)] = [
                    _view(f"{ROWS}_{index}_{number}", table.state, part, question.columns)
                    for number, part in enumerate(parts)
                ]
    return found


def _beside(table: AuditedTable, reading: ScanGroup, index: int) -> list[FileStatistics]:
    """Return the files beside the rows in scope that one check looks at."""
    question = reading.questions[index]
    if question.other:
        other = table.others[question.other.key]
        return table.files_of(other, list(reading.questions.values()), reading.files)
    return table.rest_of([question], reading.files)


def _other_views(table: AuditedTable, reading: ScanGroup) -> list[FileView]:
    questions = list(reading.questions.values())
    keys = {question.other.key for question in questions if question.other}
    views = []
    for key in sorted(keys):
        other = table.others[key]
        files = table.files_of(other, questions, reading.files)
        views.append(_view(other.other.view, other.state, files, other.other.columns))
    return views


def _view(name: str, state: TableState, files: Sequence[FileStatistics], columns: Sequence[str] = ()) -> FileView:
    readable = [each for each in fields_of(state) if kind_of(each.type) in READABLE]
    wanted = [each for each in readable if each.name in columns] or readable
    return FileView(name, wanted, [file.path for file in files])


def _evolved(state: TableState) -> str | None:
    """Return why the files cannot be read by field id alone, or None."""
    if "schema.name-mapping.default" in state.table.properties:
        return "files are mapped by name"
    if any(field.initial_default is not None for field in state.table.schema().fields):
        return "a column has a default"
    return None
