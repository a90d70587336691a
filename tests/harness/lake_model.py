"""The model of a lake with one table: the rows that main must have after any sequence of commands.

The model is pure and has no branches. It identifies a file by its content. A run loads the files that no published run
has loaded.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.harness.loaded_paths import Paths, has_other_content


@dataclass(frozen=True)
class Content:
    """The rows of a file, by id. No two contents share an id."""

    ids: tuple[int, ...]
    is_bad: bool = False
    """True if one of its rows breaks a check."""

    @property
    def csv(self) -> str:
        """The file's text."""
        values = [-1 if self.is_bad and number == 0 else number for number in range(len(self.ids))]
        return "id,v\n" + "".join(f"{id},{v}\n" for id, v in zip(self.ids, values, strict=True))


@dataclass(frozen=True)
class Published:
    """A published run."""

    run_id: str
    contents: frozenset[Content]
    before: Counter[int]
    """The rows of main before this run."""
    number: int
    """Number of runs that were published before."""
    paths: Paths[Content]


@dataclass
class LakeModel:
    """The rows that main must have, and the files that they are from."""

    rows: Counter[int] = field(default_factory=Counter)
    published: list[Published] = field(default_factory=list)
    """The published runs that were not rolled back, latest last."""
    quarantines: dict[str, Paths[Content]] = field(default_factory=dict)
    """The files whose rows a quarantine has, by branch."""

    number: int = 0
    """Number of runs that were published, with those that were rolled back."""
    generation: int = 0
    """Number of times that the table was dropped."""

    def is_loaded(self, content: Content) -> bool:
        """Return True if a published run loaded a file."""
        return any(content in run.contents for run in self.published)

    def to_load(self, folder: Iterable[Content]) -> frozenset[Content]:
        """Return the files of a folder that a run would load."""
        return frozenset(content for content in folder if not self.is_loaded(content))

    def publish(self, run_id: str, paths: Paths[Content]) -> None:
        """Record that these files were loaded into main."""
        before, contents = self.rows.copy(), frozenset(content for _, content in paths)
        for content in contents:
            self.rows.update(content.ids)
        self.published.append(Published(run_id, contents, before, self.number, paths))
        self.number += 1

    def is_overtaken(self, paths: Paths[Content], since: int) -> bool:
        """Return True if a run loaded other content from one of these paths.

        Args:
            since: a number of published runs; earlier ones do not count.
        """
        return has_other_content(paths, (each for run in self.published if run.number >= since for each in run.paths))

    def drop(self) -> None:
        """Record that the table was dropped and created again. Its files may be loaded again."""
        self.rows, self.published = Counter(), []
        self.generation += 1

    def roll_back(self, run_id: str, *, drops_table: bool = False) -> None:
        """Record that a run and all later ones were rolled back. Their files may be loaded again."""
        if drops_table:
            self.generation += 1
        while (last := self.published.pop()).run_id != run_id:
            pass
        self.rows = last.before.copy()
