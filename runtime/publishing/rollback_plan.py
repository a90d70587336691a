"""Plan the roll-back of a published run, in the same way for the command line and the page."""

from dataclasses import dataclass, replace

from temporalio.client import Client

from runtime.run.run_request import read_request
from runtime.run.start_run import StartOptions
from runtime.short_workflow import query_lake
from sluice.contracts.rollback import PlanRollbackInput, PlanRollbackResult
from sluice.pipeline.model import Pipeline
from sluice.presentation.changes import describe_change
from sluice.publishing.rollback import (
    choose_rollback_pipeline,
    describe_missing_checks,
    describe_older_checks,
    rollback_pipeline,
    tables_without_checks,
)
from sluice.setting_groups import InstallationSettings


@dataclass(frozen=True)
class PlannedRollback:
    """A run that restores the tables of published runs, before its start, with what a person has to know of it."""

    plan: PlanRollbackResult
    pipeline: Pipeline
    """Pipeline of the roll-back: the checks of the tables that remain."""
    audits: list[str]
    """Sentences about the checks that audit restored versions, if main records them."""
    unaudited: list[str]
    """Tables that are restored without any check."""
    not_audited: str
    """Message about these tables, with the next step; empty if there are none."""

    @property
    def options(self) -> StartOptions:
        """Options of the start."""
        return StartOptions(restore=self.plan.restore)

    @property
    def effects(self) -> dict[str, str]:
        """Effect on each table, as a phrase."""
        return {table: self._effect(table, at) for table, at in self.plan.restore.tables.items()}

    def with_main_head(self, head: str) -> "PlannedRollback":
        """Return the same roll-back, planned at a head of main. The run verifies the tables against this head."""
        restore = self.plan.restore.model_copy(update={"main_head": head})
        return replace(self, plan=self.plan.model_copy(update={"restore": restore}))

    def _effect(self, table: str, at: str) -> str:
        change = f": {describe_change(self.plan.changes[table])}" if table in self.plan.changes else ""
        if table not in self.plan.remaining:
            return f"dropped, since main at {at[:12]} does not have it{change}"
        return f"as on main at {at[:12]}{change}"


async def plan_rollback(
    client: Client,
    settings: InstallationSettings,
    query: PlanRollbackInput,
    given: Pipeline | None = None,
    *,
    allow_partial: bool = False,
) -> PlannedRollback:
    """Plan a roll-back.

    Args:
        given: the pipeline that a person named; None means the recorded checks, or those of the run.
        allow_partial: True if the catalog may publish several tables one by one.

    Raises:
        InvalidPipeline: the run is not on main, later runs stand against it, or its checks are not known.
        TableReplaced: a table is no longer the one that the run wrote.
        ServiceUnavailable: no worker answers.
    """
    plan = await query_lake(client, settings, query, PlanRollbackResult)
    earlier = None if given or plan.recorded else await _read_pipeline(client, plan)
    chosen = choose_rollback_pipeline(plan.pipeline, given, plan.recorded, earlier)
    older = {} if given else plan.older
    checks = {table: published.table for table, published in older.items()}
    audited = rollback_pipeline(
        chosen, plan.restore.tables, plan.remaining, checks, allow_partial=allow_partial, show_rows=plan.show_rows
    )
    unaudited = tables_without_checks(audited, plan.remaining)
    missing = describe_missing_checks(unaudited, chosen.name, is_given=given is not None) if unaudited else ""
    return PlannedRollback(plan, audited, describe_older_checks(older), unaudited, missing)


async def _read_pipeline(client: Client, plan: PlanRollbackResult) -> Pipeline | None:
    """Return the pipeline of the run from Temporal, or None if Temporal no longer has it."""
    request = await read_request(client, plan.workflow_id, plan.restore.runs[-1]) if plan.workflow_id else None
    return request.pipeline if request else None
