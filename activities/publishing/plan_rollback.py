"""Plan the roll-back of a published run."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from temporalio import activity

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.table_identity import is_another_table
from lakehouse.iceberg.table_state import TableState
from lakehouse.publishing.published_commits import (
    find_published_checks,
    list_published_commits,
    read_published_commits,
    recorded_pipeline,
)
from sluice.contracts.existing_rows import Restore
from sluice.contracts.lake_queries import check_result_size
from sluice.contracts.rollback import PlanRollbackInput, PlanRollbackResult
from sluice.contracts.table_changes import TableChange
from sluice.publishing.published_run import find_published_run
from sluice.publishing.quarantine_tables import is_quarantine_table
from sluice.publishing.rollback import PublishedCommit, RollbackPlan, check_same_tables, plan_rollback, restored_change
from sluice.roles import ShowRows, strictest


@dataclass(frozen=True)
class PlanRollbackActivity:
    """The activity `plan_rollback`. It does not use Temporal, because the history of main names the runs.

    Needs the catalog and Iceberg's FileIO properties for the lake. Without these properties it counts no rows.
    """

    catalog: BranchCatalog
    io: Mapping[str, str] | None = None

    @activity.defn(name="plan_rollback")
    def plan_rollback(self, input: PlanRollbackInput) -> PlanRollbackResult:
        """Return the tables to restore, each with the hash of main to restore, and the runs that read them since."""
        main = self.catalog.main
        main_head = self.catalog.head(main)
        target = find_published_run(list(read_published_commits(self.catalog)), input.run)
        history = list_published_commits(self.catalog, target.run_id)
        plan = plan_rollback(history, target.run_id, with_later=input.with_later, despite_readers=input.despite_readers)
        check_same_tables(self._replaced(history, plan, main_head))
        remaining = [name for name, at in plan.tables.items() if self.catalog.table_version(main, name, at)]
        audited = [name for name in remaining if not is_quarantine_table(name)]
        result = PlanRollbackResult(
            restore=Restore(runs=plan.runs, main_head=main_head, tables=plan.tables),
            remaining=remaining,
            pipeline=target.pipeline,
            workflow_id=target.workflow_id,
            recorded=recorded_pipeline(self._properties(target.hash)),
            older=find_published_checks(self.catalog, {name: plan.tables[name] for name in audited}),
            readers=plan.readers,
            show_rows=self._show_rows({each.hash for each in history if each.run_id in plan.runs} - {target.hash}),
            changes=self._changes(plan.tables, main_head),
        )
        check_result_size(len(result.model_dump_json().encode()), "roll back later runs first, a few at a time")
        return result

    def _replaced(self, history: Sequence[PublishedCommit], plan: RollbackPlan, main_head: str) -> list[str]:
        """Return the tables that another program dropped and created again since the newest of the runs."""
        newest: dict[str, str] = {}
        for commit in reversed(history):
            if commit.run_id and commit.run_id in plan.runs:
                newest.update(dict.fromkeys(commit.tables, commit.hash))
        main, versions = self.catalog.main, self.catalog.table_version
        replaced = []
        for name, at in newest.items():
            then, now = versions(main, name, at), versions(main, name, main_head)
            if is_another_table(then, now, self._io) or (then is None and now is not None):
                replaced.append(name)
        return replaced

    @property
    def _io(self) -> Mapping[str, str]:
        return self.io or {}

    def _changes(self, tables: Mapping[str, str], main_head: str) -> dict[str, TableChange]:
        """Return the change of each table in rows. A table whose metadata cannot be read is left out."""
        changes: dict[str, TableChange] = {}
        for name, at in tables.items() if self.io is not None else ():
            with suppress(FileNotFoundError):  # the run refuses to restore this version, with the reason
                changes[name] = restored_change(self._rows(name, at), self._rows(name, main_head))
        return changes

    def _rows(self, table: str, at: str) -> int | None:
        """Return the number of rows of a table at a hash of main, from metadata; None if there is no such table."""
        version = self.catalog.table_version(self.catalog.main, table, at)
        return TableState.load(version, None, self._io).total_rows or 0 if version else None

    def _show_rows(self, commits: set[str]) -> ShowRows:
        """Return who may see rows of all these runs. If a run records no pipeline, its rows are hidden."""
        pipelines = [recorded_pipeline(self._properties(each)) for each in commits]
        return strictest(each.show_rows if each else "nobody" for each in pipelines)

    def _properties(self, hash: str) -> Mapping[str, str]:
        return next(each.properties for each in self.catalog.history(self.catalog.main) if each.hash == hash)
