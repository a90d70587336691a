"""Drive runs of one table as a person does, on any catalog: start, decide, release, repair, roll back."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.service import RPCError

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.table_state import load_table
from lakehouse.quarantine.quarantined_branches import list_quarantined_branches
from runtime.pipeline.pipeline_input import find_input
from runtime.quarantine.releasing import plan_release
from runtime.run.find_run import Handle, query_status, read_result
from runtime.run.start_run import StartOptions, start_run
from runtime.run.starter import Starter
from runtime.short_workflow import execute_short_workflow, query_lake
from sluice.approval.decisions import Decision
from sluice.contracts.lake_queries import PlanReleaseInput
from sluice.contracts.quarantine import ManageQuarantineInput
from sluice.contracts.rollback import PlanRollbackInput, PlanRollbackResult
from sluice.contracts.run import RunResult
from sluice.errors import AlreadyPublished, SluiceError
from sluice.pipeline.model import Pipeline
from sluice.publishing.rollback import rollback_pipeline
from sluice.settings import Settings
from workflows.quarantine.manage_quarantine import ManageQuarantine
from workflows.write_audit_publish import WriteAuditPublish

REFUSED = "refused"
"""The outcome of a start that was refused."""


@dataclass(frozen=True)
class Ending:
    """The result of a command."""

    outcome: str
    """The outcome of a run; `already published` if main has its files; `refused` if no run began."""
    why: str
    result: RunResult | None = None


@dataclass
class LakeDriver:
    """A driver of pipelines that load the CSV files of a folder into one table, with the columns `id` and `v`.

    A row with a negative `v` is bad. A worker must serve the settings' task queue.
    """

    client: Client
    settings: Settings
    catalog: BranchCatalog
    io: Mapping[str, str]
    table: str
    folder: Path
    recreate: Callable[[str], None] | None = None
    """Drop a table of main and create it again, empty. None if the driver cannot do that."""
    attached: int = 0
    """Number of starts that attached to a run under way."""

    def pipeline(self, *, strict: bool = True, approval: bool = False) -> Pipeline:
        """Return the pipeline: it refuses bad rows if `strict`, and requires an approval if `approval`."""
        checks: list[dict[str, Any]] = [{"check": "not_null", "column": "id"}]
        if strict:
            checks.append({"check": "accepted_range", "column": "v", "min": 0})
        name = self.table.replace(".", "-") + ("-approved" if approval else "")
        stated = {
            "name": name,
            "write": {"source": {"path": str(self.folder), "format": "csv"}},
            "tables": {self.table: {"checks": checks}},
            "approval": {"required": 1} if approval else None,
        }
        return Pipeline.model_validate(stated)

    async def run(self, pipeline: Pipeline, *, again: bool = False) -> Ending:
        """Run a pipeline to its end."""
        handle = await self.start(pipeline, again=again)
        return handle if isinstance(handle, Ending) else await self.end(handle)

    async def start(self, pipeline: Pipeline, *, again: bool = False) -> Handle | Ending:
        """Start a pipeline; return its handle, or the reason why it was refused."""
        return await self._start(pipeline, StartOptions(again=again), with_input=True)

    async def end(self, handle: Handle) -> Ending:
        """Wait for the end of a run."""
        with suppress(WorkflowFailureError):  # the result is read below, whatever the outcome
            await handle.result()
        result = await read_result(self.client, await handle.describe())
        assert result and result.outcome
        outcome = "already published" if result.cause == "already_published" else result.outcome
        return Ending(outcome, result.reason, result)

    async def wait_for_approval(self, handle: Handle) -> Ending | None:
        """Wait until a run waits for approval and return None. If it ends before, return its ending."""
        while True:
            description = await handle.describe()
            if description.status and description.status.name != "RUNNING":
                return await self.end(handle)
            status = await query_status(handle)
            if status and status.stage == "waiting for approval":
                return None
            await asyncio.sleep(0.02)

    async def decide(self, handle: Handle, *, approve: bool) -> Ending:
        """Decide about each hash that a run waits with, until it ends: after a conflict it waits again."""
        while (ended := await self.wait_for_approval(handle)) is None:
            status = await query_status(handle)
            if status is None or status.stage != "waiting for approval":
                continue
            decision = Decision(
                approve=approve,
                by="ana",
                audited_hash=status.result.audited_hash or "",
                audit_digest=status.audit_digest,
            )
            try:
                await handle.execute_update(WriteAuditPublish.decide, decision)
            except (WorkflowUpdateFailedError, RPCError):
                continue  # the run has ended, or waits with another hash
            while True:
                status = await query_status(handle)
                waits = status and status.stage == "waiting for approval"
                if not waits or (status and status.result.audited_hash != decision.audited_hash):
                    break
                await asyncio.sleep(0.02)
        return ended

    async def cancel(self, handle: Handle) -> Ending:
        """Cancel a run, and wait for its end."""
        await handle.cancel()
        return await self.end(handle)

    async def release(self, run_id: str, pipeline: Pipeline | None, *statements: str) -> Ending:
        """Release a quarantine, repaired by the given statements."""
        try:
            query = PlanReleaseInput(run=run_id, statements=list(statements))
            planned = await plan_release(self.client, self.settings.installation, query, pipeline)
        except SluiceError as error:
            return refused(error)
        handle = await self._start(planned.pipeline, planned.options, run_input=planned.run_input)
        return handle if isinstance(handle, Ending) else await self.end(handle)

    async def roll_back(self, run_id: str) -> Ending:
        """Roll back a published run and all later ones. Approve it if the pipeline needs that."""
        try:
            query = PlanRollbackInput(run=run_id, with_later=True)
            plan = await query_lake(self.client, self.settings.installation, query, PlanRollbackResult)
        except SluiceError as error:
            return refused(error)
        pipeline = rollback_pipeline(self.pipeline(), plan.restore.tables, plan.remaining)
        handle = await self._start(pipeline, StartOptions(restore=plan.restore))
        return handle if isinstance(handle, Ending) else await self.decide(handle, approve=True)

    async def discard(self, branch: str) -> None:
        """Delete a quarantine."""
        manage = ManageQuarantineInput(action="discard", branch=branch, by="ana", until="")
        await execute_short_workflow(
            self.client, self.settings.installation, ManageQuarantine.run, manage, "discard-quarantine"
        )

    def has_table(self) -> bool:
        """Return True if the table is on main."""
        return self.catalog.table_version(self.catalog.main, self.table) is not None

    def rows(self) -> Counter[int]:
        """Return the number of rows of each id on main."""
        version = self.catalog.table_version(self.catalog.main, self.table)
        if version is None:
            return Counter()
        return Counter(load_table(version, self.io).scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())

    def branches_of_attempts(self) -> list[str]:
        """Return the branches of attempts of these pipelines."""
        label = self.pipeline().label
        return [each.name for each in self.catalog.list_branches("wap/") if each.name.startswith(f"wap/{label}")]

    def quarantines(self) -> set[str]:
        """Return the quarantined branches of these pipelines."""
        names = {self.pipeline().name, self.pipeline(approval=True).name}
        return {each.branch for each in list_quarantined_branches(self.catalog) if each.pipeline in names}

    async def _start(self, pipeline: Pipeline, options: StartOptions, **more: Any) -> Handle | Ending:
        try:
            run_input = find_input(pipeline) if more.pop("with_input", False) else more.get("run_input")
            starter = Starter("tester", self.folder)
            started = await start_run(self.client, self.settings, pipeline, run_input, starter, options)
        except SluiceError as error:
            return refused(error)
        self.attached += started.attached
        return started.handle


def refused(error: SluiceError) -> Ending:
    """Return the ending of a refused command."""
    outcome = "already published" if isinstance(error, AlreadyPublished) else REFUSED
    return Ending(outcome, str(error))
