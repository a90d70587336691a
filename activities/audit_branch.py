"""Answer from metadata alone every check that it can answer, and say which engine may answer the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from temporalio import activity

from activities.audit_tables import AuditedTable, load_audited_tables
from activities.errors import as_application_error
from activities.scan_files import sample_of, unreadable
from lakehouse.catalog import BranchCatalog
from lakehouse.report_store import ReportStore
from sluice.audit.planner import decide
from sluice.audit.verdicts import AnswerSource, CheckResult, check_result, error_result, trim_samples
from sluice.checks.base import Check
from sluice.contracts.activity_inputs import AuditInput, AuditPlan
from sluice.settings import Settings


@dataclass(frozen=True)
class AuditBranchActivity:
    """Needs the catalog, the worker's settings, and the properties by which Iceberg reads the lake."""

    catalog: BranchCatalog
    io: dict[str, str]
    settings: Settings
    reports: ReportStore

    @activity.defn(name="audit_branch")
    def audit_branch(self, input: AuditInput) -> AuditPlan:
        """Give the verdicts that metadata proves, and say which checks the rows must be asked, by which engine."""
        with as_application_error():
            decided: list[CheckResult] = []
            plan: dict[str, dict[str, list[int]]] = {"files": {}, "undecided": {}}
            earlier = self._earlier(input)
            for name, table in load_audited_tables(self.catalog, input, self.io):
                if table is None:
                    checks: Sequence[Check] = input.tables[name].checks
                    decided += [
                        error_result(name, index, check, f"there is no table {name} on the branch")
                        for index, check in enumerate(checks)
                    ]
                    continue
                results, left = self._decided(table, earlier)
                decided += results
                slow = unreadable(table, {index: table.checks[index] for index in left}, self.settings)
                for kind, indexes in (("files", [i for i in left if i not in slow]), ("undecided", sorted(slow))):
                    if indexes:
                        plan[kind][name] = indexes
            self.reports.keep_part(input.run_ref, input.head, "metadata", decided)
            return AuditPlan(decided=trim_samples(decided), **plan)

    def _earlier(self, input: AuditInput) -> dict[tuple[str, int], CheckResult]:
        """Return verdicts that still hold, of checks that look at nothing but the rows which were taken over."""
        if input.previous_audit is None:
            return {}
        run_ref = input.run_ref.model_copy(update={"attempt": input.previous_audit.attempt})
        found = {(each.table, each.index): each for each in self.reports.verdicts(run_ref, input.previous_audit.head)}
        checks = {(name, index): c for name, table in input.tables.items() for index, c in enumerate(table.checks)}
        return {
            key: found[key]
            for key, check in checks.items()
            if key in found and check.row_level and check.scope == "added" and not check.needs and not check.others
        }

    def _decided(
        self, table: AuditedTable, earlier: Mapping[tuple[str, int], CheckResult]
    ) -> tuple[list[CheckResult], list[int]]:
        problems = {index: table.problem(check) for index, check in enumerate(table.checks)}
        sound = [check for index, check in enumerate(table.checks) if problems[index] is None]
        findings = iter(decide(sound, table.facts).values())
        results: list[CheckResult] = []
        left: list[int] = []
        for index, check in enumerate(table.checks):
            if (problem := problems[index]) is not None:
                results.append(error_result(table.name, index, check, problem))
            elif (known := earlier.get((table.name, index))) is not None:
                next(findings)
                results.append(known)
            elif (finding := next(findings)) is not None:
                sample = [] if finding.passed else sample_of(table, check, self.settings)
                results.append(check_result(table.name, index, check, finding, AnswerSource("metadata", sample=sample)))
            else:
                left.append(index)
        return results, left
