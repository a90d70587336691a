"""File system for DuckDB that reads an object store through PyArrow's S3 client.

So DuckDB downloads no extension at run time.
"""

import threading
from collections.abc import Collection, Mapping
from datetime import datetime, timezone
from typing import Any

from fsspec import AbstractFileSystem
from pyiceberg.io import load_file_io

STORE_SCHEMES = ("s3", "s3a", "s3n")
_NEVER_CHANGES = datetime(2000, 1, 1, tzinfo=timezone.utc)


def is_in_store(path: str) -> bool:
    """Return True if a file is in a store that DuckDB reads with this module."""
    return path.startswith(tuple(f"{scheme}://" for scheme in STORE_SCHEMES))


class StoreFiles(AbstractFileSystem):  # type: ignore[misc]
    """The read-only file system of one database, with a fixed list of objects that never change."""

    protocol = STORE_SCHEMES
    cachable = False

    def __init__(self, io: Mapping[str, str], paths: Collection[str]) -> None:
        super().__init__()
        self._io, self._paths = dict(io), frozenset(paths)
        self._opened: dict[str, Any] = {}
        self.trouble: OSError | None = None
        """The error of the last object that could not be read, unless the object is missing or access is denied."""

    def open(self, path: str, mode: str = "rb", **_: Any) -> "StoreFile":
        """Open an object."""
        if mode != "rb" or path not in self._paths:
            raise PermissionError(f"{path} is not read here")
        return StoreFile(self, path, self._object(path))

    def size(self, path: str) -> int:
        """Return the size of an object in bytes."""
        return int(self._object(path).size())

    def modified(self, path: str) -> datetime:
        """Return the same time for every object: data files never change."""
        return _NEVER_CHANGES

    def glob(self, path: str, **_: Any) -> list[str]:
        """Return the path itself, since the path of a data file is not a pattern."""
        return [path] if path in self._paths else []

    def exists(self, path: str, **_: Any) -> bool:
        """Return True if the object is in the list. Only a read shows whether it exists in the store."""
        return path in self._paths

    def read(self, path: str, start: int, length: int) -> bytes:
        """Read a part of an object."""
        try:
            part: bytes = self._object(path).read_at(length, start)
        except OSError as error:
            raise self.note(error) from None
        return part

    def _object(self, path: str) -> Any:
        """Return an open object that any thread may read.

        The object is opened only once, since each opening requests its size from the store.
        """
        if path not in self._opened:
            try:
                self._opened[path] = load_file_io(self._io, path).new_input(path).open(seekable=True)
            except OSError as error:
                raise self.note(error) from None
        return self._opened[path]

    def note(self, error: OSError) -> OSError:
        """Remember an error if a later request to the store may succeed; return the error."""
        if not isinstance(error, FileNotFoundError | PermissionError) and "HTTP status 4" not in str(error):
            self.trouble = error
        return error


class StoreFile:
    """An open object with a separate position for each thread.

    DuckDB seeks and reads in two calls, from several threads at once. With a shared position, one thread could read
    from the position of another.
    """

    def __init__(self, files: StoreFiles, path: str, opened: Any) -> None:
        self._files, self._path, self._size = files, path, int(opened.size())
        self._positions: dict[int, int] = {}

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move the calling thread's position."""
        start = (0, self.tell(), self._size)[whence]
        self._positions[threading.get_ident()] = start + offset
        return start + offset

    def read(self, length: int = -1) -> bytes:
        """Read from the calling thread's position."""
        position = self.tell()
        part = self._files.read(self._path, position, self._size - position if length < 0 else length)
        self._positions[threading.get_ident()] = position + len(part)
        return part

    def tell(self) -> int:
        """Return the calling thread's position."""
        return self._positions.get(threading.get_ident(), 0)

    def seekable(self) -> bool:
        """Return True: the object can be read in any order."""
        return True

    def close(self) -> None:
        """Do nothing: other threads read the same object, and an open object keeps no connection."""
