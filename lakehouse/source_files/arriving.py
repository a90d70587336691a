"""List the files of a landing zone, including incomplete ones, quickly and without reading them."""

import contextlib
import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from lakehouse.source_files.links import LinkGuard, resolved_suffix
from lakehouse.source_files.listing import unreadable
from lakehouse.source_files.local import expand_pattern
from lakehouse.source_files.moving import local_state
from lakehouse.source_files.object_store import (
    SCHEMES,
    find_object_states,
    list_object_states,
    object_exists,
)
from lakehouse.source_files.paths import absolute_path, has_wildcards, is_hidden, is_remote, without_scheme
from sluice.errors import CredentialsExpired, InvalidInput, ServiceUnavailable

_TEMPORARY = (".tmp", ".temp", ".part", ".partial", ".crdownload", ".filepart", ".inprogress", ".swp", "~")
"""Endings of temporary names, under which programs write files that they rename when complete."""
_MOST_IN_FOLDER, _MOST_IN_STORE = 500, 20
"""Maximum number of files examined one by one. For more of them, listing the folder or store costs no more."""
_TOO_LARGE = "it has more than 1 TiB, the limit of a landing zone: split it"
_LARGEST = 1024**4
"""Maximum size of a local file that is read to identify it, in bytes. A sparse file may be far larger."""
_LEADS_NOWHERE = "it is a symbolic link that leads nowhere: repair or remove it"
_NO_NAMES = ("", ".", "..")


@dataclass(frozen=True)
class ArrivingFile:
    """A file that was listed."""

    path: str
    size: int
    state: str
    """State reported by its file system or store. Another state shows a change."""
    written_at: float = 0.0
    """Time of its last modification as its file system or store reports it, in seconds since 1970."""
    problem: str = ""
    """Reason why no run can load it, regardless of its content; else empty."""
    refused: str = ""
    """Reason why it is not read, regardless of its content; else empty. People are notified."""

    @property
    def ignored(self) -> str:
        """Reason why it is ignored in its present state; empty for a file that counts."""
        if self.problem:
            return self.problem
        name = self.path.rsplit("/", 1)[-1].lower()
        if name.endswith(_TEMPORARY):
            return "its name ends like that of an unfinished file"
        return "" if self.size else "it is empty"


def list_arriving(path: str, *, follow_links: bool = False) -> Iterator[ArrivingFile]:
    """List the files of a folder, a prefix or a pattern, except hidden ones.

    Args:
        follow_links: True to follow symbolic links that lead out of the folder.

    Raises:
        InvalidInput: the folder cannot be read, or the store refuses.
        ServiceUnavailable: the store does not answer.
    """
    return _list_store(path) if is_remote(path) else _list_local(path, LinkGuard(path, follows=follow_links))


def find_arriving(path: str, files: Collection[str], *, follow_links: bool = False) -> list[ArrivingFile] | None:
    """Return the given files that `list_arriving` would list, without listing others.

    Return None if the zone must be listed instead: for a pattern, for a folder among the files, for so many files that
    a listing costs less, and for an error or a link out of the folder, since the listing explains these.
    """
    if has_wildcards(path) or len(files) > (_MOST_IN_STORE if is_remote(path) else _MOST_IN_FOLDER):
        return None
    try:
        if is_remote(path):
            return _find_in_store(path, files)
        return _find_local(path, files, LinkGuard(path, follows=follow_links))
    except (InvalidInput, CredentialsExpired, ServiceUnavailable, OSError, ValueError):
        return None


def is_in_state(path: str, state: str) -> bool:
    """Return True if a file is unchanged since it was listed.

    Objects in stores are not examined: they are never half written.
    """
    if is_remote(path):
        return True
    try:
        return local_state(Path(path).stat()) + resolved_suffix(path, os.path.realpath(path)) == state
    except OSError:
        return False


def file_exists(path: str) -> bool:
    """Return True if a file of this path exists.

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


def _list_local(path: str, guard: LinkGuard) -> Iterator[ArrivingFile]:
    start = absolute_path(without_scheme(path))
    if not has_wildcards(path) and not start.exists():
        raise InvalidInput(f"there is no folder {start}: create it, or correct `arrival.from`")
    for each in expand_pattern(Path(start.anchor), start.parts[1:]):
        with _skips_unreadable(each):
            if is_hidden(each.name) and not each.is_dir():
                continue
            if problem := guard.problem(str(each)):
                yield _refused(str(each), problem)
            elif _leads_nowhere(str(each)):
                yield _refused(str(each), _LEADS_NOWHERE)
            elif each.is_dir():
                yield from _list_folder(str(each), guard)
            else:
                yield _arriving(str(each), each.stat(), os.path.realpath(each))


def _find_in_store(path: str, files: Collection[str]) -> list[ArrivingFile]:
    return [ArrivingFile(*fields) for fields in find_object_states(path, sorted(files))]


def _find_local(path: str, files: Collection[str], guard: LinkGuard) -> list[ArrivingFile] | None:
    start = absolute_path(without_scheme(path))
    if not start.is_dir() or not all(each.startswith(f"{start}/") for each in files):
        return None  # the files may be named by another path to the folder
    present = list[ArrivingFile]()
    for each in sorted(files):
        if any(map(_is_not_listed, each.removeprefix(f"{start}/").split("/"))):
            continue
        if _leads_nowhere(each):
            if guard.problem(each):
                return None
            present.append(_refused(each, _LEADS_NOWHERE))
            continue
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            now = Path(each).stat()
            if stat.S_ISDIR(now.st_mode) or guard.problem(each):
                return None
            if stat.S_ISREG(now.st_mode):
                present.append(_arriving(each, now, os.path.realpath(each)))
    return present


def _leads_nowhere(path: str) -> bool:
    return not Path(path).exists() and Path(path).is_symlink()


def _is_not_listed(name: str) -> bool:
    return is_hidden(name) or name in _NO_NAMES


def _list_folder(start: str, guard: LinkGuard) -> Iterator[ArrivingFile]:
    """List a folder at any depth, including folders behind symbolic links, one file at a time to save memory."""
    seen, folders = set[str](), [start]
    while folders:
        folder = folders.pop()
        real = os.path.realpath(folder)
        if real in seen or guard.problem(folder, real):  # a link to a folder above it, or one that was created just now
            continue
        seen.add(real)
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if is_hidden(entry.name):
                        continue
                    with _skips_unreadable(entry):
                        is_link = entry.is_symlink()
                        if is_link and (problem := guard.problem(entry.path)):
                            yield _refused(entry.path, problem)
                        elif is_link and _leads_nowhere(entry.path):
                            yield _refused(entry.path, _LEADS_NOWHERE)
                        elif entry.is_dir():
                            folders.append(entry.path)
                        elif entry.is_file():
                            file_at = os.path.realpath(entry.path) if is_link else f"{real.rstrip('/')}/{entry.name}"
                            yield _arriving(entry.path, entry.stat(), file_at)
        except FileNotFoundError:  # the folder was removed while its parent was listed
            continue
        except OSError as error:
            raise unreadable(folder, error.strerror) from error


@contextlib.contextmanager
def _skips_unreadable(entry: Path | os.DirEntry[str]) -> Iterator[None]:
    """Skip a single entry that cannot be read.

    The entry was renamed just now, or is a link to itself or to a target that this process may not read.

    Raises:
        InvalidInput: this process may not read the entry's folder, so that all its files would be skipped.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, PermissionError) and not entry.is_symlink():
            raise unreadable(str(Path(entry).parent), error.strerror) from error


def _arriving(path: str, now: os.stat_result, real: str) -> ArrivingFile:
    """Return a file that was listed. Its state contains its resolved path, so that a link put in its place shows."""
    state = _printable(local_state(now) + resolved_suffix(path, real))
    if _printable(path) != path:
        return ArrivingFile(_printable(path), now.st_size, state, problem="its name is not in UTF-8: rename it")
    return ArrivingFile(path, now.st_size, state, now.st_mtime, _TOO_LARGE if now.st_size > _LARGEST else "")


def _refused(path: str, problem: str) -> ArrivingFile:
    """Return a link that is not followed, without reading its target."""
    now = Path(path).lstat()
    return ArrivingFile(_printable(path), now.st_size, local_state(now), refused=_printable(problem))


def _printable(text: str) -> str:
    """Return a text with those bytes of a name escaped that are not UTF-8."""
    return os.fsencode(text).decode(errors="backslashreplace")
