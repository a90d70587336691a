"""Plan the roll-back of a published run."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from lakehouse.published_commits import list_published_commits
from sluice.contracts.existing_rows import Restore
from sluice.contracts.lake_queries import PlanRollbackInput, PlanRollbackResult
from sluice.publishing.rollback import plan_rollback


@dataclass(frozen=True)
class PlanRollbackActivity:
    """The activity `plan_rollback`. Needs the catalog."""

    catalog: BranchCatalog

    @activity.defn(name="plan_rollback")
    def plan_rollback(self, input: PlanRollbackInput) -> PlanRollbackResult:
        """Return which tables are restored to which hash of main."""
        with as_application_error():
            main = self.catalog.main
            main_head = self.catalog.head(main)
            history = list_published_commits(self.catalog, input.run_id)
            plan = plan_rollback(history, input.run_id, with_later=input.with_later)
            remaining = [name for name, at in plan.tables.items() if self.catalog.table_version(main, name, at)]
            return PlanRollbackResult(
                restore=Restore(runs=plan.runs, main_head=main_head, tables=plan.tables), remaining=remaining
            )
