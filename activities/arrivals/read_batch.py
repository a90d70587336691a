"""Read the list of files of a batch."""

from dataclasses import dataclass

from temporalio import activity

from lakehouse.arrivals.batch_store import BatchStore
from sluice.contracts.arrivals import BatchPaths, BatchRef


@dataclass(frozen=True)
class ReadBatchActivity:
    """The activity `read_batch`. Needs the store of batches."""

    batches: BatchStore

    @activity.defn(name="read_batch")
    def read_batch(self, input: BatchRef) -> BatchPaths:
        """Return the paths of the files of a batch."""
        return BatchPaths(paths=[file.path for file in self.batches.read(input)])
