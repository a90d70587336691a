"""The model of a lake of one table: what main must hold after any sequence of commands.

It is pure, and knows nothing of branches: a file is what it holds, a run takes the files that no published run has.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Content:
    """What a file holds: its rows, by id; every content has ids of its own."""

    ids: tuple[int, ...]
    is_bad: bool = False
    """Whether one of its rows breaks a check."""

    @property
    def csv(self) -> str:
        """The file."""
        values = [-1 if self.is_bad and number == 0 else number for number in range(len(self.ids))]
        return "id,v\n" + "".join(f"{id},{v}\n" for id, v in zip(self.ids, values, strict=True))


@dataclass(frozen=True)
class Published:
    """A run that main holds."""

    run_id: str
    contents: frozenset[Content]
    before: Counter[int]
    """What main held before it."""


@dataclass
class LakeModel:
    """What main must hold, and which files are in it."""

    rows: Counter[int] = field(default_factory=Counter)
    published: list[Published] = field(default_factory=list)
    """The runs that main holds and that were not rolled back, the latest last."""
    quarantines: dict[str, frozenset[Content]] = field(default_factory=dict)
    """By branch, the files whose rows it holds."""

    generation: int = 0
    """How often the table was dropped and created again."""

    def is_loaded(self, content: Content) -> bool:
        """Whether a published run brought a file."""
        return any(content in run.contents for run in self.published)

    def to_load(self, folder: Iterable[Content]) -> frozenset[Content]:
        """Return the files of a folder that a run loads."""
        return frozenset(content for content in folder if not self.is_loaded(content))

    def publish(self, run_id: str, contents: frozenset[Content]) -> None:
        """Record that main got the rows of these files."""
        before = self.rows.copy()
        for content in contents:
            self.rows.update(content.ids)
        self.published.append(Published(run_id, contents, before))

    def drop(self) -> None:
        """Record that the table was dropped and created again: its files are free."""
        self.rows, self.published = Counter(), []
        self.generation += 1

    def roll_back(self, run_id: str) -> None:
        """Record that a run and all later ones were rolled back: their rows leave main, their files are free again."""
        while (last := self.published.pop()).run_id != run_id:
            pass
        self.rows = last.before.copy()
