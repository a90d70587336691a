"""Plan a requeue: a run that moves quarantined rows back into their table."""

from collections.abc import Mapping
from dataclasses import dataclass

from temporalio import activity

from lakehouse.catalog import BranchCatalog, TableVersion
from lakehouse.iceberg.exact_types import inexact_columns
from lakehouse.iceberg.table_state import TableState
from sluice.contracts.lake_queries import PlanRequeueInput, RequeuePlan
from sluice.errors import InvalidPipeline
from sluice.pipeline.loading_rules import rule_of
from sluice.publishing.quarantine_tables import RUN, quarantine_table
from sluice.publishing.requeue import check_number_of_runs, plan_requeue, requeued_table


@dataclass(frozen=True)
class PlanRequeueActivity:
    """The activity `plan_requeue`.

    Needs the catalog, Iceberg's FileIO properties for the lake, and the name of the catalog in Spark.
    """

    catalog: BranchCatalog
    io: Mapping[str, str]
    spark_catalog: str

    @activity.defn(name="plan_requeue")
    def plan_requeue(self, input: PlanRequeueInput) -> RequeuePlan:
        """Return the pipeline and the input of the requeue, with the selected runs in the field for its write mode."""
        head = self.catalog.head(self.catalog.main)
        table = requeued_table(input.pipeline, input.selection.table)
        version, quarantine = self._version(table, head), self._version(quarantine_table(table), head)
        quarantined, present = (TableState.load(each, None, self.io) for each in (quarantine, version))
        plan = plan_requeue(
            input.pipeline,
            table,
            input.selection,
            columns=present.plain_types,
            quarantined_columns=quarantined.plain_types,
            inexact=inexact_columns(quarantined.table.schema(), present.table.schema()),
            quarantine_location=quarantine.metadata_location,
            quarantine_snapshot=quarantine.snapshot_id,
            spark_catalog=self.spark_catalog,
        )
        shown = [input.selection.run] if input.selection.run else input.selection.runs
        runs = _runs(quarantined) if shown is None else shown
        check_number_of_runs(quarantine_table(table), len(runs))
        guard = rule_of("requeue", input.pipeline.write, [table]).guard
        return plan.model_copy(update={"runs" if guard == "later run" else "files_of_runs": runs})

    def _version(self, table: str, head: str) -> TableVersion:
        version = self.catalog.table_version(self.catalog.main, table, head)
        if version is None:
            raise InvalidPipeline(f"there is no table {table} on {self.catalog.main}: no rows are quarantined yet")
        return version


def _runs(quarantined: TableState) -> list[str]:
    """Return the runs that quarantined the rows of a quarantine table."""
    column = quarantined.table.scan(selected_fields=(RUN,)).to_arrow()[RUN]
    return sorted(run for run in column.unique().to_pylist() if run)
