"""The files that a run loads: found, looked at, and given an identity."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sluice.contracts.run import InputFile, RunInput
from sluice.errors import InvalidInput
from sluice.pipeline.source import Format, Source

_DIGEST_LIMIT = 64 * 1024 * 1024
"""Up to this size, in bytes, a file is known by its content; beyond, by its size and time of change."""
_PARQUET_MAGIC = b"PAR1"
_GLOB = "*?["


def find_files(source: Source) -> list[InputFile]:
    """List the files of a source, sorted by path.

    Raises:
        InvalidInput: a path matches nothing, or a file cannot hold what its format says.
    """
    form = source.reader_format()
    found: dict[str, InputFile] = {}
    for path in source.paths:
        files = list(_remote(path, form) if _is_remote(path) else _local(path, form))
        if not files:
            raise InvalidInput(f"there are no files at {path!r} (looked in {_looked_in(path)})")
        found.update((file.path, file) for file in files)
    return [found[path] for path in sorted(found)]


def identity(files: list[InputFile], rest: str = "") -> RunInput:
    """Return the identity of an input: the same files, and whatever else `rest` says, give the same."""
    digest = hashlib.sha256(rest.encode())
    for file in files:
        digest.update(f"{file.path}\0{file.size}\0{file.mark}\n".encode())
    return RunInput(digest=digest.hexdigest(), files=len(files), bytes=sum(file.size for file in files))


def absolute(source: Source, folder: Path | None = None) -> Source:
    """Return the source with absolute local paths, since a worker may run in another folder.

    Args:
        folder: what relative paths are relative to; None means the current folder.
    """
    paths = [path if _is_remote(path) else str(expanded(_plain(path), folder)) for path in source.paths]
    return source.model_copy(update={"path": paths[0] if isinstance(source.path, str) else paths})


def expanded(path: str, folder: Path | None = None) -> Path:
    """Return a local path as an absolute one, `~` and `~somebody` expanded.

    Raises:
        InvalidInput: nothing can have such a path.
    """
    try:
        found = ((folder or Path()) / Path(path).expanduser()).absolute()
        found.exists()
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{path[:200]!r} is no path that there can be: {error}"[:500]) from error
    return found


def base_path(source: Source) -> str | None:
    """Return the directory under which folders named `column=value` are columns, if the source is one."""
    (path,) = source.paths if len(source.paths) == 1 else ("",)
    if not path or any(character in path for character in _GLOB):
        return None
    if _is_remote(path):
        return path if not Path(urlsplit(path).path).suffix else None
    return path if Path(path).is_dir() else None


def _is_remote(path: str) -> bool:
    return "://" in path and not path.startswith("file:")


def _plain(path: str) -> str:
    return urlsplit(path).path if path.startswith("file:") else path


def _looked_in(path: str) -> str:
    return path if _is_remote(path) else str(expanded(_plain(path)))


def _hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _local(path: str, form: Format) -> Iterator[InputFile]:
    start = expanded(_plain(path))
    if start.is_dir():
        candidates = [each for each in start.rglob("*") if not any(map(_hidden, each.relative_to(start).parts))]
    elif start.exists():
        candidates = [start]
    else:
        pattern = start.relative_to(start.anchor)
        candidates = [each for each in Path(start.anchor).glob(str(pattern)) if not _hidden(each.name)]
    for each in candidates:
        if each.is_file():
            yield _looked_at(each, form)


def _looked_at(path: Path, form: Format) -> InputFile:
    try:
        size = path.stat().st_size
        if size == 0:
            raise InvalidInput(f"{path} is empty (0 bytes): remove it, or leave it out of the source")
        with path.open("rb") as file:
            if form == "parquet":
                _check_parquet(path, file, size)
            if size > _DIGEST_LIMIT:
                no_change_operation = f"changed {path.stat().st_mtime_ns}"
            else:
                file.seek(0)
                no_change_operation = hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error
    return InputFile(path=str(path), size=size, mark=no_change_operation)


def _check_parquet(path: Path, file: Any, size: int) -> None:
    head = file.read(4)
    file.seek(max(size - 4, 0))
    if head != _PARQUET_MAGIC or file.read(4) != _PARQUET_MAGIC or size < 12:
        raise InvalidInput(f"{path} is no whole parquet file: it is truncated, or not parquet at all")


def _remote(path: str, form: Format) -> Iterator[InputFile]:
    from pyarrow import fs  # noqa: PLC0415  # a quarter of a command's start, which local files do not need

    plain = path.replace("s3a://", "s3://", 1)
    cut = min((plain.find(character) for character in _GLOB if character in plain), default=-1)
    start = plain if cut < 0 else plain[:cut].rsplit("/", 1)[0]
    try:
        system, root = fs.FileSystem.from_uri(start)
        info = system.get_file_info(root)
        listed = [info] if info.is_file else system.get_file_info(fs.FileSelector(root, recursive=True))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be listed: {error}") from error
    scheme = path.split("://", 1)[0]
    pattern = plain.split("://", 1)[1]
    for each in listed:
        wanted = cut < 0 or Path(each.path).match(pattern)
        if each.is_file and wanted and not _hidden(each.base_name):
            if each.size == 0:
                raise InvalidInput(f"{scheme}://{each.path} is empty (0 bytes): remove it, or leave it out")
            yield InputFile(path=f"{scheme}://{each.path}", size=each.size, mark=f"changed {each.mtime_ns}")
