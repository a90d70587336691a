"""List the files of a landing zone: quickly, without reading them, and also those that are not ready."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lakehouse.source_files.local import expand_pattern, walk_folder
from lakehouse.source_files.object_store import SCHEMES, list_object_states, object_exists
from lakehouse.source_files.paths import absolute_path, has_wildcards, is_hidden, is_remote, without_scheme
from sluice.errors import InvalidInput

_TEMPORARY = (".tmp", ".temp", ".part", ".partial", ".crdownload", ".filepart", ".inprogress", ".swp", "~")
"""Endings of names under which programs write files that they rename when they are whole."""


@dataclass(frozen=True)
class ArrivingFile:
    """A file that is there."""

    path: str
    size: int
    state: str
    """What its file system or store tells of it: another state shows that it was changed."""

    @property
    def ignored(self) -> str:
        """Why it is not looked at, as long as it is like this; empty for a file that counts."""
        name = self.path.rsplit("/", 1)[-1].lower()
        if name.endswith(_TEMPORARY):
            return "its name is one of a file that is being written"
        return "" if self.size else "it is empty"


def list_arriving(path: str) -> Iterator[ArrivingFile]:
    """List the files of a folder, a prefix or a pattern, but for hidden ones.

    Raises:
        InvalidInput: the folder cannot be read, or the store refuses.
        ServiceUnavailable: the store does not answer.
    """
    return _list_store(path) if is_remote(path) else _list_local(path)


def file_exists(path: str) -> bool:
    """Return whether there is a file of this path.

    Raises:
        ServiceUnavailable: the store does not answer.
    """
    return object_exists(path) if is_remote(path) else Path(without_scheme(path)).is_file()


def _list_store(path: str) -> Iterator[ArrivingFile]:
    if path.split("://", 1)[0].lower() not in SCHEMES:
        raise InvalidInput(
            f"{path} cannot be a landing zone: it is neither a folder nor in one of {', '.join(SCHEMES)}"
        )
    return (ArrivingFile(*fields) for fields in list_object_states(path))


def _list_local(path: str) -> Iterator[ArrivingFile]:
    start = absolute_path(without_scheme(path))
    if not has_wildcards(path) and not start.exists():
        raise InvalidInput(f"there is no folder {start}: make it, or correct `arrival.from`")
    for each in expand_pattern(Path(start.anchor), start.parts[1:]):
        for file in walk_folder(each, skip_missing=True) if each.is_dir() else [each]:
            if is_hidden(file.name):
                continue
            try:
                now = file.stat()
                str(file).encode()
            except (FileNotFoundError, UnicodeEncodeError):
                continue
            yield ArrivingFile(
                str(file), now.st_size, f"{now.st_size}:{now.st_mtime_ns}:{now.st_ctime_ns}:{now.st_ino}"
            )
