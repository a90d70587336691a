"""Scan a branch at the audited hash by one Spark job, for the checks that no other engine may answer."""

from dataclasses import dataclass

from temporalio import activity

from activities.audit.scan_tables import TableScanner
from engine.scan import ScanEngine
from lakehouse.catalog import BranchCatalog
from sluice.contracts.audit import AuditResult, ScanInput


@dataclass(frozen=True)
class ScanBranchActivity:
    """The activity `scan_branch`. Needs the table scanner and Spark's scan engine."""

    scanner: TableScanner
    engine: ScanEngine

    @property
    def catalog(self) -> BranchCatalog:
        """Catalog of the scanned tables."""
        return self.scanner.tables.catalog

    @activity.defn(name="scan_branch")
    async def scan_branch(self, input: ScanInput) -> AuditResult:
        """Answer all undecided checks. A check that Spark cannot answer gets an error, which blocks the merge."""
        return await self.scanner.scan(input, [self.engine], "spark", is_last=True)
