"""The pipeline files of a deploy: all are read before anything is applied, and every error is named."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from sluice.errors import InvalidPipeline
from sluice.pipeline.file import parse_pipeline
from sluice.pipeline.model import Pipeline
from sluice.pipeline.placeholders import partition_values, time_values

_ANY_TIME = datetime(2018, 1, 31, tzinfo=timezone.utc)
_SAMPLE = partition_values("2018-01-31") | time_values(_ANY_TIME)
"""Values of every placeholder, by which a file is validated without a run."""


@dataclass(frozen=True)
class PipelineFile:
    """A pipeline file that was read, and is valid."""

    name: str
    """Its path in the folder that is deployed."""
    text: str
    pipeline: Pipeline
    """With sample values where the file has placeholders."""


def read_files(texts: Mapping[str, str], folder: str = "", problems: Sequence[str] = ()) -> list[PipelineFile]:
    """Return the pipelines of files, by name.

    Args:
        texts: the text of each file, by its path in the folder.
        folder: the folder, as messages call it, with a slash at its end.
        problems: those of files that could not be read.

    Raises:
        InvalidPipeline: some are not valid, or two have one name; the message has every error.
    """
    files: list[PipelineFile] = []
    wrong = list(problems)
    for name, text in texts.items():
        try:
            files.append(PipelineFile(name, text, _parse(text, folder + name)))
        except InvalidPipeline as error:
            wrong.append(str(error))
    by_name: dict[str, str] = {}
    for file in files:
        other = by_name.setdefault(file.pipeline.name, file.name)
        if other != file.name:
            where = f"{folder}{file.name}"
            wrong.append(f"{where}: the pipeline {file.pipeline.name!r} is in {folder}{other}, too: a name is for one")
    if wrong:
        raise InvalidPipeline("\n".join(wrong))
    return files


def _parse(text: str, name: str) -> Pipeline:
    """Return a pipeline; one with a schedule has values for the placeholders of a schedule alone."""
    pipeline = parse_pipeline(text, name, _SAMPLE)
    if pipeline.arrival is not None:  # a file that arrives has neither a partition nor a time
        parse_pipeline(text, name)
    if pipeline.schedule is None:
        return pipeline
    return parse_pipeline(text, name, time_values(_ANY_TIME.astimezone(ZoneInfo(pipeline.schedule.zone))))
