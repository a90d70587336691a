"""Keep the index of main's history at the head of main, and answer questions from it.

Before each answer, the index is brought up to the head of main. It is rebuilt if it is missing, damaged, or of another
history than main's.
"""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import TypeVar

from lakehouse.catalog import BranchCatalog, CommitInfo
from lakehouse.input.loaded_files_index import IndexMoved, LoadedFilesIndex
from lakehouse.input.loaded_files_tables import IndexedCommit
from lakehouse.input.manifests import InputManifests
from sluice.errors import ManifestUnreadable, ServiceUnavailable
from sluice.input.publications import read_input_record

_TRIES = 20
_AT_ONCE = 200
"""Number of commits added to the index at a time. A process that ends early keeps the finished batches."""
_READERS = 8
_FOLDER = "loaded-files"
_T = TypeVar("_T")


class CurrentIndex:
    """The index of one catalog's main.

    Requires the catalog, the input manifests, and a folder for the index.
    """

    def __init__(self, catalog: BranchCatalog, manifests: InputManifests, home: Path) -> None:
        self._catalog, self._manifests, self._folder = catalog, manifests, home / _FOLDER
        self._lock = Lock()

    @property
    def key(self) -> str:
        """Identity of this catalog's main, which names the caches of it."""
        return f"{self._catalog.identity()}\0{self._catalog.main}"

    def ask(self, question: Callable[[LoadedFilesIndex, str], _T], tables: Sequence[str] = ()) -> _T:
        """Return the answer to a question of the index, after the index has reached the head of main.

        Args:
            question: gets the index and the head of main.
            tables: tables whose loads must all be known.

        Raises:
            ManifestUnreadable: it is unknown which files a run loaded into one of the tables.
            ServiceUnavailable: the catalog or the store does not answer, or other processes moved the index each time.
        """
        index = self.as_it_is()
        for _ in range(_TRIES):
            with self._lock:  # threads of one process would repeat the same work
                head = self._catch_up(index)
            try:
                if tables:
                    self._read_missing_manifests(index, tables)
                return question(index, head)
            except IndexMoved:
                continue
        raise ServiceUnavailable("other processes moved the index of loaded files each time")

    def as_it_is(self) -> LoadedFilesIndex:
        """Return the index without bringing it up to the head of main."""
        return LoadedFilesIndex(self._folder / f"{hashlib.sha256(self.key.encode()).hexdigest()[:16]}.sqlite")

    def _catch_up(self, index: LoadedFilesIndex) -> str:
        """Bring the index up to the head of main, however far it is behind; return that hash."""
        head = self._catalog.head(self._catalog.main)
        for _ in range(_TRIES):
            known = index.head()
            if known == head:
                return head
            try:
                return self._add_commits(index, known)
            except IndexMoved:  # another process added some of the commits
                continue
        raise ServiceUnavailable("other processes moved the index of loaded files each time")

    def _add_commits(self, index: LoadedFilesIndex, known: str) -> str:
        commits: list[CommitInfo] = []
        for commit in self._catalog.history(self._catalog.main):
            if commit.hash == known:
                break
            commits.append(commit)
        else:
            if known:  # main was reset, or the index belongs to another history
                index.clear()
                known = ""
        commits.reverse()
        with ThreadPoolExecutor(_READERS, thread_name_prefix="manifests") as readers:
            for start in range(0, len(commits), _AT_ONCE):
                some = list(readers.map(self._read_commit, commits[start : start + _AT_ONCE]))
                index.append(known, some)
                known = some[-1].hash
        return known

    def _read_commit(self, commit: CommitInfo) -> IndexedCommit:
        record = read_input_record(commit.properties)
        at = commit.committed_at.isoformat()
        if record is None or record.manifest is None:
            return IndexedCommit(commit.hash, at, record)
        try:
            manifest = self._manifests.read(record.manifest)
        except (ManifestUnreadable, ServiceUnavailable) as error:  # this concerns only runs into the same tables
            return IndexedCommit(commit.hash, at, record, problem=str(error))
        return IndexedCommit(commit.hash, at, record, manifest)

    def _read_missing_manifests(self, index: LoadedFilesIndex, tables: Sequence[str]) -> None:
        """Read the manifests that could not be read before: a person may have restored them.

        Raises:
            ManifestUnreadable: one of them still cannot be read, so that files might be loaded twice.
            ServiceUnavailable: the store of one does not answer now.
        """
        for hash, ref, _ in index.problems(tables):
            try:
                manifest = self._manifests.read(ref)
            except ManifestUnreadable as error:
                raise ManifestUnreadable(
                    f"the files that commit {hash[:12]} on main loaded into {', '.join(tables)} are unknown: {error}. "
                    "To load all files, even those that main contains, add --again"
                ) from error
            index.add_manifest(hash, manifest)
