"""Describe one quarantined branch: the reason of the quarantine, and the changes."""

from collections.abc import Mapping
from dataclasses import dataclass

from temporalio import activity

from lakehouse.audit.report_store import ReportStore
from lakehouse.catalog import BranchCatalog
from lakehouse.quarantine.quarantined_branches import find_quarantined_branch, read_quarantined_tables
from sluice.checks.verdicts import short_row, trim_samples, verdicts_digest
from sluice.contracts.lake_queries import check_result_size
from sluice.contracts.quarantine_queries import DescribeQuarantineInput, DescribeQuarantineResult, QuarantinedTable
from sluice.contracts.references import RunRef
from sluice.publishing.commit_properties import VERDICTS
from sluice.sql.values import json_value

_SAMPLES_BYTES = 500_000
"""Maximum size of the verdicts with their bad rows in an answer, in bytes: about half of Temporal's limit."""


@dataclass(frozen=True)
class DescribeQuarantineActivity:
    """The activity `describe_quarantine`.

    Needs the catalog, Iceberg's FileIO properties for the lake, and the reports of runs.
    """

    catalog: BranchCatalog
    io: Mapping[str, str]
    reports: ReportStore

    @activity.defn(name="describe_quarantine")
    def describe_quarantine(self, input: DescribeQuarantineInput) -> DescribeQuarantineResult:
        """Return the summary, the tables and the verdicts of a quarantined branch."""
        branch = find_quarantined_branch(self.catalog, input.run)
        added_rows = input.rows if input.added_rows is None else input.added_rows
        tables = {
            table.name: QuarantinedTable(
                change=table.change,
                columns=table.columns,
                bytes=table.bytes,
                rows=[short_row(json_value(row)) for row in table.rows],
            )
            for table in read_quarantined_tables(self.catalog, self.io, branch, rows=added_rows)
        }
        run_ref = RunRef(run_id=branch.run_id, workflow_id="", pipeline=branch.pipeline, label="", attempt=0)
        report = self.reports.read_report(run_ref)
        checks = trim_samples(report.checks, _SAMPLES_BYTES, input.rows) if report else []
        # Jobs can write to the lake, where the report is stored. Only the publisher makes the commit with the digest.
        if verdicts_digest(checks) != branch.properties.get(VERDICTS):
            checks = []
        result = DescribeQuarantineResult(summary=branch.summary, tables=tables, checks=checks)
        check_result_size(len(result.model_dump_json().encode()), "show fewer rows of each table with --rows")
        return result
