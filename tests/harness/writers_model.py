"""The model of a table that several pipelines load: the rows that main must have after any commands of all of them.

The model is pure. It records every published run, with its rows that are still on main.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.harness.loaded_paths import Paths, has_other_content
from tests.harness.partition_model import Content, Row


@dataclass(frozen=True)
class Entry:
    """A row on main, with the run that loaded it."""

    row: Row
    run_id: str


@dataclass(frozen=True)
class WriterRun:
    """A published run of one of the pipelines, and the rows of main before it."""

    run_id: str
    pipeline: str
    contents: frozenset[Content]
    number_of_rows: int
    before: tuple[Entry, ...]
    number: int
    """Number of commits on main before it."""
    paths: Paths[Content]


@dataclass(frozen=True)
class KeptRows:
    """A quarantine: the files that its run was to load, and the version of the table that it was written for."""

    pipeline: str
    contents: frozenset[Content]
    commits: int
    """Number of commits on main when it was written."""
    table: int | None
    """Number of the table that it was written for; None if there was none."""
    paths: Paths[Content]

    @property
    def bad_ids(self) -> list[int]:
        """The ids of the rows that break a check."""
        return [id for content in self.contents for id, v, _ in content.rows if v < 0]


@dataclass
class WritersModel:
    """The published runs of all pipelines, and the rows of main."""

    modes: dict[str, str]
    """The mode of each pipeline: `append`, `overwrite` or `overwrite_partitions`."""
    entries: list[Entry] = field(default_factory=list)
    published: list[WriterRun] = field(default_factory=list)
    """The published runs that were not rolled back, latest last."""
    quarantines: dict[str, KeptRows] = field(default_factory=dict)
    """The quarantines, by branch."""
    commits: int = 0
    table: int = 0
    """Number of the present table, or of the next one: a roll-back of the first run drops it."""

    @property
    def rows(self) -> Counter[Row]:
        """The number of times that each row is on main."""
        return Counter(entry.row for entry in self.entries)

    def is_loaded(self, content: Content) -> bool:
        """Return True if a published run of any pipeline loaded a file."""
        return any(content in run.contents for run in self.published)

    def to_load(self, pipeline: str, folder: Iterable[Content]) -> frozenset[Content]:
        """Return the files that a run of a pipeline loads.

        An append loads the files that no run loaded. An overwrite loads all files, unless the latest run of its
        pipeline loaded exactly these, and main still has all of that run's rows.
        """
        wanted = frozenset(folder)
        if self.modes[pipeline] == "append":
            return frozenset(content for content in wanted if not self.is_loaded(content))
        latest = next((run for run in reversed(self.published) if run.pipeline == pipeline), None)
        return frozenset() if latest and latest.contents == wanted and self.is_whole(latest) else wanted

    def is_whole(self, run: WriterRun) -> bool:
        """Return True if main has all rows of a run."""
        return sum(entry.run_id == run.run_id for entry in self.entries) == run.number_of_rows

    def publish(
        self,
        run_id: str,
        pipeline: str,
        contents: frozenset[Content],
        paths: Paths[Content],
        *,
        repaired: Iterable[int] = (),
    ) -> None:
        """Record that a run of a pipeline was published.

        Args:
            repaired: the ids of the rows whose `v` a repair set to 0.
        """
        before, zero = tuple(self.entries), {*repaired}
        rows = [(id, 0 if id in zero else v, p) for content in contents for id, v, p in content.rows]
        mode, parts = self.modes[pipeline], {p for _, _, p in rows}
        if mode == "overwrite":
            self.entries = []
        elif mode == "overwrite_partitions":
            self.entries = [entry for entry in self.entries if entry.row[2] not in parts]
        self.entries = [*self.entries, *(Entry(row, run_id) for row in rows)]
        self.published.append(WriterRun(run_id, pipeline, contents, len(rows), before, self.commits, paths))
        self.commits += 1

    def roll_back(self, run_id: str) -> None:
        """Record that a run and all later ones were rolled back."""
        while (last := self.published.pop()).run_id != run_id:
            pass
        self.entries = list(last.before)
        self.commits += 1
        if not self.published:
            self.table += 1

    def is_releasable(self, kept: KeptRows) -> bool:
        """Return True if the rows of a quarantine may be published.

        No run may have loaded them meanwhile, nor appended other content of their paths. They need the table that they
        were written for; rows that replace others need its version, or no table, if there was none.
        """
        if self.modes[kept.pipeline] == "append":
            is_loaded = any(map(self.is_loaded, kept.contents))
            return kept.table in (None, self.table) and not is_loaded and not self._is_overtaken(kept)
        has_no_table = kept.table is None and not self.published
        return (has_no_table or kept.commits == self.commits) and bool(self.to_load(kept.pipeline, kept.contents))

    def _is_overtaken(self, kept: KeptRows) -> bool:
        """Return True if a run loaded other content of a path after the files of a quarantine were selected."""
        later = (run for run in self.published if run.number >= kept.commits)
        return has_other_content(kept.paths, (each for run in later for each in run.paths))
