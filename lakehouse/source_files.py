"""The source files of a run: list them, check that each can be read, and compute the identity of the input."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sluice.contracts.run import InputFile, RunInput
from sluice.errors import InvalidInput
from sluice.pipeline.source import Format, Source

_DIGEST_LIMIT = 64 * 1024 * 1024
"""Up to this size, in bytes, a file is identified by its content; a larger one by its size and time of change."""
_PARQUET_MAGIC = b"PAR1"
_WILDCARDS = "*?["


def find_files(source: Source) -> list[InputFile]:
    """List the files of a source, sorted by path.

    Raises:
        InvalidInput: a path matches nothing, or a file cannot hold what its format says.
    """
    format = source.reader_format()
    by_path: dict[str, InputFile] = {}
    for path in source.paths:
        files = list(_list_remote(path) if _is_remote(path) else _list_local(path, format))
        if not files:
            raise InvalidInput(f"there are no files at {path!r} (looked in {_searched_path(path)})")
        by_path.update((file.path, file) for file in files)
    return [by_path[path] for path in sorted(by_path)]


def identify_input(files: list[InputFile], more: str = "") -> RunInput:
    """Return the identity of an input: the same for the same files and the same text `more`."""
    digest = hashlib.sha256(more.encode())
    for file in files:
        digest.update(f"{file.path}\0{file.size}\0{file.fingerprint}\n".encode())
    return RunInput(digest=digest.hexdigest(), files=len(files), bytes=sum(file.size for file in files))


def absolute_source(source: Source, folder: Path | None = None) -> Source:
    """Return the source with absolute local paths, since a worker may run in another folder.

    Args:
        folder: what relative paths are relative to; None means the current folder.
    """
    paths = [path if _is_remote(path) else str(absolute_path(_without_scheme(path), folder)) for path in source.paths]
    return source.model_copy(update={"path": paths[0] if isinstance(source.path, str) else paths})


def absolute_path(path: str, folder: Path | None = None) -> Path:
    """Return a local path as an absolute one, `~` and `~somebody` expanded.

    Raises:
        InvalidInput: no file can have such a path.
    """
    try:
        absolute = ((folder or Path()) / Path(path).expanduser()).absolute()
        absolute.exists()
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{path[:200]!r} is not a valid path: {error}"[:500]) from error
    return absolute


def base_path(source: Source) -> str | None:
    """Return the directory of a source that is one directory: its folders named `column=value` become columns."""
    (path,) = source.paths if len(source.paths) == 1 else ("",)
    if not path or any(character in path for character in _WILDCARDS):
        return None
    if _is_remote(path):
        return path if not Path(urlsplit(path).path).suffix else None
    return path if Path(path).is_dir() else None


def _is_remote(path: str) -> bool:
    return "://" in path and not path.startswith("file:")


def _without_scheme(path: str) -> str:
    return urlsplit(path).path if path.startswith("file:") else path


def _searched_path(path: str) -> str:
    return path if _is_remote(path) else str(absolute_path(_without_scheme(path)))


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _list_local(path: str, format: Format) -> Iterator[InputFile]:
    start = absolute_path(_without_scheme(path))
    if start.is_dir():
        candidates = [each for each in start.rglob("*") if not any(map(_is_hidden, each.relative_to(start).parts))]
    elif start.exists():
        candidates = [start]
    else:
        pattern = start.relative_to(start.anchor)
        candidates = [each for each in Path(start.anchor).glob(str(pattern)) if not _is_hidden(each.name)]
    for each in candidates:
        if each.is_file():
            yield _inspect(each, format)


def _inspect(path: Path, format: Format) -> InputFile:
    """Check that a file can be read, and compute its fingerprint."""
    try:
        size = path.stat().st_size
        if size == 0:
            raise InvalidInput(f"{path} is empty (0 bytes): remove it, or leave it out of the source")
        with path.open("rb") as file:
            if format == "parquet":
                _check_parquet(path, file, size)
            if size > _DIGEST_LIMIT:
                fingerprint = f"changed {path.stat().st_mtime_ns}"
            else:
                file.seek(0)
                fingerprint = hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error
    return InputFile(path=str(path), size=size, fingerprint=fingerprint)


def _check_parquet(path: Path, file: Any, size: int) -> None:
    head = file.read(4)
    file.seek(max(size - 4, 0))
    if head != _PARQUET_MAGIC or file.read(4) != _PARQUET_MAGIC or size < 12:
        raise InvalidInput(f"{path} is no whole parquet file: it is truncated, or not parquet at all")


def _list_remote(path: str) -> Iterator[InputFile]:
    from pyarrow import fs  # noqa: PLC0415  # slow to import, and local files do not need it

    url = path.replace("s3a://", "s3://", 1)
    wildcard = min((url.find(character) for character in _WILDCARDS if character in url), default=-1)
    start = url if wildcard < 0 else url[:wildcard].rsplit("/", 1)[0]
    try:
        system, root = fs.FileSystem.from_uri(start)
        info = system.get_file_info(root)
        listed = [info] if info.is_file else system.get_file_info(fs.FileSelector(root, recursive=True))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be listed: {error}") from error
    scheme = path.split("://", 1)[0]
    pattern = url.split("://", 1)[1]
    for each in listed:
        matches = wildcard < 0 or Path(each.path).match(pattern)
        if each.is_file and matches and not _is_hidden(each.base_name):
            if each.size == 0:
                raise InvalidInput(f"{scheme}://{each.path} is empty (0 bytes): remove it, or leave it out")
            yield InputFile(path=f"{scheme}://{each.path}", size=each.size, fingerprint=f"changed {each.mtime_ns}")
