"""A landing zone of real files, whose runs publish to a catalog in memory, and whose clock the tests set."""

from pathlib import Path
from typing import Any

from lakehouse.arrivals.batch_store import BatchStore
from lakehouse.arrivals.collector import ArrivalCollector
from sluice.contracts.arrivals import (
    BatchRef,
    BatchState,
    CollectArrivalsInput,
    CollectArrivalsResult,
    ListArrivalsInput,
)
from sluice.contracts.starting import PipelineText
from sluice.pipeline.model import Pipeline
from tests.harness.loading_run import TABLE, Folder
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake

TEXT = PipelineText(name="p.yml", text="", folder="/")


class Zone:
    """The landing zone of one pipeline, and runs that load its batches."""

    def __init__(self, folder: Path, **arrival: Any) -> None:
        self.limits: dict[str, Any] = {}
        self.catalog = MemoryCatalog()
        self.lake = MemoryLake(self.catalog, folder / "tables")
        self.landing = Folder(self.lake, folder / "landing")
        self.landing.path.mkdir(exist_ok=True)
        self.home, self.now = folder / "home", 1000.0
        self.held: list[BatchRef] = []
        self.states_of_batches: dict[str, BatchState] = {}
        self.received = ""
        self.pipeline = Pipeline.model_validate(
            {
                "name": "p",
                "write": {"source": {"format": "csv"}},
                "tables": [TABLE],
                "arrival": {"from": str(self.landing.path), "settle": 60, **arrival},
            }
        )

    @property
    def collector(self) -> ArrivalCollector:
        batches = BatchStore((self.home / "lake").as_uri(), {})
        return ArrivalCollector(self.lake.loaded_files, batches, self.home, clock=lambda: self.now, **self.limits)

    def list_files(self, after: float = 0, files: list[Path] | None = None) -> CollectArrivalsResult:
        self.now += after
        named = None if files is None else [str(file) for file in files]
        states = self.states_of_batches
        given = CollectArrivalsInput(pipeline=TEXT, held=self.held, states=states, received=self.received, files=named)
        result = self.collector.collect(self.pipeline, given)
        self.held += result.batches
        self.received = result.mark
        return result

    def settled(self) -> list[list[str]]:
        """List the zone twice, one settling time apart; return the names in the batches of the second listing."""
        assert self.list_files().batches == []
        return self.names(self.list_files(after=60))

    def names(self, result: CollectArrivalsResult) -> list[list[str]]:
        return [[Path(file.path).name for file in self.collector.batches.read(ref)] for ref in result.batches]

    async def load(self) -> None:
        """Publish every batch of the zone, and drop them from the zone."""
        for ref in self.held:
            await self.landing.run(*[file.path for file in self.collector.batches.read(ref)]).load()
        self.held = []

    def states(self) -> dict[str, tuple[str, str]]:
        listed = self.collector.list_arrivals(self.pipeline, ListArrivalsInput(pipeline=TEXT, held=self.held))
        return {Path(each.path).name: (each.status, each.detail) for each in listed.files}
