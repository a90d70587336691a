"""From a pipeline to a started run: its input found, its identity made, its like looked for."""

import getpass
import hashlib
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from lakehouse.source_files import absolute, expanded, find_files, identity
from runtime.find_run import result_of
from runtime.temporal_client import search_attributes_known
from sluice.contracts.activity_inputs import Restore, Resume
from sluice.contracts.run import REVISION, Policy, RunInput, RunRequest, RunResult
from sluice.errors import AlreadyPublished, InvalidPipeline
from sluice.pipeline.environment import pipeline_from_environment
from sluice.pipeline.file import read_pipeline
from sluice.pipeline.model import Pipeline
from sluice.settings import Settings
from workflows.search_attributes import PIPELINE, TABLE
from workflows.write_audit_publish import WriteAuditPublish


@dataclass(frozen=True)
class RunHandle:
    """A run that goes on, begun just now or by somebody before."""

    handle: WorkflowHandle[WriteAuditPublish, RunResult]
    attached: bool


def load_pipeline(file: Path | None, environment: Mapping[str, str]) -> Pipeline:
    """Read the pipeline of a file, or that of the environment, its paths made absolute.

    Raises:
        InvalidPipeline: it is not valid, or its job is not there.
    """
    pipeline = read_pipeline(file) if file else pipeline_from_environment(environment)
    write = pipeline.write
    if write.source:
        write = write.model_copy(update={"source": absolute(write.source)})
    if not write.built_in:
        job = expanded(write.job)
        if not job.is_file():
            raise InvalidPipeline(
                f"the job {write.job[:200]!r} is not there (looked for {str(job)[:200]}); the built-in one is `ingest`"
            )
        write = write.model_copy(update={"job": str(job)})
    return pipeline.model_copy(update={"write": write})


def find_input(pipeline: Pipeline) -> RunInput:
    """Find what a pipeline loads, and give it an identity.

    A job without a source says nothing of what it reads: then its own text and arguments stand for it.

    Raises:
        InvalidInput: there are no files, or one is empty or broken.
    """
    write = pipeline.write
    if write.source:
        return identity(find_files(write.source))
    text = "" if write.built_in else hashlib.sha256(Path(write.job).read_bytes()).hexdigest()
    options = [f"{key}={value}" for key, value in sorted(write.options.items())]
    return identity([], "\0".join([write.job, text, *write.args, *write.statements, *options]))


async def start(client: Client, settings: Settings, pipeline: Pipeline, found: RunInput, again: bool) -> RunHandle:
    """Start a run, or attach to the one that is under way with the same input.

    Raises:
        AlreadyPublished: the same was published before, and `again` is not asked for.
    """
    workflow_id = f"{pipeline.name}-{found.digest[:12]}"
    again = again or pipeline.write.traits.may_repeat
    if not again:
        await _refuse_twice(client, workflow_id)
    request = await _request(client, settings, pipeline, found, again=again)
    return await _started(client, settings, request, workflow_id, _input_words(found))


async def start_again(
    client: Client,
    settings: Settings,
    pipeline: Pipeline,
    found: RunInput | None,
    *,
    resume: Resume | None = None,
    restore: Restore | None = None,
) -> WorkflowHandle[WriteAuditPublish, RunResult]:
    """Start a run of rows that are there already: of a kept branch, or of main as it was.

    Args:
        found: the input that the rows came from, where that is known.
    """
    said = (resume or restore or pipeline).model_dump_json()
    digest = hashlib.sha256(said.encode()).hexdigest()
    request = await _request(
        client,
        settings,
        pipeline,
        found or RunInput(digest=digest),
        again=True,
        resume=resume,
        restore=restore,
    )
    words = f"take back {len(restore.runs)} runs" if restore else f"take up {resume.branch if resume else ''}"
    return (await _started(client, settings, request, f"{pipeline.name}-{digest[:12]}", words)).handle


async def _request(client: Client, settings: Settings, pipeline: Pipeline, found: RunInput, **more: Any) -> RunRequest:
    return RunRequest(
        pipeline=pipeline,
        input=found,
        starter=f"{getpass.getuser()}@{socket.gethostname()}",
        folder=str(Path.cwd()),
        policy=Policy(
            heartbeat_timeout=settings.sluice_heartbeat_timeout,
            open_timeout=settings.sluice_open_timeout,
            step_timeout=settings.sluice_step_timeout,
            spark_queue=settings.spark_queue,
            act_timeout=settings.sluice_act_timeout,
        ),
        search_attributes=await search_attributes_known(client),
        revision=REVISION,
        **more,
    )


async def _started(client: Client, settings: Settings, request: RunRequest, workflow_id: str, words: str) -> RunHandle:
    pipeline = request.pipeline
    attributes = TypedSearchAttributes(
        [SearchAttributePair(PIPELINE, pipeline.name), SearchAttributePair(TABLE, list(pipeline.tables))]
    )
    summary = f"{pipeline.name}: {', '.join(pipeline.tables)} from {words}"
    try:
        handle = await client.start_workflow(
            WriteAuditPublish.run,
            request,
            id=workflow_id,
            task_queue=settings.sluice_task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            search_attributes=attributes if request.search_attributes else TypedSearchAttributes.empty,
            static_summary=summary[:200],
            static_details=pipeline.description or None,
        )
        return RunHandle(handle, attached=False)
    except WorkflowAlreadyStartedError as running:
        return RunHandle(
            client.get_workflow_handle_for(WriteAuditPublish.run, workflow_id, run_id=running.run_id), True
        )


async def _refuse_twice(client: Client, workflow_id: str) -> None:
    try:
        latest = await client.get_workflow_handle(workflow_id).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return
        raise
    if latest.status != WorkflowExecutionStatus.COMPLETED:
        return
    result = await result_of(client, latest)
    if result and result.outcome == "published":
        raise AlreadyPublished(
            f"this input was published by {result.pipeline} already: run {workflow_id}, commit "
            f"{(result.main_after or '')[:12]} on main. To publish it again, say --again"
        )


def _input_words(found: RunInput) -> str:
    if not found.files:
        return "the lake"
    return f"{found.files} file{'s' if found.files > 1 else ''}, {found.bytes:,} bytes"
