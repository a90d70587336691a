"""Drive the landing zone of one pipeline as people do: files that arrive, listings, decisions, retries, roll-backs."""

import asyncio
import json
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError

from lakehouse.arrivals.batch_store import BatchStore
from lakehouse.catalog import CommitInfo
from lakehouse.iceberg.table_state import load_table
from lakehouse.source_files import identify_input
from runtime.arrivals.deployed_zones import DeployedLandingZones
from runtime.arrivals.landing_zones import (
    command_batch,
    list_now,
    load_batch,
    pause_zone,
    read_zone,
)
from runtime.arrivals.zone_files import list_zone_files
from runtime.pipeline.pipeline_input import pipeline_of_text
from runtime.run.find_run import Handle, query_status
from runtime.run.start_run import StartOptions
from runtime.short_workflow import query_lake
from sluice.arrivals.held_batches import decided_states
from sluice.contracts.arrivals import Batch, ZoneStatus, landing_zone_id
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.run_request import InputFile, run_workflow_id
from sluice.contracts.starting import PipelineText
from sluice.contracts.zone_loads import LoadBatch, LoadPlan, PlanLoadInput
from sluice.contracts.zone_requests import BatchCommand, PauseZone
from sluice.deployment.files import PipelineFile
from sluice.deployment.plan import Change, DeploySet
from sluice.errors import InvalidPipeline
from sluice.pipeline.model import Pipeline
from sluice.publishing.commit_properties import RUN_ID
from tests.harness.lake_driver import Ending, LakeDriver
from tests.harness.memory_system import ZoneClock
from workflows.arrivals.landing_zone import LandingZone
from workflows.write_audit_publish import WriteAuditPublish

SETTLE = 60.0
"""Time after which a file of the zone has settled, in seconds."""
_LIMIT = 300.0
"""Maximum time until a zone waits for a person or for files, in seconds, on the slowest machine."""


@dataclass
class ZoneDriver(LakeDriver):
    """A driver that lets files arrive in the landing zone of one pipeline. The zone is listed only on command."""

    clock: ZoneClock = field(default_factory=ZoneClock)
    options: dict[str, Any] = field(default_factory=dict)
    """The keys of the arrival, except its folder."""
    mode: str = "append"
    needs_approval: bool = False

    @property
    def zone(self) -> Path:
        """The folder of the landing zone."""
        return self.folder / "zone"

    @property
    def name(self) -> str:
        """The name of the pipeline."""
        return self.table.replace(".", "-")

    def pipeline(self, *, strict: bool = True, approval: bool = False) -> Pipeline:
        """Return the pipeline of the runs of the zone."""
        return pipeline_of_text(self._text).model_copy(update={"arrival": None})

    @property
    def beside(self) -> Path:
        """The folder of a scheduled pipeline that loads into the same table."""
        return self.folder / "beside"

    async def run_beside(self) -> Ending:
        """Run the pipeline of the other folder, as its schedule does."""
        pipeline = pipeline_of_text(self._text)
        source = {"path": str(self.beside), "format": "csv"}
        stated = {"name": f"{self.name}-beside", "arrival": None, "approval": None, "write": {"source": source}}
        order = LoadOrder(partition=datetime.fromtimestamp(self.clock.now, timezone.utc).isoformat())
        of = Pipeline.model_validate({**pipeline.model_dump(by_alias=True), **stated})
        handle = await self._start(of, StartOptions(order=order), with_input=True)
        return handle if isinstance(handle, Ending) else await self.end(handle)

    async def deploy(self) -> None:
        """Create the landing zone."""
        self.zone.mkdir()
        deployed = DeploySet("tests", str(self.folder))
        zones = DeployedLandingZones(self.client, self.settings.installation, deployed, self.folder)
        file = PipelineFile(self._text.name, self._text.text, pipeline_of_text(self._text))
        item = zones.wanted(file)
        assert item
        await zones.apply(Change("create", item), file)
        await self._until_at_rest(listings=1)

    async def deploy_again(self) -> None:
        """Replace the landing zone by one with the present options."""
        deployed = DeploySet("tests", str(self.folder))
        zones = DeployedLandingZones(self.client, self.settings.installation, deployed, self.folder)
        file = PipelineFile(self._text.name, self._text.text, pipeline_of_text(self._text))
        item = zones.wanted(file)
        assert item
        listings = self.clock.listings.get(self.name, 0)
        await zones.apply(Change("change", item), file)
        await self._until_at_rest(listings + 1)

    async def list_files(self, after: float = 0.0) -> None:
        """Move the clock, list the zone, and wait until the runs that it started have ended or wait."""
        self.clock.now += after
        listings = self.clock.listings.get(self.name, 0)
        await list_now(self.client, self.settings.installation, self.name)
        await self._until_at_rest(listings + 1)

    async def status(self) -> ZoneStatus:
        """Return the state of the zone."""
        return await read_zone(self.client, self.settings.installation, self.name)

    async def show_files(self) -> dict[str, str]:
        """Return the status of each file of the zone, as `arrivals` shows it."""
        zone = await self.status()
        listed = await list_zone_files(self.client, self.settings.installation, zone, "", None, 100)
        return {Path(each.path).name: each.status for each in listed.files}

    async def waiting_run(self) -> Handle | None:
        """Return the run of a batch that waits for approval, or None."""
        for batch in (await self.status()).batches:
            if batch.state == "running" and await self._waits_for_approval(batch):
                return self._run_of(batch)
        return None

    async def decide_batch(self, *, approve: bool) -> Ending | None:
        """Decide on the run that waits for approval, if there is one; wait until the zone is at rest."""
        if (handle := await self.waiting_run()) is None:
            return None
        ended = await self.decide(handle, approve=approve)
        await self._until_at_rest(self.clock.listings.get(self.name, 0))
        return ended

    async def command(self, action: str, batch: str, *, over_younger: bool = False) -> None:
        """Retry or set aside a kept-out batch, unless that is refused. Resume the zone if it is paused."""
        decision = {"action": action, "batch": batch, "by": "ana", "over_younger": over_younger}
        command = BatchCommand.model_validate(decision)
        with suppress(InvalidPipeline):
            await command_batch(self.client, self.settings.installation, self.name, command)
        if (await self.status()).paused:
            await pause_zone(self.client, self.settings.installation, self.name, PauseZone(paused=False, by="ana"))
        await self.list_files()

    async def load(self, path: str, *, over_younger: bool = False) -> bool:
        """Have the zone load a file by its name. Return False if that is refused, or needs `over_younger`."""
        zone = await self.status()
        query = PlanLoadInput(
            pipeline=zone.pipeline,
            held=[batch.ref for batch in zone.batches],
            states=decided_states(zone.batches),
            paths=[str(self.zone / path)],
        )
        plan = await query_lake(self.client, self.settings.installation, query, LoadPlan)
        if plan.batch is None or (any(file.may_be_older for file in plan.files) and not over_younger):
            return False
        request = LoadBatch(ref=plan.batch, by="ana", over_younger=over_younger)
        try:
            await load_batch(self.client, self.settings.installation, self.name, request)
        except InvalidPipeline:
            return False
        await self._until_at_rest(self.clock.listings.get(self.name, 0))
        return True

    async def remove(self) -> None:
        """End the landing zone and the run that it started."""
        run = await self.waiting_run()
        zone = self._zone_handle
        await zone.cancel()
        with suppress(WorkflowFailureError):
            await zone.result()
        if run:
            await self.cancel(run)

    def commits(self) -> list[CommitInfo]:
        """Return the commits of runs on main, newest first."""
        return [each for each in self.catalog.history(self.catalog.main) if RUN_ID in each.properties]

    def table_rows(self, at: str | None = None) -> Counter[tuple[int, int]]:
        """Return the number of times that each row is on main, at its head or at an earlier hash."""
        version = self.catalog.table_version(self.catalog.main, self.table, at)
        rows = load_table(version, self.io).scan().to_arrow().to_pylist() if version else []
        return Counter((row["id"], row["v"]) for row in rows)

    @property
    def _text(self) -> PipelineText:
        checks: list[Any] = [{"not_null": "id"}, {"accepted_range": {"column": "v", "min": 0}}]
        keys = {"keys": ["id"]} if self.mode == "merge" else {}
        stated: dict[str, Any] = {
            "name": self.name,
            "write": {"source": {"format": "csv"}, "mode": self.mode, **keys},
            "tables": {self.table: {"checks": checks}},
            "arrival": {"from": str(self.zone), "settle": f"{SETTLE:g}s", **self.options},
        }
        if self.needs_approval:
            stated["approval"] = {"required": 1}
        return PipelineText(name=str(self.folder / "p.yml"), text=json.dumps(stated), folder=str(self.folder))

    @property
    def _zone_handle(self) -> Any:
        return self.client.get_workflow_handle_for(
            LandingZone.run, landing_zone_id(self.settings.installation.sluice_installation, self.name)
        )

    def _run_of(self, batch: Batch) -> Handle:
        files = BatchStore(self.settings.storage.lake, self.io).read(batch.ref)
        inputs = [InputFile(path=file.path, size=file.size, identity=file.identity) for file in files]
        workflow_id = run_workflow_id(self.name, identify_input(inputs).digest)
        return self.client.get_workflow_handle_for(WriteAuditPublish.run, workflow_id)

    async def _waits_for_approval(self, batch: Batch) -> bool:
        handle = self._run_of(batch)
        with suppress(RPCError):  # the run has not started yet
            if (await handle.describe()).status == WorkflowExecutionStatus.RUNNING:
                status = await query_status(handle)
                return status is not None and status.stage == "waiting for approval"
        return False

    async def _until_at_rest(self, listings: int) -> None:
        """Wait until the zone was listed this many times, and waits for a person or for files."""
        until = time.monotonic() + _LIMIT
        while not (self.clock.listings.get(self.name, 0) >= listings and await self._is_at_rest()):
            assert time.monotonic() < until, f"the zone does not come to rest: {await self.status()}"
            await asyncio.sleep(0.02)

    async def _is_at_rest(self) -> bool:
        if (await self._zone_handle.describe()).raw_description.pending_activities:
            return False
        status = await self.status()
        running = [batch for batch in status.batches if batch.state == "running"]
        waits = any(batch.state == "waiting" for batch in status.batches)
        if waits and not running and not status.paused:
            return False
        for batch in running:
            if not await self._waits_for_approval(batch):
                return False
        described = (await self._zone_handle.describe()).raw_description
        return not described.pending_activities and (await self.status()).batches == status.batches
