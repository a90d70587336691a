"""Starting a run: the one way for the command line, schedules, triggers and a page.

`load_pipeline` and `find_input` need no server; `start_run` builds the request and starts the workflow, or attaches
to the run of the same input that is under way. Who starts it, and the working directory, are arguments.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from lakehouse.source_files import absolute_path, absolute_source, find_files, identify_input
from runtime.find_run import read_result
from runtime.temporal_client import search_attributes_known
from sluice.contracts.existing_rows import Restore, Resume
from sluice.contracts.run import REVISION, Policy, RunInput, RunRequest, RunResult
from sluice.errors import AlreadyPublished, InvalidPipeline
from sluice.pipeline.environment import pipeline_from_environment
from sluice.pipeline.file import read_pipeline
from sluice.pipeline.model import Pipeline
from sluice.settings import Settings
from workflows.search_attributes import PIPELINE, TABLE
from workflows.write_audit_publish import WriteAuditPublish

_ID_DIGITS = 12
"""How many digits of the input's digest are part of a workflow id."""


@dataclass(frozen=True)
class Starter:
    """Who starts a run, and where: a program of the user's runs in that folder, if the worker has it."""

    name: str
    working_directory: Path


@dataclass(frozen=True)
class StartOptions:
    """What kind of run is started. By default it writes the pipeline's input, unless that was published before."""

    again: bool = False
    """Whether an input that was published before may be published again."""
    resume: Resume | None = None
    """Publish rows that a quarantined branch holds, instead of writing."""
    restore: Restore | None = None
    """Restore tables to earlier versions, instead of writing."""


@dataclass(frozen=True)
class RunHandle:
    """A run that was started now, or by an earlier start with the same input."""

    handle: WorkflowHandle[WriteAuditPublish, RunResult]
    attached: bool


def load_pipeline(file: Path | None, environment: Mapping[str, str], working_directory: Path) -> Pipeline:
    """Read the pipeline of a file, or that of the environment; make its paths absolute.

    Raises:
        InvalidPipeline: it is not valid, or its job does not exist.
    """
    pipeline = read_pipeline(file) if file else pipeline_from_environment(environment)
    return resolve_paths(pipeline, working_directory)


def resolve_paths(pipeline: Pipeline, working_directory: Path) -> Pipeline:
    """Return a pipeline whose local paths are absolute, since a worker may run in another folder.

    Raises:
        InvalidPipeline: its job does not exist.
    """
    write = pipeline.write
    if write.source:
        write = write.model_copy(update={"source": absolute_source(write.source, working_directory)})
    if not write.built_in:
        job = absolute_path(write.job, working_directory)
        if not job.is_file():
            raise InvalidPipeline(
                f"the job {write.job[:200]!r} does not exist (looked for {str(job)[:200]}); the built-in one is "
                "`ingest`"
            )
        write = write.model_copy(update={"job": str(job)})
    return pipeline.model_copy(update={"write": write})


def find_input(pipeline: Pipeline) -> RunInput:
    """Find the files that a pipeline loads, and return their identity.

    A job without a source does not say what it reads: then its program and arguments are the identity.

    Raises:
        InvalidInput: there are no files, or one is empty or broken.
    """
    write = pipeline.write
    if write.source:
        return identify_input(find_files(write.source))
    program = "" if write.built_in else hashlib.sha256(Path(write.job).read_bytes()).hexdigest()
    options = [f"{key}={value}" for key, value in sorted(write.options.items())]
    return identify_input([], "\0".join([write.job, program, *write.args, *write.statements, *options]))


async def start_run(
    client: Client,
    settings: Settings,
    pipeline: Pipeline,
    run_input: RunInput | None,
    starter: Starter,
    options: StartOptions = StartOptions(),  # immutable
) -> RunHandle:
    """Start a run, or attach to the one with the same input that is under way.

    Args:
        run_input: what is loaded, or where resumed rows came from; None where that is not known.

    Raises:
        AlreadyPublished: the same input was published before, and `options.again` is not set.
    """
    continued = options.resume or options.restore
    digest = _digest(continued or pipeline) if continued or run_input is None else run_input.digest
    workflow_id = f"{pipeline.name}-{digest[:_ID_DIGITS]}"
    again = options.again or continued is not None or pipeline.write.traits.may_repeat
    if not again:
        await _refuse_published_input(client, workflow_id)
    request = RunRequest(
        pipeline=pipeline,
        input=run_input or RunInput(digest=digest),
        starter=starter.name,
        folder=str(starter.working_directory),
        resume=options.resume,
        restore=options.restore,
        again=again,
        policy=_policy(settings),
        search_attributes=await search_attributes_known(client),
        revision=REVISION,
    )
    return await _start_or_attach(client, settings, request, workflow_id)


def _digest(model: Resume | Restore | Pipeline) -> str:
    return hashlib.sha256(model.model_dump_json().encode()).hexdigest()


def _policy(settings: Settings) -> Policy:
    return Policy(
        heartbeat_timeout=settings.sluice_heartbeat_timeout,
        open_timeout=settings.sluice_open_timeout,
        step_timeout=settings.sluice_step_timeout,
        spark_queue=settings.spark_queue,
        activity_timeout=settings.sluice_activity_timeout,
    )


async def _start_or_attach(client: Client, settings: Settings, request: RunRequest, workflow_id: str) -> RunHandle:
    pipeline = request.pipeline
    attributes = TypedSearchAttributes(
        [SearchAttributePair(PIPELINE, pipeline.name), SearchAttributePair(TABLE, list(pipeline.tables))]
    )
    try:
        handle = await client.start_workflow(
            WriteAuditPublish.run,
            request,
            id=workflow_id,
            task_queue=settings.sluice_task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            search_attributes=attributes if request.search_attributes else TypedSearchAttributes.empty,
            static_summary=_summary(request)[:200],
            static_details=pipeline.description or None,
        )
        return RunHandle(handle, attached=False)
    except WorkflowAlreadyStartedError as running:
        return RunHandle(
            client.get_workflow_handle_for(WriteAuditPublish.run, workflow_id, run_id=running.run_id), attached=True
        )


async def _refuse_published_input(client: Client, workflow_id: str) -> None:
    try:
        latest = await client.get_workflow_handle(workflow_id).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return
        raise
    if latest.status != WorkflowExecutionStatus.COMPLETED:
        return
    result = await read_result(client, latest)
    if result and result.outcome == "published":
        raise AlreadyPublished(
            f"this input was already published by {result.pipeline}: run {workflow_id}, commit "
            f"{(result.main_after or '')[:12]} on main. To publish it again, add --again"
        )


def _summary(request: RunRequest) -> str:
    """Return what the Web UI shows beside the run's name."""
    tables = ", ".join(request.pipeline.tables)
    if request.restore:
        return f"{request.pipeline.name}: roll back {tables}, {len(request.restore.runs)} runs"
    if request.resume:
        return f"{request.pipeline.name}: {tables} from {request.resume.branch}"
    loaded = request.input
    files = f"{loaded.files} file{'s' if loaded.files > 1 else ''}, {loaded.bytes:,} bytes" if loaded.files else ""
    return f"{request.pipeline.name}: {tables} from {files or 'tables of the lake'}"
