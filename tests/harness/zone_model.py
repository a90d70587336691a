"""The model of a landing zone: the contents sent to each path, when, and the rows that main may have of them.

The model is pure and predicts no run. It decides which rows may be on main, and which must be.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tests.harness.lake_model import Content

Row = tuple[int, int]


@dataclass(eq=False)
class Sent:
    """A content that lies, or lay, under a path of the zone."""

    path: str
    content: Content
    rows: tuple[Row, ...]
    seen_at: float | None = None
    """Time of the first listing that saw it."""
    is_settled: bool = False
    """True if a listing saw it unchanged for long enough."""
    is_ignored: bool = False
    """True if main had other content of its path then: it stays out, even after that content was rolled back."""

    @property
    def csv(self) -> str:
        """The file's text."""
        return "id,v\n" + "".join(f"{id},{v}\n" for id, v in self.rows)


@dataclass
class ZoneModel:
    """All sent content, and the part of it that is on main."""

    overwritten: str
    """`load`, `ignore` or `alert`."""
    settle: float
    sent: list[Sent] = field(default_factory=list)
    current: dict[str, Sent] = field(default_factory=dict)
    """The content that lies there, by path."""
    published: list[tuple[Content, str]] = field(default_factory=list)
    """The content on main, and the path that it was loaded under, as far as known."""
    loads: Counter[tuple[str, Content]] = field(default_factory=Counter)
    """Number of loads of each path's content."""
    undone: Counter[tuple[str, Content]] = field(default_factory=Counter)
    """Number of those loads that were rolled back."""
    refused: set[tuple[str, Content]] = field(default_factory=set)
    """Content of a path that stays out after its load was rolled back, until the path gets other content."""
    copies: list[Sent] = field(default_factory=list)
    """Content that lay in the zone when main had it from another path."""
    named: set[tuple[str, Content]] = field(default_factory=set)
    """Content that a person loaded by name, in addition to other content of its path."""

    def send(self, path: str, content: Content, rows: tuple[Row, ...]) -> None:
        """Record that a file lies under a path, where it replaces any other file."""
        self.current[path] = Sent(path, content, rows)
        self.sent.append(self.current[path])

    def send_beside(self, path: str, of: str) -> None:
        """Record a copy of a file in the folder of another pipeline. It needs no time to settle."""
        copied = self.current[of]
        self.sent.append(Sent(path, copied.content, copied.rows, is_settled=True))

    def load_beside(self, paths: Collection[str], rows: Counter[Row]) -> list[Sent]:
        """Record a run of the other pipeline; return the content that it loads.

        Args:
            paths: the files in its folder.
            rows: the rows of main before.
        """
        held = self._contents_of(rows)
        each = {sent.content: sent for sent in self.sent if sent.path in paths and sent.content not in held}
        if not any(content.is_bad for content in each):
            for content, sent in each.items():
                self.published.append((content, sent.path))
                self._load(sent.path, content)
        return list(each.values())

    def name(self, path: str) -> None:
        """Record that a person has the zone load the content of a path."""
        of = path, self.current[path].content
        self.named.add(of)
        self.refused.discard(of)

    def list_files(self, now: float) -> None:
        """Record that the zone was listed."""
        for each in self.current.values():
            if each.seen_at is None:
                each.seen_at = now
            each.is_settled = each.is_settled or now - each.seen_at >= self.settle

    def check(self, rows: Counter[Row]) -> None:
        """Check that the rows of main are permitted; record loads and removals.

        Raises:
            AssertionError: main has rows that it must not have.
        """
        held = self._contents_of(rows)
        for content in held - {each for each, _ in self.published}:
            self._check_new(content)
        self.published = [(content, path) for content, path in self.published if content in held]
        for path in {path for _, path in self.published}:
            loaded = [each for each in self.published if each[1] == path and (path, each[0]) not in self.named]
            assert self.overwritten == "load" or len(loaded) <= 1, f"main contains {len(loaded)} contents of {path}"
        self.copies += [
            each
            for each in self.current.values()
            if each.is_settled and each.content in held and (each.content, each.path) not in self.published
        ]

    def rolled_back(self, rows: Counter[Row], brought: list[Counter[Row]]) -> None:
        """Record a roll-back.

        Args:
            rows: the rows on main now.
            brought: the rows that each rolled-back run had loaded.
        """
        paths = dict(self.published)
        for each in brought:
            for content in {sent.content for sent in self.sent if {*sent.rows} <= each.keys()} & paths.keys():
                self._undo(paths[content], content)
        held = self._contents_of(rows)
        self.published = [(content, path) for content, path in self.published if content in held]

    def missing(self, rows: Counter[Row]) -> list[Sent]:
        """Return the content that lies in the zone, has settled, and must be on main but is not."""
        held = self._contents_of(rows)
        by_path = {path for _, path in self.published} | {each.path for each in self.sent if each.content in held}
        absent = [each for each in self.current.values() if each.is_settled and each.content not in held]
        self._note_ignored(absent, by_path)
        return [each for each in absent if not self._was_undone(each) and not each.is_ignored]

    def _note_ignored(self, absent: Sequence[Sent], by_path: Collection[str]) -> None:
        for each in absent:
            each.is_ignored = each.is_ignored or (self.overwritten != "load" and each.path in by_path)

    def _was_undone(self, sent: Sent) -> bool:
        """Return True if a load of this content was rolled back, under its path or another path that had it."""
        return any(self.undone[each.path, each.content] for each in self.sent if each.content == sent.content)

    def _stays_out(self, sent: Sent) -> bool:
        """Return True if content must stay out: each of its loads was rolled back, and only one path had it."""
        is_known = {each.path for each in self.sent if each.content == sent.content} == {sent.path}
        return is_known and (sent.path, sent.content) in self.refused

    def _load(self, path: str, content: Content) -> None:
        self.loads[path, content] += 1
        self.refused = {each for each in self.refused if each[0] != path}

    def _undo(self, path: str, content: Content) -> None:
        of = path, content
        self.undone[of] += 1
        self.named.discard(of)
        if self.loads[of] <= self.undone[of]:
            self.refused.add(of)

    def _contents_of(self, rows: Counter[Row]) -> set[Content]:
        """Return the contents on main. Fail unless each is complete and there once."""
        assert all(number == 1 for number in rows.values()), f"main contains rows twice: {rows}"
        left, held = set(rows), set()
        for each in self.sent:
            if {*each.rows} <= set(rows):
                held.add(each.content)
                left -= {*each.rows}
        assert not left, f"main contains rows that no whole file of the zone has: {left}"
        return held

    def _check_new(self, content: Content) -> None:
        sources = [
            each for each in self.sent if each.content == content and each.is_settled and not self._stays_out(each)
        ]
        assert sources, f"main contains {content}, which had not settled, or which a person took back"
        free = [
            each
            for each in sources
            if self.overwritten == "load" or not self._is_taken(each) or (each.path, content) in self.named
        ]
        assert free, f"main contains {content} beside other content of {sources[0].path}"
        self.published.append((content, free[-1].path))
        self._load(free[-1].path, content)

    def _is_taken(self, sent: Sent) -> bool:
        """Return True if main has other content of this path.

        A copy counts only if it lay there first: if this content settled before the copy replaced it, its run may wait
        for approval while main gets the copy from another path.
        """
        held = {each for each, _ in self.published}
        position = self.sent.index(sent)
        copied = {each.path for each in self.copies if each.content in held and self.sent.index(each) < position}
        return sent.path in copied or sent.path in {path for _, path in self.published}


@dataclass
class MergedZoneModel(ZoneModel):
    """The same model for `mode: merge`: each path has rows of one key, and main has the row of one of its contents."""

    merged: dict[str, int] = field(default_factory=dict)
    """Position of the content on main among those sent under its path, by path."""

    def check(self, rows: Counter[Row]) -> None:
        """Check that the rows of main are permitted; record the content of each path.

        Raises:
            AssertionError: main has rows that it must not have, or older content replaced younger content.
        """
        assert all(number == 1 for number in rows.values()) and len({id for id, _ in rows}) == len(rows), rows
        for row in rows:
            path, sent = self._sent_with_key(row[0])
            before = self.merged.get(path, -1)
            if before >= 0 and sent[before].rows[0] == row:
                continue
            later = [n for n, each in enumerate(sent) if each.rows[0] == row and each.is_settled and n > before]
            later = [n for n in later if not self._stays_out(sent[n]) and not self._is_overtaken(sent[n])]
            assert later, f"main contains {row}: not settled, taken back, or older than what it held of {path}"
            self.merged[path] = later[0]
            self._load(path, sent[later[0]].content)

    def rolled_back(self, rows: Counter[Row], brought: list[Counter[Row]]) -> None:
        """Record a roll-back.

        Args:
            rows: the rows on main now.
            brought: the rows that each rolled-back run had loaded.
        """
        for row in (row for each in brought for row in each):
            path, sent = self._sent_with_key(row[0])
            self._undo(path, next(each.content for each in sent if each.rows[0] == row))
        for path, before in list(self.merged.items()):
            sent = [each for each in self.sent if each.path == path]
            earlier = [n for n, each in enumerate(sent) if each.rows[0] in rows and n <= before]
            if earlier:
                self.merged[path] = earlier[-1]
            else:
                del self.merged[path]

    def missing(self, rows: Counter[Row]) -> list[Sent]:
        """Return the content that lies in the zone, has settled, and must be on main but is not."""
        by_path = {*self.merged} | {each.path for each in self.sent if each.rows[0] in rows}
        absent = [each for each in self.current.values() if each.is_settled and each.rows[0] not in rows]
        self._note_ignored(absent, by_path)
        latest = [each for each in absent if each is self._sent_with_key(each.rows[0][0])[1][-1]]
        return [each for each in latest if not self._was_undone(each) and not each.is_ignored]

    def _is_overtaken(self, sent: Sent) -> bool:
        """Return True if main got this content from another path, and other content of its key after that."""
        path, of_key = self._sent_with_key(sent.rows[0][0])
        before = of_key[self.merged[path]].content if path in self.merged else sent.content
        loaded = path, sent.content
        return sent.path != path and before != sent.content and self.loads[loaded] > self.undone[loaded]

    def _sent_with_key(self, key: int) -> tuple[str, list[Sent]]:
        sent = [each for each in self.sent if each.rows[0][0] == key]
        assert sent, f"main contains a row with the key {key}, which no file of the zone has"
        return sent[0].path, sent
