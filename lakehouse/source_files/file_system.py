"""Source files in other file systems that Arrow supports, such as HDFS, identified by their content alone."""

from collections.abc import Iterator
from typing import Any

from lakehouse.source_files.listing import CHUNK, ListedFile, changed, empty, unreadable, vanished
from lakehouse.source_files.paths import has_wildcards, is_hidden, path_matches
from sluice.errors import InvalidInput


def list_file_system(path: str) -> Iterator[ListedFile]:
    """List a file, all files of a folder, or the files and folders that match a pattern.

    Raises:
        InvalidInput: Arrow does not support the file system, or cannot read it.
    """
    from pyarrow import fs  # noqa: PLC0415  # slow to import, and most sources do not need it

    parts = path.split("/")  # scheme, empty, host, path
    fixed = next((number for number, part in enumerate(parts) if number > 2 and has_wildcards(part)), len(parts))
    start = "/".join(parts[:fixed])
    try:
        system, root = fs.FileSystem.from_uri(start)
        info = system.get_file_info(root)
        if info.type.name == "NotFound":
            return
        listed = [info] if info.is_file else system.get_file_info(fs.FileSelector(root, recursive=True))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    for each in listed:
        below = each.path.removeprefix(root).strip("/")
        if each.is_file and path_matches(below.split("/") if below else [], parts[fixed:]):
            if is_hidden(each.base_name):
                raise InvalidInput(f"{start}/{below} would be ignored by Spark because of its name: rename it")
            yield _describe(system, f"{start}/{below}".rstrip("/"), each)


def describe_in_file_system(path: str) -> ListedFile:
    """Return one file.

    Raises:
        InvalidInput: it does not exist.
    """
    from pyarrow import fs  # noqa: PLC0415

    try:
        system, root = fs.FileSystem.from_uri(path)
        info = system.get_file_info(root)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if not info.is_file:
        raise vanished(path)
    return _describe(system, path, info)


def _describe(system: Any, path: str, info: Any) -> ListedFile:
    if not info.size:
        raise empty(path)

    def state() -> tuple[object, ...]:
        now = system.get_file_info(info.path)
        return now.type.name, now.size, now.mtime_ns

    def read() -> Iterator[bytes]:
        before = state()
        try:
            with system.open_input_stream(info.path, compression=None) as file:
                while piece := file.read(CHUNK):
                    yield piece
        except FileNotFoundError:
            raise vanished(path) from None
        except OSError as error:
            raise unreadable(path, error) from error
        if state() != before:
            raise changed(path)

    def read_tail(size: int) -> bytes:
        try:
            with system.open_input_file(info.path) as file:
                file.seek(info.size - size)
                return bytes(file.read(size))
        except FileNotFoundError:
            raise vanished(path) from None
        except OSError as error:
            raise unreadable(path, error) from error

    return ListedFile(path, info.size, read=read, read_tail=read_tail, state=state)
