"""Identify arrived files by their content, and separate those that cannot be loaded."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lakehouse.source_files import OnProgress, find_files, is_remote
from lakehouse.source_files.arriving import is_in_state
from lakehouse.source_files.paths import source_of_files
from sluice.arrivals.batching import WaitingFile
from sluice.contracts.arrivals import ArrivedFile
from sluice.errors import InputChanged, InvalidInput, InvalidPipeline, NoFiles
from sluice.pipeline.source import Source

_AT_ONCE, _BYTES_AT_ONCE = 400, 1024**3
_NO_OBJECT = "the store has no object of this key: it was deleted just now, or its key ends in a slash"


class RefusedFile(NamedTuple):
    """A file that no run can load in its present state."""

    path: str
    reason: str
    is_reported: bool = True
    """True if people are notified."""


def groups_to_read(files: Sequence[WaitingFile]) -> Iterator[list[WaitingFile]]:
    """Yield files in groups, limited by number and bytes, to be read at a time."""
    group = list[WaitingFile]()
    for file in files:
        if group and (len(group) == _AT_ONCE or sum(each.size for each in group) >= _BYTES_AT_ONCE):
            yield group
            group = []
        group.append(file)
    if group:
        yield group


def identify_arrived(
    source: Source, files: Sequence[WaitingFile], on_progress: OnProgress
) -> tuple[list[ArrivedFile], list[RefusedFile]]:
    """Identify files; return those that can be loaded, in their order, and those that cannot.

    A file that changes or disappears meanwhile is in neither list: it waits, and the next listing shows its new state.
    """
    try:
        by_path = _find(source, files, on_progress)
    except (InvalidInput, InvalidPipeline):  # an error of one file: identify the files one by one
        by_path = {}
    identified: list[ArrivedFile] = []
    refused: list[RefusedFile] = []
    for number, file in enumerate(files, 1):
        try:
            arrived = by_path.get(file.path)
            if not arrived:
                on_progress(f"identified {number:,} files")
                arrived = _find_one(source, file, on_progress)
            if is_in_state(file.path, file.state):
                identified.append(arrived)
        except InputChanged:
            continue
        except NoFiles:
            if is_remote(file.path):  # a listing of a store hides a slash at the end of a key
                refused.append(RefusedFile(file.path, _NO_OBJECT, is_reported=False))
        except (InvalidInput, InvalidPipeline) as error:
            if is_in_state(file.path, file.state):  # a file that is being overwritten may be empty or cut off
                refused.append(RefusedFile(file.path, str(error)))
    return identified, refused


def identity_of(source: Source, file: WaitingFile, on_progress: OnProgress) -> str:
    """Return the identity of a file; an empty string if it cannot be loaded, or changes meanwhile."""
    identified, _ = identify_arrived(source, [file], on_progress)
    return identified[0].identity if identified else ""


def _find(source: Source, files: Sequence[WaitingFile], on_progress: OnProgress) -> dict[str, ArrivedFile]:
    """Identify files; return them by path. A link to another one of them is left out.

    Raises:
        InvalidInput: a file cannot be loaded, or does not exist.
    """
    listed = find_files(source_of_files(source, [file.path for file in files]), on_progress)
    return {file.path: ArrivedFile(path=file.path, size=file.size, identity=file.identity) for file in listed}


def _find_one(source: Source, file: WaitingFile, on_progress: OnProgress) -> ArrivedFile:
    """Identify one file.

    Raises:
        NoFiles: it does not exist, or is a folder now.
        InvalidInput: it cannot be loaded.
    """
    by_path = _find(source, [file], on_progress)
    if file.path not in by_path:
        raise NoFiles(f"{file.path} does not exist")
    return by_path[file.path]
