"""Scan data files in the worker's own process, for the checks that metadata leaves undecided."""

from collections.abc import Sequence
from dataclasses import dataclass

from temporalio import activity

from activities.audit.scan_tables import TableScanner
from engine.scan import ScanEngine
from lakehouse.catalog import BranchCatalog
from sluice.contracts.audit import AuditResult, ScanInput


@dataclass(frozen=True)
class ScanFilesActivity:
    """The activity `scan_files`. Needs the table scanner, and the engines of this process in order."""

    scanner: TableScanner
    engines: Sequence[ScanEngine]

    @property
    def catalog(self) -> BranchCatalog:
        """Catalog of the scanned tables."""
        return self.scanner.tables.catalog

    @activity.defn(name="scan_files")
    async def scan_files(self, input: ScanInput) -> AuditResult:
        """Answer the checks that these engines can answer; return the others as undecided, for Spark."""
        return await self.scanner.scan(input, self.engines, "files")
