"""Identify source files by their content, not by path, time, or other files.

The identity of a file is the SHA-256 of its content, or a checksum that its store keeps (`object_store.py`). If Spark
makes columns of folders (`day=2026-01-31`), their values are part of the identity, since the same bytes in another such
folder are other rows. See ADR 25.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

from lakehouse.source_files.file_system import describe_in_file_system, list_file_system
from lakehouse.source_files.in_threads import Counter, OnProgress, map_in_threads
from lakehouse.source_files.listing import ListedFile, changed
from lakehouse.source_files.local import describe_local, list_local
from lakehouse.source_files.object_store import SCHEMES, describe_object, list_objects
from lakehouse.source_files.paths import absolute_path, base_path, is_remote, partition_of, without_scheme
from sluice.contracts.run_request import InputFile, RunInput
from sluice.errors import InputChanged, InputIncomplete, InvalidInput, NoFiles
from sluice.identifiers import suggestion
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from sluice.pipeline.source import Format, Source, format_of

_PARQUET_MAGIC = b"PAR1"
_ORC_MAGIC = b"ORC"
_MOST_COMPARED = 10_000
"""Maximum number of names in a folder that are compared with the name of a file that is not there."""


def find_files(source: Source, on_progress: OnProgress | None = None) -> list[InputFile]:
    """List and identify the files of a source, sorted by path: each once, however its path is spelt.

    Two files of equal content are both listed; `distinct_files` removes one of them.

    Args:
        on_progress: called about every second with the progress. Any error that it raises stops the work.

    Raises:
        InvalidInput: a path matches nothing, or a file is empty, truncated, or changes while it is read.
        ServiceUnavailable: an object store does not answer.
    """
    base, format = base_path(source), source.reader_format()
    files: dict[str, ListedFile] = {}
    for path in source.paths:
        listed = {_one_spelling(each.path, base): each for each in _list(path)}
        if not listed:
            searched = _searched_path(path)
            where = "" if searched == path else f" (looked in {searched})"
            raise NoFiles(f"there are no files at {path!r}{where}{_close_name(path)}")
        for key, each in listed.items():
            files.setdefault(key, each)
    if not source.format:
        _check_formats(list(files.values()), format)

    def identify(file: ListedFile, counter: Counter) -> InputFile:
        _check_folders(file.path, base)
        return InputFile(path=file.path, size=file.size, identity=_identity(file, format, base, counter))

    ordered = sorted(files.values(), key=lambda each: each.path)
    return map_in_threads(identify, ordered, on_progress, "identified")


def count_files(source: Source) -> tuple[int, int]:
    """Return the present number of files of a source, and their total size in bytes, without reading them.

    Raises:
        InvalidInput: a path cannot be listed.
        ServiceUnavailable: an object store does not answer.
    """
    base = base_path(source)
    sizes = {_one_spelling(each.path, base): each.size for path in source.paths for each in _list(path)}
    return len(sizes), sum(sizes.values())


def distinct_files(files: Sequence[InputFile]) -> tuple[list[InputFile], list[InputFile]]:
    """Return one file for each identity, and the other files, which are left out as copies."""
    by_identity: dict[str, InputFile] = {}
    copies = []
    for file in files:
        if by_identity.setdefault(file.identity, file) is not file:
            copies.append(file)
    return list(by_identity.values()), copies


def identify_input(files: Sequence[InputFile], scope: LoadScope = NO_SCOPE, more: str = "") -> RunInput:
    """Return the identity of an input: the same for the same set of file contents, scope and text `more`."""
    distinct, _ = distinct_files(files)
    digest = hashlib.sha256((more + scope.digest_text).encode())
    for identity in sorted(file.identity for file in distinct):
        digest.update(f"{identity}\n".encode())
    return RunInput(
        digest=digest.hexdigest(), files=len(distinct), bytes=sum(file.size for file in distinct), scope=scope
    )


def check_unchanged(
    files: Sequence[InputFile],
    source: Source,
    on_progress: OnProgress | None = None,
    states: Mapping[str, tuple[object, ...]] | None = None,
) -> None:
    """Identify files again, by their paths.

    Args:
        states: the earlier state of each file, by path. The times in it reveal a file that was replaced and put back.

    Raises:
        InvalidInput: one of them was replaced, changed or removed.
        ServiceUnavailable: an object store does not answer.
    """
    base = base_path(source)

    def check(expected: InputFile, counter: Counter) -> None:
        file = describe(expected.path)
        if file.size != expected.size:
            raise changed(file.path, f"changed from {expected.size:,} to {file.size:,} bytes")
        if _identity(file, None, base, counter) != expected.identity:
            raise changed(file.path, "was replaced by other content")
        if states and states.get(file.path, file.state()) != file.state():
            raise changed(file.path, "was touched")

    map_in_threads(check, files, on_progress, "checked")


def have_changed(files: Sequence[InputFile], source: Source, on_progress: OnProgress | None = None) -> bool:
    """Return True if one of these files has changed. A file that cannot be read now is not evidence of a change.

    Sizes are compared first, without reading the files. The first file that differs ends the work.

    Raises:
        ServiceUnavailable: an object store does not answer.
    """

    def check_size(expected: InputFile, _: Counter) -> None:
        file = describe(expected.path)
        if file.size != expected.size:
            raise changed(file.path)

    try:
        map_in_threads(check_size, files, on_progress, "compared")
        check_unchanged(files, source, on_progress)
    except InputChanged:
        return True
    except InvalidInput:
        return False
    return False


def describe(path: str) -> ListedFile:
    """Return one file that was listed before.

    Raises:
        InputChanged: it no longer exists, or is empty now.
        InvalidInput: it cannot be read.
    """
    try:
        return _describe(path)
    except InputIncomplete:
        raise changed(path, "was emptied") from None


def _describe(path: str) -> ListedFile:
    if not is_remote(path):
        return describe_local(Path(path))
    return describe_object(path) if path.split("://", 1)[0].lower() in SCHEMES else describe_in_file_system(path)


def content_identity(file: ListedFile, base: str | None, sha256: str) -> str:
    """Return the identity that the store vouches for, or else the one from this SHA-256 of the content."""
    partition = partition_of(file.path, base)
    return (file.store_identity or f"sha256:{sha256}") + (f"|{partition}" if partition else "")


def _identity(file: ListedFile, format: Format | None, base: str | None, counter: Counter) -> str:
    """Return the identity of a file. If a format is given, the file must be complete."""
    if file.store_identity:
        counter.add(file.size)
        return content_identity(file, base, "")
    digest = hashlib.sha256()
    size = 0
    head, tail = b"", b""
    for piece in file.read():
        digest.update(piece)
        size += len(piece)
        head = (head + piece[:4])[:4]
        tail = (tail + piece[-4:])[-4:]
        counter.add(len(piece))
    if size != file.size:
        raise changed(file.path, f"changed from {file.size:,} to {size:,} bytes")
    if format:
        check_container(file.path, format, size, head, tail)
    return content_identity(file, base, digest.hexdigest())


def check_container(path: str, format: Format, size: int, head: bytes, tail: bytes) -> None:
    """Check the first and last bytes of the formats that define them."""
    if format == "parquet" and (head != _PARQUET_MAGIC or tail != _PARQUET_MAGIC or size < 12):
        raise InputIncomplete(f"{path} is not a complete parquet file: it is truncated, or not parquet at all")
    if format == "orc" and not head.startswith(_ORC_MAGIC):
        raise InvalidInput(f"{path} is not an ORC file")


def _check_formats(files: Sequence[ListedFile], format: Format) -> None:
    for file in files:
        other = format_of(file.path)
        if other and other != format:
            raise InvalidInput(f"{file.path} is {other} by its name, but other files are {format}: set source.format")


def _check_folders(path: str, base: str | None) -> None:
    """Verify that folders of a file that become columns have a name and a value, encoded as UTF-8.

    Raises:
        InvalidInput: a folder lacks one of them, so that Spark refuses to read the file or reads another value.
    """
    for folder in filter(None, partition_of(path, base).split("/")):
        column, _, value = folder.partition("=")
        if not column or not value:
            example = f"{column}=__HIVE_DEFAULT_PARTITION__, which is null" if column else value or "folder"
            raise InvalidInput(
                f"{path}: the folder {folder!r} is read as a column, but has no {'value' if column else 'name'}: "
                f"rename it, for example to {example}"
            )
        try:
            unquote(folder, errors="strict")
        except UnicodeDecodeError:
            raise InvalidInput(
                f"{path}: the folder {folder!r} is read as a column, but its encoded bytes are not UTF-8: rename it, "
                "with %C3%A9 for é, for example"
            ) from None


def _list(path: str) -> Iterator[ListedFile]:
    if not is_remote(path):
        return list_local(path)
    return list_objects(path) if path.split("://", 1)[0].lower() in SCHEMES else list_file_system(path)


def _one_spelling(path: str, base: str | None) -> str:
    """Return the same text for all spellings of a path. Folders that become columns are part of it."""
    if is_remote(path):
        scheme, rest = path.split("://", 1)
        return f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest}"
    return f"{Path(path).resolve()}|{partition_of(path, base)}"


def _close_name(path: str) -> str:
    """Return the name of a file next to a local path that may be meant, as a suggestion; empty if there is none.

    A name with other numbers is no typing mistake: it is the file of another day or month.
    """
    if is_remote(path):
        return ""
    wanted = absolute_path(without_scheme(path))
    try:
        names = [each.name for each in islice(wanted.parent.iterdir(), _MOST_COMPARED)]
    except OSError:
        return ""
    others = (name for name in names if not name.startswith(("_", ".")))
    same = (name for name in others if name != wanted.name and _numbers(name) == _numbers(wanted.name))
    return suggestion(wanted.name, same)


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall("[0-9]+", name)]


def _searched_path(path: str) -> str:
    return path if is_remote(path) else str(absolute_path(without_scheme(path)))
