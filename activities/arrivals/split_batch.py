"""Write two batches with the halves of the files of another one."""

from dataclasses import dataclass

from temporalio import activity

from lakehouse.arrivals.batch_store import BatchStore
from sluice.contracts.arrivals import SplitBatchInput, SplitBatchResult


@dataclass(frozen=True)
class SplitBatchActivity:
    """The activity `split_batch`. Needs the store of batches."""

    batches: BatchStore

    @activity.defn(name="split_batch")
    def split_batch(self, input: SplitBatchInput) -> SplitBatchResult:
        """Write the halves, and return where they are; the same batch has the same halves each time."""
        files = self.batches.read(input.ref)
        middle = (len(files) + 1) // 2
        halves = [half for half in (files[:middle], files[middle:]) if half]
        return SplitBatchResult(halves=[self.batches.write(input.name, half) for half in halves])
