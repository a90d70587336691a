"""A batch that is retried in a paused zone, which is then deployed in another mode: its older rows do not win."""

from pathlib import Path

import pytest

from runtime.arrivals.landing_zones import command_batch
from sluice.contracts.zone_requests import BatchCommand
from tests.component.loads.test_zone_order import MergeZone
from tests.harness.memory_system import MemorySystem

pytestmark = pytest.mark.usefixtures("immediate_listings")


def test_a_retried_batch_of_a_zone_that_now_merges_waits_for_a_person(memory: MemorySystem, tmp_path: Path) -> None:
    zone = MergeZone(memory, tmp_path, "remode", {"batch": {"files": 1}})
    driver = zone.driver
    try:
        driver.mode, driver.needs_approval = "append", True
        memory.run(driver.deploy_again())
        zone.send("x.csv", 10)
        zone.settle()
        zone.approve(approve=False)
        driver.needs_approval = False
        memory.run(driver.deploy_again())
        zone.send("q.csv", 20)
        zone.settle()
        assert zone.value() == 20
        zone.resume(paused=True)
        command = BatchCommand(action="retry", batch=zone.batches()[0].ref.id, by="ana")
        memory.run(command_batch(driver.client, driver.settings.installation, driver.name, command))
        driver.mode = "merge"
        memory.run(driver.deploy_again())
        zone.resume()
        zone.settle()
        assert zone.value() == 20, "the older row replaced the younger one without a word"
        (kept_out,) = zone.batches()
        assert (kept_out.state, "younger batch" in kept_out.reason) == ("kept out", True)
    finally:
        memory.run(driver.remove())
