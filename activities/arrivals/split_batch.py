"""Split a batch into two batches with half of its files each."""

from dataclasses import dataclass

from temporalio import activity

from lakehouse.arrivals.batch_store import BatchStore
from sluice.arrivals.splitting import split_refusal
from sluice.contracts.zone_requests import SplitBatchInput, SplitBatchResult
from sluice.errors import InvalidPipeline


@dataclass(frozen=True)
class SplitBatchActivity:
    """The activity `split_batch`. Needs the store of batches."""

    batches: BatchStore

    @activity.defn(name="split_batch")
    def split_batch(self, input: SplitBatchInput) -> SplitBatchResult:
        """Write the two halves, the older files in the first one, and return their locations.

        The same batch is always split into the same halves.

        Raises:
            InvalidPipeline: the second half would replace rows of the first.
        """
        if input.pipeline and (refusal := split_refusal(input.name, input.pipeline)):
            raise InvalidPipeline(refusal)
        files = sorted(self.batches.read(input.ref), key=lambda file: file.age)
        middle = (len(files) + 1) // 2
        halves = [half for half in (files[:middle], files[middle:]) if half]
        return SplitBatchResult(halves=[self.batches.write(input.name, half) for half in halves])
