"""Deploys on a real Temporal server: they create what a folder states, and a second deploy has nothing to do."""

import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio import activity
from temporalio.client import Client, ScheduleUpdate, ScheduleUpdateInput
from temporalio.worker import Worker

from runtime.schedules.deploy import Deploy, make_set, plan_deploy, read_folder
from runtime.schedules.deployed_schedules import deployed_schedules
from runtime.schedules.list_schedules import list_schedules
from runtime.schedules.pausing import pause_pipeline, resume_pipeline
from sluice.contracts.arrivals import CollectArrivalsInput, CollectArrivalsResult, landing_zone_id
from sluice.deployment.plan import Change
from sluice.errors import InvalidPipeline, ServiceUnavailable
from sluice.identifiers import schedule_id
from sluice.settings import Settings
from tests.harness.waiting import until
from workflows.arrivals.landing_zone import LandingZone
from workflows.sandbox import sandbox


class Installation:
    """An installation of its own, and folders to deploy to it."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.settings = Settings.of(sluice_installation=f"i-{uuid.uuid4().hex[:8]}", sluice_task_queue="nobody")

    def write(self, name: str, schedule: str = "{cron: 0 0 29 2 *}", set_name: str = "nightly") -> Path:
        path = self.folder / set_name / f"{name}.yml"
        path.parent.mkdir(exist_ok=True)
        stated = f"schedule: {schedule}\n" if schedule else ""
        path.write_text(f'name: {name}\nwrite: {{source: {{path: "*.csv"}}}}\ntables: [t.x]\n{stated}')
        return path

    async def plan(self, set_name: str = "nightly") -> Deploy:
        folder = self.folder / set_name
        files, deployed = read_folder(folder), make_set(folder, "")
        return await plan_deploy(self.client, self.settings, files, deployed, self.folder)

    async def deploy(self, set_name: str = "nightly") -> Sequence[Change]:
        deploy = await self.plan(set_name)
        await deploy.apply()
        return deploy.changes

    async def wait_until_planned(self, *planned: tuple[str, str]) -> None:
        """Wait until a deploy plans these actions: for a moment, the server's list is out of date."""

        async def is_planned() -> bool:
            return actions((await self.plan()).changes) == [*planned]

        await until(is_planned)

    async def wait_until_listed(self, *names: str) -> None:
        """Wait until the server lists these names: for a moment, its list is out of date."""

        async def are_listed() -> bool:
            return await self.names() == [*names]

        await until(are_listed)

    async def names(self) -> list[str]:
        return [given.name async for _, given in deployed_schedules(self.client, self.settings.installation)]


@pytest.fixture
async def installation(client: Client, tmp_path: Path) -> AsyncIterator[Installation]:
    installation = Installation(client, tmp_path)
    yield installation
    for name in await installation.names():
        await client.get_schedule_handle(
            schedule_id(installation.settings.installation.sluice_installation, name)
        ).delete()


def actions(changes: Sequence[Change]) -> list[tuple[str, str]]:
    return [(change.action, change.item.pipeline) for change in changes]


async def test_a_deploy_makes_changes_and_removes_and_a_second_one_does_nothing(installation: Installation) -> None:
    installation.write(
        "a", "{cron: '*/15 1,3-5 * jan-mar 5-7', zone: Europe/Berlin, overlap: buffer_all, catch_up: 6h}"
    )
    b = installation.write("b")
    installation.write("never", "")
    assert actions(await installation.deploy()) == [("create", "a"), ("create", "b")]
    await installation.wait_until_listed("a", "b")
    assert actions(await installation.deploy()) == [("unchanged", "a"), ("unchanged", "b")]
    installation.write("a", "{cron: 0 6 * * *}")
    b.unlink()
    changes = await installation.deploy()
    assert actions(changes) == [("change", "a"), ("remove", "b")]
    assert "cron: */15 1,3-5 * jan-mar 5-7 → 0 6 * * *" in changes[0].differences
    await installation.wait_until_listed("a")
    assert actions(await installation.deploy()) == [("unchanged", "a")]
    [listed] = await list_schedules(installation.client, installation.settings.installation)
    assert (listed.given.properties["cron"], listed.last, listed.state) == ("0 6 * * *", None, "")
    assert listed.next and (listed.next.hour, listed.next.minute) == (6, 0)


async def test_a_paused_schedule_stays_paused_when_its_file_changes(installation: Installation) -> None:
    installation.write("a")
    await installation.deploy()
    await installation.wait_until_listed("a")
    with pytest.raises(InvalidPipeline, match="--note is empty"):
        await pause_pipeline(installation.client, installation.settings.installation, "a", " ")
    with pytest.raises(InvalidPipeline, match=r"has no schedule and no landing zone \(did you mean 'a'\?\)"):
        await pause_pipeline(installation.client, installation.settings.installation, "aa", "why")
    await pause_pipeline(installation.client, installation.settings.installation, "a", "we migrate")
    installation.write("a", "{cron: 0 6 * * *}")
    [change] = await installation.deploy()
    assert (change.action, change.paused) == ("change", "we migrate")
    [listed] = await list_schedules(installation.client, installation.settings.installation)
    assert (listed.paused, listed.next) == ("we migrate", None)
    await resume_pipeline(installation.client, installation.settings.installation, "a", "done")
    [listed] = await list_schedules(installation.client, installation.settings.installation)
    assert listed.paused is None and listed.next


async def test_what_somebody_changed_in_temporal_is_taken_back(installation: Installation) -> None:
    installation.write("a")
    await installation.deploy()
    await installation.wait_until_listed("a")
    handle = installation.client.get_schedule_handle(
        schedule_id(installation.settings.installation.sluice_installation, "a")
    )
    before = (await handle.describe()).schedule

    def other_zone(present: ScheduleUpdateInput) -> ScheduleUpdate:
        kept = present.description.schedule
        return ScheduleUpdate(replace(kept, spec=replace(kept.spec, time_zone_name="Asia/Tokyo")))

    await handle.update(other_zone)
    [change] = await installation.deploy()
    assert (change.action, change.differences) == ("change", ["changed in Temporal: times or policies → none"])
    assert (await handle.describe()).schedule.spec == before.spec


async def test_two_sets_leave_each_other_alone(installation: Installation) -> None:
    installation.write("a")
    installation.write("b", set_name="of-others")
    await installation.deploy()
    await installation.wait_until_listed("a")
    assert actions(await installation.deploy("of-others")) == [("create", "b")]
    await installation.wait_until_listed("a", "b")
    installation.write("a", set_name="of-others")
    with pytest.raises(InvalidPipeline, match="belongs to the set 'nightly'"):
        await installation.deploy("of-others")
    assert actions(await installation.deploy()) == [("unchanged", "a")]


async def test_a_landing_zone_over_the_files_of_a_schedule_of_another_set_is_refused(
    installation: Installation,
) -> None:
    installation.write("nightly-load")
    await installation.deploy()
    await installation.wait_until_listed("nightly-load")
    zone = installation.write("zone", schedule="", set_name="of-others")
    stated = f"arrival: {{from: {installation.folder}/landing/}}\n"
    zone.write_text(zone.read_text().replace('{path: "*.csv"}', "{format: csv}") + stated)
    assert actions((await installation.plan("of-others")).changes) == [("create", "zone")]
    zone.write_text(zone.read_text().replace(f"{installation.folder}/landing/", f"{installation.folder}/"))
    with pytest.raises(InvalidPipeline, match=r"'nightly-load' reads .*/\*\.csv, and the landing zone .* of 'zone'"):
        await installation.plan("of-others")


async def test_an_installation_whose_name_begins_like_another_leaves_its_schedules_alone(
    installation: Installation,
) -> None:
    mine = installation.settings.installation.sluice_installation
    other = Installation(installation.client, installation.folder)
    other.settings = installation.settings.with_values(sluice_installation=f"{mine}-schedule-x")
    installation.write("a")
    await other.deploy()
    await other.wait_until_listed("a")
    (installation.folder / "nightly" / "a.yml").unlink()
    assert await installation.deploy() == []
    assert await other.names() == ["a"]
    (installation.folder / "nightly" / "a.yml").unlink(missing_ok=True)
    await other.deploy()


@activity.defn(name="collect_arrivals")
async def collect_nothing(_: CollectArrivalsInput) -> CollectArrivalsResult:
    return CollectArrivalsResult()


async def test_a_landing_zone_whose_removal_waits_for_a_worker_is_made_again(installation: Installation) -> None:
    """A plan that counted the zone as unchanged would leave nobody to load the files once a worker has ended it."""
    settings = installation.settings.with_values(
        sluice_task_queue=installation.settings.installation.sluice_installation
    )
    installation.settings = settings.with_values(sluice_worker_wait=0.3)
    file = installation.write("p", "")
    text = file.read_text().replace('{source: {path: "*.csv"}}', "{source: {format: csv}}")
    text += f"arrival: {{from: {installation.folder}, settle: 5s}}\n"

    file.write_text(text)
    assert actions(await installation.deploy()) == [("create", "p")]
    handle = installation.client.get_workflow_handle(landing_zone_id(settings.installation.sluice_installation, "p"))
    first = (await handle.describe()).run_id
    await installation.wait_until_planned(("unchanged", "p"))
    file.unlink()
    for _ in range(2):  # removed, and created again
        with pytest.raises(ServiceUnavailable, match="no worker answered"):
            await installation.deploy()
        file.write_text(text)
        await installation.wait_until_planned(("create", "p"))
    installation.settings = settings
    async with Worker(
        installation.client,
        task_queue=settings.installation.sluice_task_queue,
        workflows=[LandingZone],
        workflow_runner=sandbox(),
        activities=[collect_nothing],
    ):
        assert actions(await installation.deploy()) == [("create", "p")]
        await installation.wait_until_planned(("unchanged", "p"))
        assert (await handle.describe()).run_id != first
        await handle.terminate()
