"""List and read source files on a file system of this machine."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from lakehouse.source_files.listing import CHUNK, ListedFile, changed, empty, unreadable, vanished
from lakehouse.source_files.paths import absolute_path, has_wildcards, is_hidden, part_matches, without_scheme
from sluice.errors import InvalidInput


def list_local(path: str) -> Iterator[ListedFile]:
    """List a file, all files of a folder, or the files and folders that match a pattern.

    An existing name is taken literally, even if it could be a pattern.

    Raises:
        InvalidInput: a folder cannot be read, or a file that Spark would ignore is named.
    """
    start = absolute_path(without_scheme(path))
    for each in expand_pattern(Path(start.anchor), start.parts[1:]):
        if each.is_dir():
            yield from map(describe_local, walk_folder(each))
        elif each.is_file():
            if is_hidden(each.name):
                raise InvalidInput(
                    f"{each} would be ignored by Spark, like every file whose name begins with '_' or '.' or ends in "
                    "'._COPYING_': rename it"
                )
            yield describe_local(each)


def describe_local(path: Path) -> ListedFile:
    """Return a file that can be read.

    Raises:
        InvalidInput: it does not exist, is empty, or has a name that Spark cannot open.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        name = os.fsencode(path)
        raise InvalidInput(f"the name {name!r} is not UTF-8, so that Spark cannot open the file: rename it") from None
    if ":" in path.name:
        raise InvalidInput(
            f"{path}: Spark cannot open a file with a colon in its name: rename it, for example to "
            f"{path.name.replace(':', '-')!r}"
        )
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise vanished(str(path)) from None
    except OSError as error:
        raise unreadable(str(path), error.strerror) from error
    if size == 0:
        raise empty(str(path))
    return ListedFile(
        str(path), size, read=lambda: _read(path), read_tail=partial(_read_tail, path), state=lambda: _state(path)
    )


def expand_pattern(base: Path, parts: Sequence[str]) -> Iterator[Path]:
    """Yield the paths below `base` that a pattern of parts matches, sorted by name."""
    if not parts:
        yield base
        return
    part, rest = parts[0], parts[1:]
    literal = base / part
    if part == "**":
        yield from expand_pattern(base, rest)
        for each in _entries(base):
            if each.is_dir() and not each.is_symlink() and not is_hidden(each.name):
                yield from expand_pattern(each, parts)
    elif not has_wildcards(part) or literal.exists():
        if literal.exists():
            yield from expand_pattern(literal, rest)
    elif base.is_dir():
        for each in _entries(base):
            if part_matches(each.name, part):
                yield from expand_pattern(each, rest)


def walk_folder(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that Spark would read, including those behind symbolic links."""
    seen: set[str] = set()
    for root, folders, files in os.walk(folder, followlinks=True, onerror=_raise):
        real = os.path.realpath(root)
        if real in seen:  # a link to a folder above it
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(each for each in folders if not is_hidden(each))
        for name in sorted(files):
            path = Path(root, name)
            if not is_hidden(name):
                if not path.exists():
                    raise unreadable(str(path), "it is a symbolic link that leads nowhere")
                if path.is_file():
                    yield path


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except NotADirectoryError:
        return []
    except OSError as error:
        raise unreadable(str(folder), error.strerror) from error


def _raise(error: OSError) -> None:
    raise unreadable(str(error.filename), error.strerror) from error


def _state(path: Path) -> tuple[object, ...]:
    try:
        now = path.stat()
    except FileNotFoundError:
        raise vanished(str(path)) from None
    except OSError as error:
        raise unreadable(str(path), error.strerror) from error
    return now.st_size, now.st_mtime_ns, now.st_ctime_ns, os.path.realpath(path)


def _read(path: Path) -> Iterator[bytes]:
    before = _state(path)
    try:
        with path.open("rb", buffering=0) as file:
            while piece := file.read(CHUNK):
                yield piece
    except FileNotFoundError:
        raise vanished(str(path)) from None
    except OSError as error:
        raise unreadable(str(path), error.strerror) from error
    if _state(path) != before:
        raise changed(str(path))


def _read_tail(path: Path, size: int) -> bytes:
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(-size, os.SEEK_END)
            return file.read(size) or b""
    except FileNotFoundError:
        raise vanished(str(path)) from None
    except OSError as error:
        raise unreadable(str(path), error.strerror) from error
