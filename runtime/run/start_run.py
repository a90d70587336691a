"""Start a run, in the same way for the command line, schedules, triggers and a page.

`start_run` builds the request and starts the workflow, or attaches to the run of the same input that is under way. The
starter and the working directory are arguments. `runtime/pipeline/pipeline_input.py` reads the pipeline and finds its
input.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from runtime.run.run_request import read_request
from runtime.run.starter import Starter
from runtime.temporal_client import search_attributes_known
from sluice.approval.required import SignedStart
from sluice.approval.signatures import sign_start
from sluice.command_line import OVER_YOUNGER
from sluice.contracts.existing_rows import Restore, Resume
from sluice.contracts.load_order import ANY_ORDER, LoadOrder
from sluice.contracts.run import RunResult
from sluice.contracts.run_request import REVISION, Policy, RunInput, RunRequest, run_workflow_id
from sluice.errors import RunUnderWay
from sluice.lineage.identity import parse_parent
from sluice.pipeline.model import Pipeline
from sluice.publishing.release import release_digest
from sluice.secrets import read_secret
from sluice.setting_groups import ApprovalSettings, InstallationSettings
from sluice.settings import Settings
from workflows.search_attributes import (
    LONGEST_SUMMARY,
    PIPELINE,
    RELEASES_MEMO,
    ROLLS_BACK_MEMO,
    SUMMARY_MEMO,
    TABLE,
    indexed_tables,
)
from workflows.write_audit_publish import WriteAuditPublish

_MOST_ROLLED_BACK = 100
"""Maximum number of rolled back runs in a memo. Lists of runs do not show roll-backs of more runs."""


@dataclass(frozen=True)
class StartOptions:
    """Options of a start. By default the run writes the pipeline's input, unless that was published before."""

    again: bool = False
    """True if an input that was published before may be published again."""
    publish: bool = True
    """True to publish what passes the audit. Otherwise the run keeps nothing, and reports the audit."""
    one_content_per_path: bool = False
    """True to refuse a file if main has loaded other content from the same path."""
    loads_all_contents: bool = False
    """True to load a file even if other content of its path is loaded meanwhile: the pipeline of its landing zone wants
    each content."""
    resume: Resume | None = None
    """Quarantined branch whose rows are published; nothing is written. None for a run that writes."""
    restore: Restore | None = None
    """Earlier versions to restore tables to; nothing is written. None for a run that writes."""
    order: LoadOrder = ANY_ORDER
    """Age of the rows, as far as it is known."""
    target: str = ""
    """Branch to publish to; empty for main."""
    is_watched: bool = True
    """True if a person waits for an answer. Otherwise the run waits for services from its first step on."""
    guarantee: str = ""
    """Guarantee of its publish, if a worker was queried: the Web UI shows it from the start."""

    @property
    def checked_order(self) -> LoadOrder:
        """Age of the rows that the publish is checked against before the start; any age if there is nothing to check.

        A release checks the age itself, and a run that does not publish replaces no rows.
        """
        return ANY_ORDER if self.resume or not self.publish else self.order


@dataclass(frozen=True)
class RunHandle:
    """A run started now, or by an earlier start with the same input."""

    handle: WorkflowHandle[WriteAuditPublish, RunResult]
    attached: bool


async def start_run(
    client: Client,
    settings: Settings,
    pipeline: Pipeline,
    run_input: RunInput | None,
    starter: Starter,
    options: StartOptions = StartOptions(),  # immutable
) -> RunHandle:
    """Start a run, or attach to the run with the same input that is under way.

    The run itself decides if main contains the input, or files of it: main's history shows that, Temporal does not.

    Args:
        run_input: the input to load, or the input of resumed rows; None if it is not known.

    Raises:
        RunUnderWay: the run under way is of another version of the pipeline, or loads less.
    """
    request, workflow_id = await make_request(client, settings, pipeline, run_input, starter, options)
    signed = request.model_copy(update={"signed_start": _signed_start(request, workflow_id, settings.approval)})
    return await _start_or_attach(client, settings.installation, signed, workflow_id)


async def make_request(
    client: Client,
    settings: Settings,
    pipeline: Pipeline,
    run_input: RunInput | None,
    starter: Starter,
    options: StartOptions = StartOptions(),  # immutable
) -> tuple[RunRequest, str]:
    """Return the unsigned request that starts a run, and the workflow id of the run.

    Args:
        run_input: the input to load, or the input of resumed rows; None if it is not known.
    """
    pipeline = pipeline.model_copy(
        update={"schedule": None, "arrival": None}
    )  # a changed schedule or arrival does not change a run
    digest, workflow_id = _identity(pipeline, run_input, options)
    continued = options.resume or options.restore
    again = options.again or continued is not None or pipeline.write.traits.may_repeat
    request = RunRequest(
        pipeline=pipeline,
        input=run_input or RunInput(digest=digest),
        starter=starter.name,
        folder=str(starter.working_directory),
        resume=options.resume,
        restore=options.restore,
        again=again,
        one_content_per_path=options.one_content_per_path,
        loads_all_contents=options.loads_all_contents,
        publish=options.publish,
        order=options.order if options.publish else options.order.model_copy(update={"over_younger": True}),
        target=options.target,
        policy=_policy(settings, is_watched=options.is_watched),
        search_attributes=await search_attributes_known(client),
        guarantee=options.guarantee,
        revision=REVISION,
        lineage_parent=parse_parent(settings.lineage.openlineage_parent_id),
    )
    return request, workflow_id


def workflow_id_of(pipeline: Pipeline, run_input: RunInput | None, options: StartOptions) -> str:
    """Return the workflow id that a start has. Only one run of a workflow id is under way."""
    return _identity(pipeline, run_input, options)[1]


def _identity(pipeline: Pipeline, run_input: RunInput | None, options: StartOptions) -> tuple[str, str]:
    """Return the digest that identifies a start, and its workflow id."""
    continued = options.resume or options.restore
    if options.resume:  # without its statements, so that a release and a repair of the same rows are one run
        digest = release_digest(options.resume.branch, options.resume.head)
    else:
        digest = _digest(continued or pipeline) if continued or run_input is None else run_input.digest
    kind = "-backfill" if options.target else "" if options.publish else "-check"
    return digest, run_workflow_id(pipeline.name, digest, kind)


def _signed_start(request: RunRequest, workflow_id: str, settings: ApprovalSettings) -> SignedStart | None:
    """Return the starter's signature if there is a key. Its owner does not depend on environment variables."""
    key = read_secret(settings.sluice_approval_key_file, "SLUICE_APPROVAL_KEY_FILE")
    return sign_start(request.start_statement(workflow_id), datetime.now(timezone.utc), key) if key else None


def _digest(model: Resume | Restore | Pipeline) -> str:
    return hashlib.sha256(model.model_dump_json().encode()).hexdigest()


def _policy(settings: Settings, *, is_watched: bool) -> Policy:
    return Policy(
        heartbeat_timeout=settings.timeouts.sluice_heartbeat_timeout,
        open_timeout=settings.timeouts.sluice_open_timeout if is_watched else settings.timeouts.sluice_step_timeout,
        step_timeout=settings.timeouts.sluice_step_timeout,
        wait_timeout=settings.timeouts.sluice_wait_timeout,
        spark_queue=settings.installation.spark_queue,
        activity_timeout=settings.timeouts.sluice_activity_timeout,
    )


async def _start_or_attach(
    client: Client, settings: InstallationSettings, request: RunRequest, workflow_id: str
) -> RunHandle:
    pipeline = request.pipeline
    attributes = TypedSearchAttributes(
        [SearchAttributePair(PIPELINE, pipeline.name), SearchAttributePair(TABLE, indexed_tables(pipeline.tables))]
    )
    try:
        handle = await client.start_workflow(
            WriteAuditPublish.run,
            request,
            id=workflow_id,
            task_queue=settings.sluice_task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            search_attributes=attributes if request.search_attributes else TypedSearchAttributes.empty,
            memo=_memo(request),
            static_summary=f"{pipeline.name}: {describe_work(request)}"[:LONGEST_SUMMARY],
            static_details=pipeline.description or None,
        )
        return RunHandle(handle, attached=False)
    except WorkflowAlreadyStartedError as running:
        handle = client.get_workflow_handle_for(WriteAuditPublish.run, workflow_id, run_id=running.run_id)
        await _refuse_another_pipeline(client, handle, request)
        return RunHandle(handle, attached=True)


def _memo(request: RunRequest) -> dict[str, Any]:
    """Return what a list of runs needs to know of a run."""
    memo: dict[str, Any] = {SUMMARY_MEMO: describe_work(request)}
    if request.resume:
        memo[RELEASES_MEMO] = request.resume.run_id
    if request.restore:
        memo[ROLLS_BACK_MEMO] = request.restore.runs[:_MOST_ROLLED_BACK]
    return memo


async def _refuse_another_pipeline(
    client: Client, running: WorkflowHandle[WriteAuditPublish, RunResult], request: RunRequest
) -> None:
    """Check that the run under way does what this start requests.

    Otherwise its end would be mistaken for the end of the requested run.

    Raises:
        RunUnderWay: it does something else.
    """
    earlier = await read_request(client, running.id, running.run_id or "")
    if earlier is None:  # it ended meanwhile, and Temporal forgot it
        return
    if difference := _difference(earlier, request):
        raise RunUnderWay(
            f"run {running.id} of the same input is under way, and {difference}. Wait for its end "
            f"(`watch {running.id}`) or end it (`cancel {running.id}`), and start again"
        )


def _difference(earlier: RunRequest, request: RunRequest) -> str:
    """Return the difference between the run under way and the requested one; empty if both do the same."""
    stated = request.pipeline.model_copy(update={"publish": earlier.pipeline.publish})
    if earlier.pipeline.digest == stated.digest != request.pipeline.digest:
        return "its merge commit has another message or other metadata"
    if earlier.pipeline.digest != request.pipeline.digest:
        return f"it was started by {earlier.starter} from another version of the pipeline {request.pipeline.name!r}"
    if request.again and not earlier.again:
        return "it was started without --again"
    if request.order.over_younger and not earlier.order.over_younger:
        return f"it was started without {OVER_YOUNGER}"
    resumed, wanted = earlier.resume, request.resume
    if resumed != wanted and (resumed is None or wanted is None or resumed.statements != wanted.statements):
        return "it repairs other rows, or in another way"
    return ""


def describe_work(request: RunRequest) -> str:
    """Return a summary of a run's work, in one line for lists of runs: the tables that change, and their source."""
    return _describe_work(request)[:LONGEST_SUMMARY]


def _describe_work(request: RunRequest) -> str:
    tables = ", ".join(request.pipeline.tables)
    if request.restore:
        runs = len(request.restore.runs)
        return f"roll back {tables}, {runs} run{'s' * (runs > 1)}"
    if request.resume:
        return f"{tables} from {request.resume.branch}"
    loaded, only_checked = request.input, "" if request.publish else ", not to publish"
    files = f"{loaded.files} file{'s' * (loaded.files > 1)}, {loaded.bytes:,} bytes" if loaded.files else ""
    collected = ", for a backfill, not on main" if request.target else ""
    write = request.pipeline.write
    other = "tables of the lake" if write.built_in else f"the program {Path(write.job).name}"
    partition = f", for {loaded.scope.label}" if loaded.scope.label else ""
    return f"{tables} from {files or other}{partition}{only_checked}{collected}"
