"""A batch of a landing zone in `mode: merge` that a person splits: its second half is not older than the first one."""

from pathlib import Path

import pytest

from runtime.arrivals.landing_zones import split_batch
from sluice.contracts.zone_requests import SplitBatch
from tests.component.loads.test_zone_order import MergeZone
from tests.harness.memory_system import MemorySystem
from tests.harness.zone_driver import SETTLE

pytestmark = pytest.mark.usefixtures("immediate_listings")


def test_the_second_half_is_loaded_after_the_first(memory: MemorySystem, tmp_path: Path) -> None:
    zone = MergeZone(memory, tmp_path, "halves", {})
    try:
        for name, value, key in (("a.csv", 10, 1), ("b.csv", -1, 2)):
            zone.send(name, value, key)
            zone.list_files(1)
        zone.list_files(SETTLE)
        zone.settle()
        (whole,) = zone.batches()
        assert (whole.state, whole.ref.files) == ("kept out", 2)
        request = SplitBatch(batch=whole.ref.id, by="ana")
        memory.run(split_batch(memory.client, memory.settings.installation, zone.driver.name, request))
        zone.resume()
        zone.settle()
        (second,) = zone.batches()
        assert "accepted_range" in second.reason, second.reason
        assert second.tries == 1, "the bad half ran, which tells people which file is bad"
    finally:
        memory.run(zone.driver.remove())
