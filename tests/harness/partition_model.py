"""The model of a table that a pipeline loads partition by partition: the rows that main must have after any commands.

The model is pure. A load is a file's content for a partition. The loads of the published runs determine the rows of
main.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.harness.loaded_paths import has_other_content

YEARS = ("2018", "2019", "2020")
"""The partitions, oldest first."""
Row = tuple[int, int, int]
"""The values of `id`, `v` and `p`."""
ORDERED_KEYS = ("args", "environment", "conf", "statements")
"""The keys of programs and statements that may contain a partition. Such loads have an order."""


@dataclass(frozen=True)
class Content:
    """The rows of a file. Files of the same content have the same rows."""

    rows: tuple[Row, ...]
    is_bad: bool = False
    """True if its rows break a check."""

    @property
    def csv(self) -> str:
        """The file's text."""
        return "id,v,p\n" + "".join(f"{id},{v},{p}\n" for id, v, p in self.rows)


@dataclass(frozen=True)
class Load:
    """A file, loaded for a partition."""

    content: Content
    partition: str
    path: str
    sent_at: int
    """Number of files written before it under this path."""


@dataclass(frozen=True)
class Entry:
    """A row on main, with the load that it is from."""

    row: Row
    load: Load


@dataclass(frozen=True)
class PublishedRun:
    """A published run: its loads, and the rows of main before it."""

    run_id: str
    loads: tuple[Load, ...]
    before: tuple[Entry, ...]
    number: int = 0
    """Number of commits on main before it."""


@dataclass
class PartitionModel:
    """The published runs and their rows, for a pipeline of one mode."""

    mode: str
    """`append`, `merge`, `overwrite` or `overwrite_partitions`."""
    key: str
    """The key of the pipeline that contains the partition."""
    entries: list[Entry] = field(default_factory=list)
    published: list[PublishedRun] = field(default_factory=list)
    """The published runs that were not rolled back, latest last."""
    quarantines: dict[str, tuple[tuple[Load, ...], int]] = field(default_factory=dict)
    """The loads of each quarantine, and the number of commits on main when it was written, by branch."""
    commits: int = 0

    @property
    def rows(self) -> Counter[Row]:
        """The number of times that each row is on main."""
        return Counter(entry.row for entry in self.entries)

    @property
    def order_matters(self) -> bool:
        """True if rows of a later load replace rows of an earlier one."""
        return self.mode != "append" or self.key in ORDERED_KEYS

    @property
    def replaces_rows(self) -> bool:
        """True if a load replaces the existing rows, so that each run loads all files."""
        return self.mode.startswith("overwrite")

    @property
    def runs_in_order(self) -> bool:
        """True if a backfill runs its partitions one at a time."""
        return self.order_matters and not self.replaces_rows

    def loads(self, partition: str = "") -> list[Load]:
        """Return the loads of the published runs, for one partition or for all, latest last."""
        loads = [load for run in self.published for load in run.loads]
        return [load for load in loads if partition in ("", load.partition)]

    def is_overtaken(self, partition: str) -> bool:
        """Return True if main has a later partition, which an older one must not overwrite."""
        is_guarded = self.order_matters and self.mode != "overwrite_partitions"
        return is_guarded and any(load.partition[:4] > partition[:4] for load in self.loads())

    def overlaps(self, partition: str) -> bool:
        """Return True if main has a year without files whose month is to be loaded, or the reverse."""
        others = {load.partition for load in self.loads()} - {partition}
        return self.key in ORDERED_KEYS and any(
            each.startswith(partition) or partition.startswith(each) for each in others
        )

    def is_held(self, wanted: Load) -> bool:
        """Return True if main has a file for its partition.

        Where the order matters, other content that the same path brought later makes this False.
        """
        held = [load for load in self.loads(wanted.partition) if load.content == wanted.content]
        latest = [load for load in self.loads(wanted.partition) if load.path == wanted.path][-1:] or held[-1:]
        return bool(held) and (not self.order_matters or latest[0].content == wanted.content)

    def to_load(self, wanted: Iterable[Load]) -> tuple[Load, ...]:
        """Return the files that a run loads: each content once, without those that main has.

        A run that replaces rows loads all of its files, unless the latest run of its table, or of its partition, loaded
        exactly these for its partition.
        """
        if self.replaces_rows:
            each = {load.content: load for load in reversed(list(wanted))}
            asked = {(load.content, load.partition) for load in each.values()}
            names = {partition for _, partition in asked}
            runs = [run for run in self.published if names & {load.partition for load in run.loads}]
            latest = (self.published if self.mode == "overwrite" else runs)[-1:]
            loaded = ({(load.content, load.partition) for load in run.loads} for run in latest)
            is_held = any({each for each in loads if each[1] in names} == asked for loads in loaded)
            return () if is_held else tuple(reversed(each.values()))
        new = {load.content: load for load in reversed(list(wanted)) if not self.is_held(load)}
        return tuple(reversed(new.values()))

    def would_double(self, wanted: Iterable[Load], since: int = 0) -> bool:
        """Return True if an append would add a partition whose rows main has from other content of its path.

        Args:
            since: a number of commits; runs that were published before do not count.
        """
        later = [load for run in self.published if run.number >= since for load in run.loads]
        paths, loaded = (
            [(f"{load.path} for {load.partition}", load.content) for load in loads] for loads in (wanted, later)
        )
        return not self.order_matters and has_other_content(frozenset(paths), loaded)

    def replaces_other_partitions(self, loads: Iterable[Load]) -> bool:
        """Return True if a load would remove rows that another partition loaded."""
        if self.mode != "overwrite_partitions":
            return False
        wanted = [(p, load.partition) for load in loads for _, _, p in self._rows_of(load, repaired=False)]
        return any(e.row[2] == p and e.load.partition != partition for e in self.entries for p, partition in wanted)

    def publish(self, run_id: str, loads: tuple[Load, ...], *, repaired: bool = False) -> None:
        """Record that these loads were published.

        Raises:
            AssertionError: an older row replaced a younger one, or one partition replaced rows of another.
        """
        before = tuple(self.entries)
        for partition in dict.fromkeys(load.partition for load in loads):
            self._add([load for load in loads if load.partition == partition], repaired=repaired)
        self.published.append(PublishedRun(run_id, loads, before, self.commits))
        self.commits += 1

    def roll_back(self, run_id: str) -> None:
        """Record that a run and all later ones were rolled back."""
        while (last := self.published.pop()).run_id != run_id:
            pass
        self.entries = list(last.before)
        self.commits += 1

    def _add(self, loads: list[Load], *, repaired: bool) -> None:
        """Add the rows of one partition, and remove the rows that they replace."""
        assert not self.replaces_other_partitions(loads), "a run removed the rows of another partition"
        brought = [Entry(row, load) for load in loads for row in self._rows_of(load, repaired=repaired)]
        replaced = [entry for entry in self.entries if self._is_replaced(entry, brought)]
        for entry in replaced if self.mode == "merge" else ():
            newer = next(each.load for each in brought if each.row[0] == entry.row[0])
            assert (entry.load.partition, entry.load.sent_at) <= (newer.partition, newer.sent_at), (
                f"the older row of {newer} took the place of the younger one of {entry}"
            )
        self.entries = [entry for entry in self.entries if entry not in replaced] + brought

    def _rows_of(self, load: Load, *, repaired: bool) -> list[Row]:
        return [
            (id, 0 if repaired and v < 0 else v, int(load.partition) if self.key == "path and transform" else p)
            for id, v, p in load.content.rows
            if self.key != "transform" or p == int(load.partition)
        ]

    def _is_replaced(self, entry: Entry, brought: list[Entry]) -> bool:
        if self.mode == "merge":
            return any(each.row[0] == entry.row[0] for each in brought)
        if self.mode == "overwrite_partitions":
            return any(each.row[2] == entry.row[2] for each in brought)
        return self.mode == "overwrite"
