"""Keep the batches of a landing zone in the order of their files' arrival."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sluice.command_line import OVER_YOUNGER
from sluice.contracts.arrivals import Age, Batch, BatchRef


def describe_overtaken_batch(older: str, younger: str) -> str:
    """Describe that a younger batch was loaded before an older one, and how a person decides."""
    return (
        f"the younger batch {younger} was loaded, and rows of the older batch {older} would replace its rows: set the "
        f"older batch aside, or let the older rows win by {OVER_YOUNGER}"
    )


def describe_overtaken_files(younger: str) -> str:
    """Describe that a batch was loaded that is younger than the files that a person named."""
    return (
        f"the younger batch {younger} was loaded, and rows of these files would replace its rows: leave older files "
        f"out, or let the older rows win by {OVER_YOUNGER}"
    )


class BatchOrder:
    """The youngest loaded batch, and the batches whose files are collected again."""

    def __init__(
        self,
        youngest: BatchRef | None = None,
        collected_again: Iterable[str] = (),
        permits: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.youngest = youngest
        """The loaded batch with the youngest file; None if no batch with known ages was loaded."""
        self.collected_again = list(collected_again)
        """Ids of removed batches whose files a listing has to collect again before any batch starts."""
        self.permits = dict(permits)
        """Digest of the paths (`BatchRef.paths`) of each removed batch whose files may replace younger rows when they
        are collected again, by the id of the batch."""

    @property
    def loaded_until(self) -> Age:
        """Age of the youngest loaded file; empty if it is not known."""
        return self.youngest.newest if self.youngest else ()

    def loaded(self, ref: BatchRef) -> None:
        """Record that a batch was loaded."""
        if ref.newest > self.loaded_until:
            self.youngest = ref

    def overtaken_by(self, ref: BatchRef) -> str:
        """Return the id of a loaded batch that is younger than a batch; empty if there is none."""
        is_older = self.youngest is not None and () < ref.oldest < self.youngest.newest
        return self.youngest.id if self.youngest and is_older else ""

    def collect_again(self, batch: Batch) -> None:
        """Record that the files of a removed batch are collected again."""
        if batch.ref.oldest:
            self.collected_again.append(batch.ref.id)
        if batch.over_younger and batch.ref.paths:
            self.permits[batch.ref.id] = batch.ref.paths

    def collected(self, ids: Iterable[str]) -> None:
        """Record that a listing has collected the files of removed batches, as far as they can be loaded now."""
        done = {*ids}
        self.collected_again = [id for id in self.collected_again if id not in done]
        self.permits = {id: paths for id, paths in self.permits.items() if id not in done}

    def has_permit(self, ref: BatchRef) -> bool:
        """Return True if a person permitted that a new batch of these paths replaces younger rows."""
        return bool(ref.paths) and ref.paths in self.permits.values()

    def forget_loads(self) -> None:
        """Forget the youngest loaded batch: main may not have its files any more."""
        self.youngest = None
