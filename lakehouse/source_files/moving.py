"""Move loaded local files out of a landing zone, without overwriting or losing any.

A file is linked at its new path, which fails if that exists, and then removed from its old one. If the process is
killed in between, both paths name the same file, and the next try continues from there.
"""

import errno
import hashlib
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from lakehouse.source_files.listing import CHUNK, changed, vanished

_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)
"""Errors of a system that cannot link two paths. The file is then copied."""
_DIGITS = 12


class Unmovable(Exception):
    """Raised when a file cannot be moved, with the reason. The file stays unchanged."""


def local_state(now: os.stat_result) -> str:
    """Return the state of a file as its file system reports it. Another state shows a change."""
    return f"{now.st_size}:{now.st_mtime_ns}:{now.st_ctime_ns}:{now.st_ino}"


def names_at(target: str, identity: str) -> Iterator[str]:
    """Yield the possible target paths of a file: its own, and one with digits if another file has that."""
    folder, _, name = target.rpartition("/")
    stem, dot, suffix = name.partition(".")
    yield target
    yield f"{folder}/{stem}.{hashlib.sha256(identity.encode()).hexdigest()[:_DIGITS]}{dot}{suffix}"


def move_file(path: str, state: str, identity: str, target: str, progress: Callable[[], None]) -> str:
    """Move a file if it is unchanged since it was listed; return its new path.

    Args:
        identity: the identity of its content, as runs know it.
        target: the path to move to, unless a file of other content has it.
        progress: called while a large file is copied. Any error that it raises stops the copy.

    Raises:
        InputChanged: it is not the file that was listed.
        Unmovable: the system refuses.
    """
    source, digest = Path(path), identity.removeprefix("sha256:")
    try:
        now = source.lstat()
        if stat.S_ISLNK(now.st_mode):
            raise Unmovable("it is a symbolic link")
        if local_state(now) != state:
            raise changed(path)
        for name in names_at(target, identity):
            if _put(source, now, Path(name), digest, progress):
                _take_away(source, now, Path(name))
                return name
    except FileNotFoundError:
        raise vanished(path) from None
    except OSError as error:
        raise Unmovable(f"{error.strerror}: {error.filename2 or error.filename}") from error
    raise Unmovable(f"other files have its names in {Path(target).parent}: move them elsewhere")


def _put(source: Path, now: os.stat_result, target: Path, digest: str, progress: Callable[[], None]) -> bool:
    """Link or copy the file to the target; return False if the target is another file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileExistsError:
        return _is_same(target, now, digest, progress)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return _copy(source, now, target, digest, progress)
    if not _is_file(target.lstat(), now):  # it was replaced after it was checked
        target.unlink()
        raise changed(str(source))
    return True


def _copy(source: Path, now: os.stat_result, target: Path, digest: str, progress: Callable[[], None]) -> bool:
    """Copy the file under a hidden name, and rename it when it is complete."""
    hidden = target.with_name(f".{uuid.uuid4().hex}.sluice-moving")
    try:
        with source.open("rb") as read, hidden.open("xb") as write:
            for piece in iter(lambda: read.read(CHUNK), b""):
                write.write(piece)
                progress()
            write.flush()
            os.fsync(write.fileno())
        if _digest(hidden, progress) != digest or not _is_file(source.lstat(), now):
            raise changed(str(source))
        shutil.copystat(source, hidden)
        try:
            os.link(hidden, target)
        except FileExistsError:
            return _is_same(target, now, digest, progress)
    finally:
        hidden.unlink(missing_ok=True)
    return True


def _take_away(source: Path, now: os.stat_result, target: Path) -> None:
    """Remove the file. Another file that took its path meanwhile is put back.

    Raises:
        InputChanged: it is another file.
        Unmovable: the target is the source itself under another name.
    """
    hidden = source.with_name(f".{uuid.uuid4().hex}.sluice-moving")
    if _is_itself(source, target):
        raise Unmovable(f"{target} is the same file under another name: a link below `move_to` leads back to it")
    try:
        source.rename(hidden)
    except FileNotFoundError:  # another worker removed it
        return
    if not _is_file(hidden.lstat(), now):
        _put_back(hidden, source)
        raise changed(str(source))
    hidden.unlink()


def _is_itself(source: Path, target: Path) -> bool:
    """Return True if two paths are one entry of a folder: through a linked folder, or two mounts of one folder."""
    try:
        now, there = source.lstat(), target.lstat()
        is_one_entry = source.name == target.name and source.parent.samefile(target.parent)
    except FileNotFoundError:  # another program took one of them
        return False
    return os.path.samestat(now, there) and (is_one_entry or now.st_nlink == 1)


def _put_back(hidden: Path, source: Path) -> None:
    try:
        os.link(hidden, source)
    except FileExistsError:  # a still newer file has the path
        pass
    except OSError:  # a file system without links
        if not source.exists():
            hidden.rename(source)
            return
    hidden.unlink()


def _is_file(one: os.stat_result, other: os.stat_result) -> bool:
    """Return True if two states are of the same file with the same content. Linking a file changes its other times."""
    fields = ("st_dev", "st_ino", "st_size", "st_mtime_ns")
    return all(getattr(one, field) == getattr(other, field) for field in fields)


def _is_same(target: Path, now: os.stat_result, digest: str, progress: Callable[[], None]) -> bool:
    """Return True if the target is the file, or has its content."""
    there = target.lstat()
    if _is_file(there, now):
        return True
    return stat.S_ISREG(there.st_mode) and there.st_size == now.st_size and _digest(target, progress) == digest


def _digest(path: Path, progress: Callable[[], None]) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for piece in iter(lambda: file.read(CHUNK), b""):
            digest.update(piece)
            progress()
    return digest.hexdigest()
