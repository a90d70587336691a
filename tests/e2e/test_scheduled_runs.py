"""A pipeline that is deployed, started by its schedule, published, and removed after its file was deleted."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import ScheduleHandle

from runtime.installation.identity import with_installation
from sluice.identifiers import schedule_id
from sluice.settings import read_settings
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import wait_for
from tests.harness.system import SystemHarness
from tests.harness.temporal_thread import TEMPORAL

SCHEDULE = "schedule: {cron: 0 0 29 2 *, zone: Europe/Berlin, pause_on: failure}"


def listed(system: SystemHarness) -> list[dict[str, Any]]:
    output = system.command("list", "--schedules", "--json")
    assert output.code == 0, output.err
    schedules: list[dict[str, Any]] = json.loads(output.out)["schedules"]
    return schedules


@pytest.mark.slow
def test_a_deployed_pipeline_is_started_on_time(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    folder = tmp_path / "nightly"
    folder.mkdir()
    for year in range(2024, 2060):
        csv_file(tmp_path / f"{year}.csv", [{"id": 1, "year": year}])
    file = folder / "punctual.yml"
    checks = '[accepted_values: {column: year, values: ["{{ scheduled_for.year }}"]}]'
    file.write_text(pipeline("punctual", tmp_path / "{{ scheduled_for.year }}.csv", checks, SCHEDULE))

    undecided = system.command("deploy", str(folder), "--json")
    assert (undecided.code, listed(system)) == (2, [])
    assert "+ create schedule punctual" in undecided.err and "Add --yes" in undecided.err
    deployed = system.command("deploy", str(folder), "--yes", "--json")
    assert deployed.code == 0, deployed.err
    assert [each["action"] for each in deployed.json["changes"]] == ["create"]
    wait_for(lambda: bool(listed(system)), lambda: "the schedule is not listed")
    again = system.command("deploy", str(folder))
    assert (again.code, "There is nothing to do." in again.out) == (0, True), again.err

    TEMPORAL.run(_trigger(system))
    ends: list[Any] = []

    def ended() -> bool:
        ends[:] = [each["ended"] for each in listed(system) if each["ended"]]
        return bool(ends)

    wait_for(ended, lambda: f"the run has not ended: {listed(system)}")
    assert ends[0]["outcome"] == "published", ends
    assert [row["id"] for row in lake.rows("t.punctual")] == [1]
    assert ends[0]["key"].startswith(str(lake.rows("t.punctual")[0]["year"]))

    by_hand = system.command("run", str(file), "--scheduled-for", ends[0]["key"], "--json")
    assert (by_hand.code, by_hand.json["cause"]) == (0, "already_published"), by_hand.err
    paused = system.command("pause", "punctual", "--note", "we migrate")
    assert (paused.code, listed(system)[0]["paused"]) == (0, "we migrate"), paused.err

    file.unlink()
    removed = system.command("deploy", str(folder), "--yes", "--json")
    assert [each["action"] for each in removed.json["changes"]] == ["remove"], removed.err
    wait_for(lambda: not listed(system), lambda: "the schedule is still listed")


async def _trigger(system: SystemHarness) -> None:
    settings = with_installation(read_settings(system.environment))
    client = await TEMPORAL.client(system.environment)
    schedule: ScheduleHandle = client.get_schedule_handle(
        schedule_id(settings.installation.sluice_installation, "punctual")
    )
    await asyncio.wait_for(schedule.trigger(), 60)
