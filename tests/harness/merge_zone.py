"""A landing zone in `mode: merge` whose files have rows of a key and a value."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from runtime.arrivals.landing_zones import pause_zone
from sluice.contracts.arrivals import Batch
from sluice.contracts.zone_requests import PauseZone
from tests.harness.memory_system import MemorySystem
from tests.harness.sequences import new_folder
from tests.harness.zone_driver import SETTLE, ZoneDriver


class MergeZone:
    """A landing zone whose files have rows of a key and a value."""

    def __init__(self, memory: MemorySystem, folder: Path, name: str, options: dict[str, Any]) -> None:
        memory.catalog.clear()
        at = new_folder(folder, name)
        self.memory = memory
        self.driver = ZoneDriver(memory.client, memory.settings, memory.catalog, {}, f"t.{name}", at)
        self.driver.clock, self.driver.options, self.driver.mode = memory.clock, options, "merge"
        memory.run(self.driver.deploy())

    def send(self, path: str, value: int, key: int = 1) -> None:
        """Write a file with one row."""
        (self.driver.zone / path).write_text(f"id,v\n{key},{value}\n")

    def list_files(self, after: float = 0.0) -> None:
        """List the zone."""
        self.memory.run(self.driver.list_files(after))

    def settle(self) -> None:
        """List the zone until all present files have settled and were loaded."""
        for after in (0.0, SETTLE, 0.0):
            self.list_files(after)

    def value(self, key: int = 1) -> int:
        """Return the value of a key on main."""
        return next(v for id, v in self.driver.table_rows() if id == key)

    def batches(self) -> list[Batch]:
        """Return the batches of the zone."""
        return self.memory.run(self.driver.status()).batches

    def decide(self, action: str, batch: Batch, *, over_younger: bool = False) -> None:
        """Decide about a batch."""
        self.memory.run(self.driver.command(action, batch.ref.id, over_younger=over_younger))
        self.list_files()

    def refuse_then_load(self, unreadable: set[str]) -> Batch:
        """Have the run of a file fail, and load a younger file. Return the batch of the first one, readable again."""
        unreadable.add("run x.csv")
        self.send("x.csv", 10)
        self.settle()
        (refused,) = self.batches()
        self.resume()
        self.send("q.csv", 20)
        self.settle()
        unreadable.clear()
        return refused

    def approve(self, *, approve: bool = True) -> None:
        """Decide about the run that waits for approval, if there is one, and list the zone."""
        self.memory.run(self.driver.decide_batch(approve=approve))
        if approve:
            self.settle()

    def resume(self, *, paused: bool = False) -> None:
        """Resume the zone, without a decision about the batch for which it paused, or pause it."""
        driver, request = self.driver, PauseZone(paused=paused, by="ana")
        self.memory.run(pause_zone(driver.client, driver.settings.installation, driver.name, request))

    def load(self, path: str, *, over_younger: bool = False) -> bool:
        """Load a file by its name."""
        return self.memory.run(self.driver.load(path, over_younger=over_younger))


MakeZone = Callable[..., MergeZone]
"""Makes a landing zone with a name and options of its `arrival`."""
