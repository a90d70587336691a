"""Prepare a run that a workflow starts: validate its pipeline, find its input, and make its request."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from temporalio import activity
from temporalio.client import Client

from activities.run.source_progress import run_with_progress
from lakehouse.arrivals.batch_store import BatchStore
from lakehouse.source_files import OnProgress, have_changed, identify_input, source_of_files
from runtime.pipeline.pipeline_input import find_input, pipeline_of_text
from runtime.run.start_run import StartOptions, describe_work, make_request
from runtime.run.starter import Starter
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.run_request import InputFile, RunInput
from sluice.contracts.starting import PreparedRun, StartPipelineInput
from sluice.errors import InputChanged, InvalidInput, InvalidPipeline
from sluice.pipeline.loading_order import partition_of, window_problem
from sluice.pipeline.loading_rules import require_allowed
from sluice.pipeline.model import Pipeline
from sluice.redaction import redacted
from sluice.settings import Settings

_MAX_PROBLEM = 2000


@dataclass(frozen=True)
class PrepareRunActivity:
    """The activity `prepare_run`.

    Needs Temporal's client, the settings, and the store of batches. It reads the source, so the worker must have access
    to its files.
    """

    client: Client
    settings: Settings
    batches: BatchStore

    @activity.defn(name="prepare_run")
    async def prepare_run(self, input: StartPipelineInput) -> PreparedRun:
        """Return the request of the run, or the problem with its pipeline or input."""
        try:
            work = partial(self._inspect, input)
            pipeline, run_input = await run_with_progress(work, activity.heartbeat, "inspecting the input")
        except (InvalidPipeline, InvalidInput) as error:
            compare = partial(self._have_changed, input)
            return PreparedRun(
                problem=redacted(str(error))[:_MAX_PROBLEM],
                is_input_changed=isinstance(error, InputChanged)
                or await run_with_progress(compare, activity.heartbeat, "comparing the input with its batch"),
            )
        refuses_overwritten = _refuses_overwritten(pipeline, input)
        starter = Starter(input.starter, Path(input.pipeline.folder))
        options = StartOptions(
            again=input.again,
            one_content_per_path=refuses_overwritten,
            loads_all_contents=pipeline.arrival is not None and not refuses_overwritten,
            resume=input.resume,
            order=LoadOrder(partition=partition_of(input.values), over_younger=input.over_younger),
            target=input.target,
            is_watched=False,
        )
        request, workflow_id = await make_request(self.client, self.settings, pipeline, run_input, starter, options)
        return PreparedRun(workflow_id=workflow_id, request=request, summary=describe_work(request))

    def _inspect(self, input: StartPipelineInput, _: OnProgress) -> tuple[Pipeline, RunInput]:
        """Return the pipeline and its input.

        Raises:
            InputChanged: files differ from those of their batch, and their new content has not settled.
            InvalidInput: the files cannot be loaded.
            InvalidPipeline: the pipeline is not valid.
        """
        pipeline = _with_files(pipeline_of_text(input.pipeline, input.values), input.files)
        _check_way(input, pipeline)
        if input.resume:
            return pipeline, RunInput(digest=input.input_digest, scope=pipeline.scope)
        run_input = find_input(pipeline)
        if input.expected and identify_input(self._batch(input), run_input.scope).digest != run_input.digest:
            raise InputChanged("files were overwritten after they were collected in a batch")
        return pipeline, run_input

    def _batch(self, input: StartPipelineInput) -> list[InputFile]:
        listed = self.batches.read_from(input.expected)
        return [InputFile(path=file.path, size=file.size, identity=file.identity) for file in listed]

    def _have_changed(self, input: StartPipelineInput, on_progress: OnProgress) -> bool:
        """Return True if the files of an input differ from those of its batch, which may explain its problem."""
        if not input.expected:
            return False
        try:
            source = _with_files(pipeline_of_text(input.pipeline, input.values), input.files).write.source
        except InvalidPipeline:
            return False
        return source is not None and have_changed(self._batch(input), source, on_progress)


def _refuses_overwritten(pipeline: Pipeline, input: StartPipelineInput) -> bool:
    """Return True if the run refuses a file whose path main contains with other content."""
    if pipeline.arrival is None or not input.expected or input.loads_overwritten:
        return False
    return pipeline.arrival.overwritten != "load"


def _check_way(input: StartPipelineInput, pipeline: Pipeline) -> None:
    """Refuse a run if its pipeline does not allow this way to start it.

    Raises:
        InvalidPipeline: the pipeline does not allow it, or requires partitions in order, which the starter does not
            guarantee.
    """
    if input.way is None or input.resume:
        return
    rule = require_allowed(input.way, pipeline.write, pipeline.tables)
    is_partition = input.way.startswith("backfill")
    if is_partition and rule.order == "one at a time" and not input.in_order:
        raise InvalidPipeline(f"{window_problem(pipeline.write)}: start the backfill by `backfill FILE`")


def _with_files(pipeline: Pipeline, files: list[str] | None) -> Pipeline:
    """Return the pipeline with these files as its source, or unchanged if `files` is None.

    Raises:
        InvalidPipeline: the pipeline has no source, so it loads no files.
    """
    if files is None:
        return pipeline
    if pipeline.write.source is None:
        raise InvalidPipeline(f"the pipeline {pipeline.name!r} has no `write.source`: it loads no files that arrive")
    source = source_of_files(pipeline.write.source, files)
    return pipeline.model_copy(update={"write": pipeline.write.model_copy(update={"source": source})})
