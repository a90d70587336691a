"""Starts by hand next to landing zones, on a real Temporal server: they do not load a zone's files past the zone."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from activities.arrivals.plan_load import PlanLoadActivity
from activities.errors import ErrorMapping
from cli.arrivals.load import check_start_by_hand, load_named
from cli.context import CommandContext, Interruption
from cli.layout import make_console
from runtime.arrivals.conflicting_starts import find_zone_problems, refuse_backfill
from runtime.arrivals.landing_zones import read_zone
from runtime.schedules.deploy import make_set, plan_deploy, read_folder
from sluice.contracts.arrival_runs import ZoneRuns
from sluice.contracts.arrivals import CollectArrivalsInput, CollectArrivalsResult, landing_zone_id
from sluice.contracts.starting import PipelineText
from sluice.errors import InvalidPipeline
from sluice.pipeline.model import Pipeline
from sluice.settings import Settings
from tests.harness.memory_zone import Zone
from workflows.arrivals.landing_zone import LandingZone
from workflows.lake.lake_query import LakeQuery
from workflows.sandbox import sandbox


class Beside:
    """An installation with a landing folder."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client, self.landing, self.pipelines = client, folder / "in", folder / "pipelines"
        self.landing.mkdir()
        self.pipelines.mkdir()
        self.settings = Settings.of(
            sluice_installation=f"i-{uuid.uuid4().hex[:8]}", sluice_task_queue="nobody", sluice_home=folder / "home"
        )
        self.context = CommandContext(client, self.settings, make_console(), False, Interruption())

    def file(self, name: str, content: str = "id\n1\n", age: float = 3600) -> Path:
        path = self.landing / name
        path.write_text(content)
        now = path.stat().st_mtime - age
        os.utime(path, (now, now))
        return path

    def pipeline(self, name: str = "orders", **more: Any) -> Pipeline:
        stated = {"name": name, "write": {"source": {"format": "csv"}}, "tables": ["t.x"], **more}
        return Pipeline.model_validate(stated | ({} if "write" in more else {"arrival": {"from": str(self.landing)}}))

    async def deploy(self) -> None:
        text = f"name: orders\nwrite: {{source: {{format: csv}}}}\ntables: [t.x]\narrival: {{from: {self.landing}}}\n"
        (self.pipelines / "orders.yml").write_text(text)
        files, deployed = read_folder(self.pipelines), make_set(self.pipelines, "")
        await (await plan_deploy(self.client, self.settings, files, deployed, self.pipelines)).apply()
        reader = self.pipeline("other", write={"source": {"path": str(self.landing), "format": "csv"}})

        for _ in range(300):  # for a moment after a deploy, the server's list is out of date
            if await find_zone_problems(self.client, self.settings.installation, reader):
                return
            await asyncio.sleep(0.1)
        raise AssertionError("the landing zone is not listed")


@pytest.fixture
async def beside(client: Client, tmp_path: Path) -> AsyncIterator[Beside]:
    beside = Beside(client, tmp_path)
    yield beside
    with suppress(RPCError):  # it was not deployed
        await client.get_workflow_handle(
            landing_zone_id(beside.settings.installation.sluice_installation, "orders")
        ).terminate()


async def test_a_start_of_a_deployed_landing_zone_is_refused_with_what_to_do(beside: Beside) -> None:
    await beside.deploy()
    beside.file("a.csv")
    for yes in (False, True):
        with pytest.raises(InvalidPipeline, match=r"is deployed.*`arrivals orders --load FILE\.\.\.`"):
            await check_start_by_hand(beside.context, beside.pipeline(), yes=yes)


async def test_a_start_of_one_that_is_not_deployed_shows_its_files_and_loads_these(
    beside: Beside, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = beside.file("a.csv")
    beside.file("half.csv", age=0)
    beside.file("b.csv.tmp")
    beside.file("empty.csv", "")
    with pytest.raises(InvalidPipeline, match=r"the command cannot ask\. Add --yes"):
        await check_start_by_hand(beside.context, beside.pipeline(), yes=False)
    started = await check_start_by_hand(beside.context, beside.pipeline(), yes=True)
    assert started.write.source and started.write.source.paths == [str(whole)]
    shown = capsys.readouterr().out
    for line in (f"load {whole}", "half.csv: it changed", "b.csv.tmp: its name", "empty.csv: it is empty"):
        assert line in shown
    whole.unlink()
    with pytest.raises(InvalidPipeline, match="there is no file to load"):
        await check_start_by_hand(beside.context, beside.pipeline(), yes=True)


@activity.defn(name="collect_arrivals")
async def collect_nothing(_: CollectArrivalsInput) -> CollectArrivalsResult:
    return CollectArrivalsResult()


@activity.defn(name="report_arrival_runs")
async def grant_nothing(_: ZoneRuns) -> None:
    """Grant no run, so that batches wait."""


async def test_named_files_are_shown_and_loaded_by_their_zone(
    beside: Beside, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lake").mkdir()
    lake = Zone(tmp_path / "lake")
    name = beside.settings.installation.sluice_installation
    beside.settings = beside.settings.with_values(sluice_task_queue=name)
    beside.context = CommandContext(beside.client, beside.settings, make_console(), False, Interruption())
    file = beside.file("a.csv")
    missing = beside.landing / "missing.csv"

    async def load(*, yes: bool) -> int:
        files = [str(file), str(missing)]
        return await load_named(
            beside.context, beside.settings.installation, "orders", files, yes=yes, over_younger=False
        )

    async with Worker(
        beside.client,
        task_queue=name,
        workflows=[LandingZone, LakeQuery],
        workflow_runner=sandbox(),
        interceptors=[ErrorMapping()],
        activities=[collect_nothing, grant_nothing, PlanLoadActivity(lake.collector).plan_load],
    ):
        await beside.deploy()
        with pytest.raises(InvalidPipeline, match="none of these files can be loaded"):
            await load(yes=True)
        assert f"leave {file} (5 bytes): it settles for 60 s more" in capsys.readouterr().out
        lake.now += 60
        with pytest.raises(InvalidPipeline, match="the command cannot ask"):
            await load(yes=False)
        shown = capsys.readouterr().out
        assert f"load {file} (5 bytes): it is settled" in shown and f"leave {missing}: it is not in the" in shown
        assert (await read_zone(beside.client, beside.settings.installation, "orders")).batches == []
        await load(yes=True)
        (batch,) = (await read_zone(beside.client, beside.settings.installation, "orders")).batches
        assert (batch.state, batch.is_named, batch.ref.files) == ("waiting", True, 1)
        with pytest.raises(InvalidPipeline, match="none of these files can be loaded"):
            await load(yes=True)
        assert f"leave {file} (5 bytes): batch {batch.ref.id} contains it" in capsys.readouterr().out


async def test_another_pipeline_that_reads_files_of_a_zone_is_asked_about(
    beside: Beside, capsys: pytest.CaptureFixture[str]
) -> None:
    await beside.deploy()
    source = {"path": f"{beside.landing}/*.csv", "format": "csv"}
    for name in ("other", "orders"):  # a second file of the same name loads past the zone, too
        other = beside.pipeline(name, write={"source": source})
        with pytest.raises(InvalidPipeline, match="the command cannot ask"):
            await check_start_by_hand(beside.context, other, yes=False)
        assert "`arrivals orders --load FILE`" in capsys.readouterr().err
        assert await check_start_by_hand(beside.context, other, yes=True) is other
    outside = beside.pipeline("other", write={"source": {"path": "/out/*.csv", "format": "csv"}})
    assert await check_start_by_hand(beside.context, outside, yes=False) is outside
    for name in ("months", "orders"):
        text = f"name: {name}\nwrite: {{source: {{path: '{beside.landing}/{{{{ partition }}}}.csv'}}}}\ntables: [t.x]\n"
        stated = PipelineText(name="months.yml", text=text, folder="/")
        with pytest.raises(InvalidPipeline, match=f"'{name}' reads"):
            await refuse_backfill(beside.client, beside.settings.installation, stated, ["2018-01"])
