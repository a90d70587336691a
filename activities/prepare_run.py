"""Prepare a run that no person starts: validate its pipeline, find its input, make the request of the run."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from temporalio import activity
from temporalio.client import Client

from activities.errors import as_application_error
from activities.source_progress import run_with_progress
from lakehouse.source_files import OnProgress, source_of_files
from lakehouse.source_files.arriving import file_exists
from runtime.pipeline_input import find_input, pipeline_of_text
from runtime.start_run import Starter, StartOptions, describe_work, make_request
from sluice.contracts.run import RunInput
from sluice.contracts.starting import PreparedRun, StartPipelineInput
from sluice.errors import InputChanged, InvalidInput, InvalidPipeline
from sluice.pipeline.model import Pipeline
from sluice.redaction import redacted
from sluice.settings import Settings

_MAX_PROBLEM = 2000


@dataclass(frozen=True)
class PrepareRunActivity:
    """The activity `prepare_run`. Needs Temporal's client. It reads the source: the machine must reach its files."""

    client: Client
    settings: Settings

    @activity.defn(name="prepare_run")
    async def prepare_run(self, input: StartPipelineInput) -> PreparedRun:
        """Return the request of the run, or what is wrong with the pipeline or its input."""
        with as_application_error():
            try:
                work = partial(_inspect, input)
                pipeline, run_input = await run_with_progress(work, activity.heartbeat, "looking at the input")
            except (InvalidPipeline, InvalidInput) as error:
                return PreparedRun(
                    problem=redacted(str(error))[:_MAX_PROBLEM],
                    is_input_changed=isinstance(error, InputChanged) or not _all_exist(input.files or []),
                )
            starter = Starter(input.starter, Path(input.pipeline.folder))
            options = StartOptions(again=input.again, resume=input.resume, target=input.target)
            request, workflow_id = await make_request(self.client, self.settings, pipeline, run_input, starter, options)
            return PreparedRun(workflow_id=workflow_id, request=request, summary=describe_work(request))


def _inspect(input: StartPipelineInput, _: OnProgress) -> tuple[Pipeline, RunInput]:
    pipeline = _with_files(pipeline_of_text(input.pipeline, input.values), input.files)
    if input.resume:
        return pipeline, RunInput(digest=input.input_digest)
    return pipeline, find_input(pipeline)


def _all_exist(paths: list[str]) -> bool:
    return all(file_exists(path) for path in paths)


def _with_files(pipeline: Pipeline, files: list[str] | None) -> Pipeline:
    """Return a pipeline that loads these files; None changes nothing.

    Raises:
        InvalidPipeline: it has no source, so that it loads no files.
    """
    if files is None:
        return pipeline
    if pipeline.write.source is None:
        raise InvalidPipeline(f"the pipeline {pipeline.name!r} has no `write.source`: it loads no files that arrive")
    source = source_of_files(pipeline.write.source, files)
    return pipeline.model_copy(update={"write": pipeline.write.model_copy(update={"source": source})})
