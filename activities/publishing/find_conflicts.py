"""Find conflicts before the merge: tables that main changed, and that the run changed or its checks read."""

from dataclasses import dataclass

from temporalio import activity

from lakehouse.catalog import BranchCatalog
from lakehouse.publishing.table_versions import tables_changed_since
from sluice.contracts.publish import FindConflictsInput


@dataclass(frozen=True)
class FindConflictsActivity:
    """The activity `find_conflicts`. Needs the catalog."""

    catalog: BranchCatalog

    @activity.defn(name="find_conflicts")
    def find_conflicts(self, input: FindConflictsInput) -> list[str]:
        """Return the tables that would make a merge fail now."""
        conflicts = self.catalog.find_conflicts(input.branch.name, input.head)
        return conflicts or tables_changed_since(self.catalog, input.watched_tables, input.branch.base)
