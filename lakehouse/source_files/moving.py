"""Move local files that main holds out of a landing zone: none is overwritten, and none is lost.

A file is linked at its new path, which fails where there is one already, and then taken away from its old one. A kill
between the two leaves both, which are one file, and the next try goes on from there.
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
"""What a system answers that cannot link these two paths: then the file is copied."""
_DIGITS = 12


class Unmovable(Exception):
    """Raised when a file stays as it is, with the reason."""


def local_state(now: os.stat_result) -> str:
    """Return what a file system tells of a file: another state shows that it was changed."""
    return f"{now.st_size}:{now.st_mtime_ns}:{now.st_ctime_ns}:{now.st_ino}"


def names_at(target: str, identity: str) -> Iterator[str]:
    """Yield the paths that a file may be moved to: its own, and one with digits where another file has that."""
    folder, _, name = target.rpartition("/")
    stem, dot, suffix = name.partition(".")
    yield target
    yield f"{folder}/{stem}.{hashlib.sha256(identity.encode()).hexdigest()[:_DIGITS]}{dot}{suffix}"


def move_file(path: str, state: str, identity: str, target: str, progress: Callable[[], None]) -> str:
    """Move a file if it is still as it was listed; return where it is now.

    Args:
        identity: that of its content, as runs know it.
        target: where it is moved to, unless a file of other content is there.
        progress: called while a large file is copied; what it raises stops that.

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
                _take_away(source, now)
                return name
    except FileNotFoundError:
        raise vanished(path) from None
    except OSError as error:
        raise Unmovable(f"{error.strerror}: {error.filename2 or error.filename}") from error
    raise Unmovable(f"other files have its names in {Path(target).parent}")


def _put(source: Path, now: os.stat_result, target: Path, digest: str, progress: Callable[[], None]) -> bool:
    """Have the file at the target, too; return whether it is there now: otherwise another one is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileExistsError:
        return _is_same(target, now, digest, progress)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return _copy(source, now, target, digest, progress)
    if not _is_file(target.lstat(), now):  # it was replaced after it was looked at
        target.unlink()
        raise changed(str(source))
    return True


def _copy(source: Path, now: os.stat_result, target: Path, digest: str, progress: Callable[[], None]) -> bool:
    """Copy the file under a hidden name, and give it its name when it is whole."""
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


def _take_away(source: Path, now: os.stat_result) -> None:
    """Remove the file, and no other one that took its path meanwhile: such a one is put back."""
    hidden = source.with_name(f".{uuid.uuid4().hex}.sluice-moving")
    try:
        source.rename(hidden)
    except FileNotFoundError:  # another worker did it
        return
    if not _is_file(hidden.lstat(), now):
        _put_back(hidden, source)
        raise changed(str(source))
    hidden.unlink()


def _put_back(hidden: Path, source: Path) -> None:
    try:
        os.link(hidden, source)
    except FileExistsError:  # a still newer one has the path
        pass
    except OSError:  # its file system has no links
        if not source.exists():
            hidden.rename(source)
            return
    hidden.unlink()


def _is_file(one: os.stat_result, other: os.stat_result) -> bool:
    """Return whether two looks saw the same file with the same content; a link to it changes its other times."""
    fields = ("st_dev", "st_ino", "st_size", "st_mtime_ns")
    return all(getattr(one, field) == getattr(other, field) for field in fields)


def _is_same(target: Path, now: os.stat_result, digest: str, progress: Callable[[], None]) -> bool:
    """Return whether what is at the target is the file, or has its content."""
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
