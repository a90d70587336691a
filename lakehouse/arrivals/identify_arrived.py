"""Identify files that arrived by what they hold: those that are as they were listed, and can be loaded."""

from collections.abc import Sequence
from typing import NamedTuple

from lakehouse.source_files import OnProgress, find_files, is_remote
from lakehouse.source_files.arriving import is_in_state
from lakehouse.source_files.paths import source_of_files
from sluice.arrivals.batching import WaitingFile
from sluice.contracts.arrivals import ArrivedFile
from sluice.errors import InputChanged, InvalidInput, InvalidPipeline, NoFiles
from sluice.pipeline.source import Source

_NO_OBJECT = "the store has no object of this key: it was deleted just now, or its key ends in a slash"


class RefusedFile(NamedTuple):
    """A file that no run can load as it is."""

    path: str
    reason: str
    is_reported: bool = True
    """Whether people are told."""


def identify_arrived(
    source: Source, files: Sequence[WaitingFile], on_progress: OnProgress
) -> tuple[list[ArrivedFile], list[RefusedFile]]:
    """Identify files; return those that can be loaded, in their order, and those that cannot.

    One that changes or vanishes meanwhile is neither: it waits, and the next look shows what became of it.
    """
    try:
        return _identify(source, files, on_progress), []
    except (InvalidInput, InvalidPipeline):
        pass
    identified: list[ArrivedFile] = []
    refused: list[RefusedFile] = []
    for file in files:
        try:
            identified += _identify(source, [file], on_progress)
        except InputChanged:
            continue
        except NoFiles:
            if is_remote(file.path):  # a listing of a store shows no slash at the end of a key
                refused.append(RefusedFile(file.path, _NO_OBJECT, is_reported=False))
        except (InvalidInput, InvalidPipeline) as error:
            refused.append(RefusedFile(file.path, str(error)))
    return identified, refused


def _identify(source: Source, files: Sequence[WaitingFile], on_progress: OnProgress) -> list[ArrivedFile]:
    """Identify files, in their order. One that has become a folder is none of the files that are in there.

    Raises:
        InputChanged: one is not as it was listed: it may still be written.
        InvalidInput: one cannot be loaded, or is not there.
    """
    listed = find_files(source_of_files(source, [file.path for file in files]), on_progress)
    by_path = {file.path: file for file in listed}
    for file in files:
        if file.path not in by_path:
            raise NoFiles(f"{file.path} is not there")
        if file.state and not is_in_state(file.path, file.state):
            raise InputChanged(f"{file.path} changed since it was listed")
    ordered = [by_path[file.path] for file in files]
    return [ArrivedFile(path=file.path, size=file.size, identity=file.identity) for file in ordered]
