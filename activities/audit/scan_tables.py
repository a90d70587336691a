"""Code shared by the activities `scan_files` and `scan_branch`: load tables, scan them, store the verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from temporalio import activity

from activities.run.job_folder import JobName, create_job_folder
from engine.process.heartbeat import run_in_thread
from engine.scan import ScanContext, ScanEngine
from lakehouse.audit.audited_tables import AuditedTables
from lakehouse.audit.report_store import ReportStore
from sluice.audit.answers import verdicts
from sluice.audit.scan_groups import ScanGroup, scan_groups
from sluice.checks.results import error_result
from sluice.checks.verdicts import CheckResult, short_verdicts, trim_samples
from sluice.contracts.audit import AuditInput, AuditResult, ScanInput
from sluice.contracts.spark_jobs import ScanAnswer
from sluice.setting_groups import StorageSettings


@dataclass(frozen=True)
class TableScanner:
    """A scanner of tables. Needs the loader of audited tables, the report store, and the settings of storage."""

    tables: AuditedTables
    reports: ReportStore
    settings: StorageSettings

    async def scan(
        self, input: ScanInput, engines: Sequence[ScanEngine], part: str, *, is_last: bool = False
    ) -> AuditResult:
        """Answer undecided checks by these engines in order; return the checks that none of them answered.

        Args:
            part: the name of the part of the stored report that gets these verdicts.
            is_last: True if no other engine follows. Then each unanswered check gets an error.
        """
        job: JobName = "rescan" if input.audit.rows_were_quarantined else "scan"  # each has its own session and driver
        make_folder = partial(create_job_folder, self.settings, input.audit.run_ref, job)
        folder = await run_in_thread(make_folder, activity.heartbeat, "preparing the scan")
        context = ScanContext(
            input.audit, folder, activity.heartbeat, input.try_number, input.is_last_try, input.runs_apart
        )
        decided: list[CheckResult] = []
        undecided: Mapping[str, Sequence[int]] = input.undecided
        for engine in engines:
            load = partial(self._accepted_groups, engine, input.audit, undecided)
            groups = await run_in_thread(load, activity.heartbeat, "reading table metadata")
            answers = await engine.scan(groups, context) if groups else {}
            decide = partial(_verdicts, groups, answers, engine)
            decided += await run_in_thread(decide, activity.heartbeat, "reading the answers")
            undecided = _still_undecided(undecided, decided)
        if is_last:
            decided += _unanswered(input.audit, undecided, engines[-1])
            undecided = {}
        store = partial(self._store, input.audit, part, short_verdicts(decided, input.audit.check_count))
        trimmed = await run_in_thread(store, activity.heartbeat, "storing the verdicts")
        return AuditResult(decided=trimmed, undecided={name: [*each] for name, each in undecided.items()})

    def _store(self, audit: AuditInput, part: str, decided: Sequence[CheckResult]) -> list[CheckResult]:
        """Store verdicts with all samples; return them with samples trimmed to fit into a history."""
        self.reports.write_verdicts(audit.run_ref, audit.head, part, decided)
        return trim_samples(decided)

    def _accepted_groups(
        self, engine: ScanEngine, audit: AuditInput, undecided: Mapping[str, Sequence[int]]
    ) -> list[ScanGroup]:
        groups: list[ScanGroup] = []
        for name, table in self.tables.load(audit):
            if table is not None:
                checks = {index: table.checks[index] for index in undecided.get(name, [])}
                refused = engine.refusals(table, checks)
                accepted = {index: check for index, check in checks.items() if index not in refused}
                groups += scan_groups(table, accepted, engine.dialect)[0]
        return groups


def _verdicts(groups: Sequence[ScanGroup], answers: Mapping[str, ScanAnswer], engine: ScanEngine) -> list[CheckResult]:
    return [verdict for group in groups for verdict in verdicts(group, answers, engine.name)]


def _unanswered(audit: AuditInput, undecided: Mapping[str, Sequence[int]], engine: ScanEngine) -> list[CheckResult]:
    why = f"{engine.name}, the last engine, did not answer it"
    return [
        error_result(name, index, audit.tables[name].checks[index], why)
        for name, indexes in undecided.items()
        for index in indexes
    ]


def _still_undecided(undecided: Mapping[str, Sequence[int]], decided: Sequence[CheckResult]) -> dict[str, list[int]]:
    answered = {(verdict.table, verdict.index) for verdict in decided}
    rest = {name: [each for each in indexes if (name, each) not in answered] for name, indexes in undecided.items()}
    return {name: indexes for name, indexes in rest.items() if indexes}
