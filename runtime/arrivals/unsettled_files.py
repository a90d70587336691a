"""Files of a landing zone that is not deployed, for a manual start: the complete ones, and the others."""

import time
from pathlib import Path

from lakehouse.source_files import (
    ArrivingFile,
    absolute_path,
    is_remote,
    list_arriving,
    source_of_files,
    without_scheme,
)
from sluice.errors import InvalidPipeline
from sluice.pipeline.model import Pipeline

_MOST = 2000
"""Maximum number of files in one start, since the request of the run contains their paths."""


def list_for_start(pipeline: Pipeline) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the paths of the files that can be loaded, and the other paths with the reason.

    Raises:
        InvalidInput: the folder or store cannot be listed.
        InvalidPipeline: there are too many files for one run.
    """
    arrival = pipeline.arrival
    assert arrival, "only a pipeline with a landing zone is listed like this"
    chosen: list[str] = []
    left_out: list[tuple[str, str]] = []
    for file in list_arriving(arrival.from_, follow_links=arrival.follow_links):
        if file.path.rsplit("/", 1)[-1] == arrival.manifest:
            continue
        if problem := file.refused or file.ignored or _why_unsettled(file, arrival.settle):
            left_out.append((file.path, problem))
        else:
            chosen.append(file.path)
    if len(chosen) > _MOST:
        raise InvalidPipeline(
            f"{arrival.from_} has {len(chosen):,} files, and one start loads {_MOST:,} at most: after `deploy`, "
            "the landing zone loads them in batches"
        )
    return sorted(chosen), sorted(left_out)


def absolute_name(file: str) -> str:
    """Return the path of a named file as its landing zone lists it.

    Raises:
        InvalidInput: no file can have such a path.
    """
    return file if is_remote(file) else str(absolute_path(without_scheme(file)))


def with_files(pipeline: Pipeline, paths: list[str]) -> Pipeline:
    """Return a pipeline that loads only these files of its landing zone."""
    assert pipeline.write.source, "a pipeline with a landing zone has a source"
    source = source_of_files(pipeline.write.source, paths)
    return pipeline.model_copy(update={"write": pipeline.write.model_copy(update={"source": source})})


def _why_unsettled(file: ArrivingFile, settle: float) -> str:
    """Return why a local file may be incomplete: it changed just now. An object in a store is always complete."""
    if is_remote(file.path):
        return ""
    try:
        age = time.time() - Path(file.path).stat().st_mtime
    except OSError:
        return "it was removed just now"
    return f"it changed {age:.0f} s ago, and settles for {settle - age:.0f} s more" if 0 <= age < settle else ""
