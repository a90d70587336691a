"""Read all pipeline files of a deploy before anything is applied, and report every error."""

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
"""Sample values of every placeholder, used to validate a file without a run."""


@dataclass(frozen=True)
class PipelineFile:
    """A valid pipeline file."""

    name: str
    """Path in the deployed folder."""
    text: str
    pipeline: Pipeline
    """The pipeline, with sample values if the file has placeholders."""


def read_files(texts: Mapping[str, str], folder: str = "", problems: Sequence[str] = ()) -> list[PipelineFile]:
    """Return the pipelines of files, in the order of the files.

    Args:
        texts: the text of each file, by its path in the folder.
        folder: the folder in messages, with a slash at its end.
        problems: the errors of files that could not be read.

    Raises:
        InvalidPipeline: some files are not valid, or two pipelines have the same name. The message has every error.
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
            wrong.append(f"{where}: the pipeline {file.pipeline.name!r} is in {folder}{other}, too: rename one")
    if wrong:
        raise InvalidPipeline("\n".join(wrong))
    return files


def _parse(text: str, name: str) -> Pipeline:
    """Parse a pipeline. If it has a schedule, only the placeholders of a schedule have values."""
    pipeline = parse_pipeline(text, name, _SAMPLE)
    if pipeline.arrival is not None:  # an arriving file has neither a partition nor a time
        parse_pipeline(text, name)
    if pipeline.schedule is None:
        return pipeline
    return parse_pipeline(text, name, time_values(_ANY_TIME.astimezone(ZoneInfo(pipeline.schedule.zone))))
