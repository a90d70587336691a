"""Audit a branch from metadata alone, and choose a scan engine for each check that stays undecided."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from engine.scan import SamplingEngine
from lakehouse.audit.audited_tables import AuditedTables
from lakehouse.audit.report_store import ReportStore
from lakehouse.catalog import BranchCatalog
from sluice.audit.carry_over import carried_over_verdicts
from sluice.audit.planner import plan_audit, sample_group
from sluice.audit.tables import AuditedTable
from sluice.checks.base import Check
from sluice.checks.verdicts import CheckResult, short_verdicts, trim_samples
from sluice.contracts.audit import AuditInput, AuditResult
from sluice.setting_groups import StorageSettings


@dataclass(frozen=True)
class AuditBranchActivity:
    """The activity `audit_branch`.

    Needs the loader of audited tables, the report store, the settings of storage, and the engines of its process.
    """

    tables: AuditedTables
    reports: ReportStore
    settings: StorageSettings
    engines: Sequence[SamplingEngine]

    @property
    def catalog(self) -> BranchCatalog:
        """Catalog of the audited tables."""
        return self.tables.catalog

    @activity.defn(name="audit_branch")
    def audit_branch(self, input: AuditInput) -> AuditResult:
        """Answer the checks that metadata can decide. The checks in `files` and `undecided` need a scan."""
        carried_over = self._carried_over(input)
        plan = plan_audit(input, self.tables.load(input), carried_over, self.engines, self._sample)
        decided = short_verdicts(plan.decided, input.check_count)
        self.reports.write_verdicts(input.run_ref, input.head, "metadata", decided)
        return plan.model_copy(update={"decided": trim_samples(decided)})

    def _carried_over(self, input: AuditInput) -> dict[tuple[str, int], CheckResult]:
        """Return the verdicts from before a rebase that are still valid."""
        if input.previous_audit is None:
            return {}
        checks = {name: table.checks for name, table in input.tables.items()}
        return carried_over_verdicts(checks, input.previous_audit.verdicts)

    def _sample(self, table: AuditedTable, check: Check) -> Sequence[dict[str, Any]]:
        """Return a few bad rows of a check that fails by metadata, if an engine of this process may read them."""
        for engine in self.engines:
            if not engine.refusals(table, {0: check}):
                group = sample_group(table, check, engine.dialect)
                return engine.sample(group, self.settings.runs / "duckdb") if group else []
        return []
