"""Pages of the commit log: files with the commits that are no longer the head of a branch.

The log's table contains only the heads, so that its metadata does not grow with its history. A page begins at a commit
whose number is a multiple of 8; its name is the hash of its last commit. A page of that first commit alone also
contains the state of every table. A starting process therefore reads two files, no matter how long the log is.
"""

import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pydantic import Field, ValidationError
from pyiceberg.io import load_file_io

from lakehouse.iceberg_catalog.log_commits import LogCommit, LogState
from sluice.base_model import StrictModel
from sluice.errors import CatalogRefused

_HASH = re.compile("[0-9a-f]{64}")
_READS = 5
_WAIT = 0.2
_PAGES_KEPT = 256


class Page(StrictModel):
    """One page."""

    commits: list[LogCommit] = Field(min_length=1)
    """Commits of the page, oldest first."""
    state: LogState | None = None
    """Tables and namespaces after the commit, on a page with a single commit."""

    def is_of(self, hash: str) -> bool:
        """Return True if this is the page of a hash, and each of its commits is the child of the one before."""
        parents = [commit.parent for commit in self.commits[1:]]
        return self.commits[-1].hash == hash and parents == [commit.hash for commit in self.commits[:-1]]


class CommitPages:
    """Reader and writer of pages.

    Requires Iceberg's properties for file access, and the folder of the pages.
    """

    def __init__(self, io: Mapping[str, Any], folder: str) -> None:
        self._io, self.folder = dict(io), folder
        self._read_existing = lru_cache(maxsize=_PAGES_KEPT)(self._read_file)

    def read(self, hash: str) -> Page | None:
        """Return the page of a hash, or None if there is none.

        Raises:
            CatalogRefused: it is damaged.
        """
        if not _HASH.fullmatch(hash):
            return None
        try:
            return self._read_existing(hash)
        except FileNotFoundError:
            return None

    def write(self, hash: str, commits: Iterator[LogCommit], state: Callable[[], LogState]) -> None:
        """Write the page of a hash, if it does not exist.

        Args:
            commits: the commit and its ancestors, newest first.
            state: returns the state after the commit.
        """
        with suppress(CatalogRefused):  # a damaged page is replaced
            if self.read(hash):
                return
        held: list[LogCommit] = []
        for commit in commits:
            held.append(commit)
            if commit.is_first_of_page:
                break
        page = Page(commits=held[::-1], state=state() if len(held) == 1 else None)
        self._write_file(self._location(hash), page.model_dump_json(exclude_defaults=True).encode())

    def delete(self, hash: str) -> None:
        """Delete the page of a hash, if it exists."""
        location = self._location(hash)
        with suppress(OSError):
            load_file_io(self._io, location).delete(location)

    def _location(self, hash: str) -> str:
        return f"{self.folder}/{hash}.json"

    def _read_file(self, hash: str) -> Page:
        """Read a page. Retry if it is incomplete: some stores list a file before it is fully written."""
        location = self._location(hash)
        for number in range(_READS):
            time.sleep(_WAIT if number else 0)
            with load_file_io(self._io, location).new_input(location).open() as file:
                content = file.read()
            with suppress(ValidationError):
                page = Page.model_validate_json(content)
                if page.is_of(hash):
                    return page
        raise CatalogRefused(
            f"the commit log is damaged, or of a newer release: {location} does not contain the commit {hash[:12]}"
        )

    def _write_file(self, location: str, content: bytes) -> None:
        """Write a file that no reader sees incomplete.

        Object stores ensure that themselves. A local file is written under another name and then renamed.
        """
        scheme = urlparse(location).scheme
        if scheme not in ("", "file"):
            with load_file_io(self._io, location).new_output(location).create(overwrite=True) as file:
                file.write(content)
            return
        path = Path(urlparse(location).path if scheme else location)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{uuid.uuid4().hex}.part")
        try:
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
