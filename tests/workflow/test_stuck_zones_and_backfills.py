"""Landing zones and backfills that the worker cannot continue: each command says why, and none hangs."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError
from temporalio.worker import Worker

from runtime.arrivals.landing_zones import command_batch, pause_zone, read_zone
from runtime.backfills.backfills import change_backfill, read_backfill, start_backfill
from runtime.backfills.list_backfills import list_backfills
from runtime.schedules.deploy import Deploy, make_set, plan_deploy, read_folder
from sluice.contracts.arrivals import ZONE_MEMO, LandingZoneInput, landing_zone_id, memo_of
from sluice.contracts.backfill import BackfillChange, BackfillInput, BackfillState, DiscardBackfillInput
from sluice.contracts.zone_requests import BatchCommand, PauseZone
from sluice.errors import ServiceUnavailable
from sluice.setting_groups import InstallationSettings
from sluice.settings import Settings
from tests.harness.backfill_workflow import OPEN, SETTINGS, Backfills, pipeline
from tests.harness.command_line import CommandResult, run_command
from tests.harness.other_release import DOES_NOT_REPLAY, other_release, until_stuck
from tests.harness.page import browser
from tests.harness.waiting import in_time, until
from tests.harness.zone_workflow import TEXT, Zone
from workflows.arrivals.landing_zone import LandingZone
from workflows.backfills.discard_backfill import DiscardBackfill
from workflows.sandbox import sandbox

SET = "stuck"
BRANCH = "sluice/backfill/tests/p"


@activity.defn(name="discard_backfill")
async def discard_backfill(_: DiscardBackfillInput) -> list[str]:
    return [BRANCH]


@pytest.fixture
async def stuck_backfill(client: Client) -> AsyncIterator[Backfills]:
    """A backfill with one partition under way that the worker cannot continue."""
    backfills = Backfills(client)
    async with backfills.worker():
        handle = await backfills.start(1)
        await backfills.child("p0")
    async with other_release(client, backfills.queue, DiscardBackfill, activities=[discard_backfill]):
        await handle.signal("anything")
        await until_stuck(handle)
        yield backfills
        with suppress(RPCError):  # the test has ended it
            await handle.terminate()


def _settings(backfills: Backfills) -> InstallationSettings:
    return SETTINGS.with_values(sluice_task_queue=backfills.queue).installation


def _command(stack: dict[str, str], folder: Path, queue: str, *arguments: str) -> Callable[[], CommandResult]:
    variables = {**stack, "SLUICE_INSTALLATION": "tests", "SLUICE_TASK_QUEUE": queue, "SLUICE_WORKER_WAIT": "60"}
    return lambda: run_command(folder, variables, *arguments)


async def _refused(name: str, answer: Awaitable[Any], ending: str) -> None:
    with pytest.raises(ServiceUnavailable, match=f"the worker cannot continue {name}: .*{DOES_NOT_REPLAY}") as error:
        await in_time(answer)
    assert ending in str(error.value)


async def test_commands_about_a_stuck_backfill_say_why(
    client: Client, stuck_backfill: Backfills, stack: dict[str, str], tmp_path: Path
) -> None:
    settings, name = _settings(stuck_backfill), stuck_backfill.name
    ending = f"`backfill cancel {name}`"
    await _refused(stuck_backfill.id, read_backfill(client, settings, name), ending)
    change = BackfillChange(action="pause", by="ada")
    await _refused(stuck_backfill.id, change_backfill(client, settings, name, change), ending)
    given = BackfillInput(
        pipeline=pipeline("other"), name=name, starter="ada", progress=BackfillState(partitions=["x"])
    )
    await _refused(stuck_backfill.id, start_backfill(client, settings, given), ending)
    [listed] = [each for each in await list_backfills(client, settings, 100) if each.pipeline == name]
    assert (listed.state, listed.status) == ("running", None)
    assert DOES_NOT_REPLAY in listed.why

    status = await asyncio.to_thread(_command(stack, tmp_path, stuck_backfill.queue, "backfill", "status", name))
    assert status.code == 7, status
    assert f"the worker cannot continue {stuck_backfill.id}" in status.err
    list_all = await asyncio.to_thread(_command(stack, tmp_path, stuck_backfill.queue, "list", "--backfills", "--json"))
    [shown] = [each for each in list_all.json["backfills"] if each["pipeline"] == name]
    assert DOES_NOT_REPLAY in shown["why"]
    page = await browser(client, sluice_installation="tests").get("/backfills")
    assert f"The worker cannot continue this backfill: {listed.why[:30]}" in unescape(page.text)


async def test_a_second_cancel_ends_a_stuck_backfill_and_its_runs(
    client: Client, stuck_backfill: Backfills, stack: dict[str, str], tmp_path: Path
) -> None:
    handle, name = stuck_backfill.handle(), stuck_backfill.name
    [child] = (await handle.describe()).raw_description.pending_children
    cancel = _command(stack, tmp_path, stuck_backfill.queue, "backfill", "cancel", name, "--yes")
    first = await asyncio.to_thread(cancel)
    assert first.code == 0, first
    assert f"backfill cancel {name}` ends it and its runs" in first.out
    await until_stuck(handle, cancelled=True)
    second = await asyncio.to_thread(cancel)
    assert second.code == 0, second
    assert (
        f"Ended the backfill of {name}. Cancelled or deleted what it left: {child.workflow_id}, {BRANCH}" in second.out
    )
    assert (await handle.describe()).status == WorkflowExecutionStatus.TERMINATED
    await until(lambda: OPEN[stuck_backfill.queue] == 0)


@pytest.fixture
async def stuck_zone(client: Client) -> AsyncIterator[Zone]:
    """A deployed landing zone that the worker cannot continue."""
    zone = Zone(client)
    zone.name = landing_zone_id("tests", queue := zone.name)
    async with Worker(
        client,
        task_queue=queue,
        workflows=[LandingZone],
        workflow_runner=sandbox(),
        activities=[zone.collect],
    ):
        given = LandingZoneInput(
            pipeline=TEXT,
            look=600,
            at_once=1,
            on_failure="continue",
            name=queue,
            installation="tests",
            set_name=SET,
            properties={"from": f"/landing/{queue}", "tables": "t.x"},
        )
        zone.handle = await client.start_workflow(
            LandingZone.run, given, id=zone.name, task_queue=queue, memo={ZONE_MEMO: memo_of(given)}
        )
        await until(lambda: zone.listings)
    async with other_release(client, queue):
        await zone.handle.signal(LandingZone.look)
        await until_stuck(zone.handle)
        yield zone
        with suppress(RPCError):  # the test has ended it
            await zone.handle.terminate()


async def test_commands_about_a_stuck_zone_say_why(
    client: Client, stuck_zone: Zone, stack: dict[str, str], tmp_path: Path
) -> None:
    zone_id, name = stuck_zone.name, stuck_zone.name.removeprefix(landing_zone_id("tests", ""))
    settings = Settings.of(sluice_installation="tests", sluice_task_queue=name).installation
    ending = "`deploy` without its file"
    await _refused(zone_id, read_zone(client, settings, name), ending)
    await _refused(zone_id, pause_zone(client, settings, name, PauseZone(paused=True, by="ada")), ending)
    retry = BatchCommand(action="retry", batch="a", by="ada")
    await _refused(zone_id, command_batch(client, settings, name, retry), ending)

    listed = await asyncio.to_thread(_command(stack, tmp_path, name, "arrivals"))
    assert listed.code == 7, listed
    assert f"{name}: the worker cannot continue {zone_id}" in listed.err
    assert "Traceback" not in listed.err
    page = await browser(client, sluice_installation="tests").get("/arrivals")
    assert f"{name}: the worker cannot continue {zone_id}" in page.text
    paused = await asyncio.to_thread(_command(stack, tmp_path, name, "pause", name, "--note", "why"))
    assert f"the worker cannot continue {zone_id}" in paused.err


async def test_a_second_deploy_ends_a_stuck_zone(client: Client, stuck_zone: Zone, tmp_path: Path) -> None:
    """The first one requests its end, which the worker cannot follow. The plan must not count it as gone."""
    name, handle = stuck_zone.name.removeprefix(landing_zone_id("tests", "")), stuck_zone.handle
    settings = Settings.of(sluice_installation="tests", sluice_task_queue=name, sluice_worker_wait=5)
    folder = tmp_path / "set"
    folder.mkdir()

    async def planned() -> Deploy:
        return await plan_deploy(client, settings, read_folder(folder), make_set(folder, SET), tmp_path)

    def actions(deploy: Deploy) -> list[str]:
        return [change.action for change in deploy.changes if change.item.pipeline == name]

    plan = await planned()
    assert actions(plan) == ["remove"]
    with pytest.raises(ServiceUnavailable, match=f"cannot continue {handle.id}: .* by the same `deploy` once more"):
        await plan.apply()
    await until_stuck(handle, cancelled=True)
    (folder / "p.yml").write_text(
        f"name: {name}\nwrite: {{source: {{format: csv}}}}\ntables: [t.x]\narrival: {{from: {folder}, settle: 5s}}\n"
    )
    assert actions(await planned()) == ["change"]
    (folder / "p.yml").rename(folder / "p.hidden")
    plan = await planned()
    assert actions(plan) == ["remove"]
    await plan.apply()
    assert (await handle.describe()).status == WorkflowExecutionStatus.TERMINATED
