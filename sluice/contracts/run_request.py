"""The request that starts a run, its input, and its limits."""

import hashlib

from pydantic import Field

from sluice.approval.required import SignedStart, StartStatement
from sluice.base_model import WireMessage
from sluice.contracts.existing_rows import Restore, Resume
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.references import LineageParent
from sluice.pipeline.model import Pipeline
from sluice.pipeline.scope import NO_SCOPE, LoadScope

REVISION = 1
"""Newest revision of the workflow. A change of the order of its activity calls increments it; see ADR 20."""


_ID_DIGITS = 12
"""Number of digits of the input digest in a workflow id."""


def run_workflow_id(pipeline: str, digest: str, kind: str = "") -> str:
    """Return the workflow id of the run of a pipeline with an input of this digest."""
    return f"{pipeline}-{digest[:_ID_DIGITS]}{kind}"


class InputFile(WireMessage):
    """A file to load: its path, its size in bytes, and its identity."""

    path: str
    size: int
    identity: str
    """SHA-256 of its content, or the checksum that its store keeps; see ADR 25.

    Files with one identity contain the same rows, whatever their names. If folders are columns, their values are part
    of the identity.
    """


class RunInput(WireMessage):
    """Files that a run loads, and their identity."""

    digest: str
    """SHA-256 over the identities of all files and the scope. With the pipeline's name, it identifies the run."""
    files: int = 0
    bytes: int = 0
    scope: LoadScope = NO_SCOPE
    """Partition and scheduled time that decide what the run writes."""


class Policy(WireMessage):
    """Time-outs of a run, in seconds, and its other limits. `workflows/activity_calls.py` applies them."""

    heartbeat_timeout: float = 15.0
    """Time without a heartbeat after which Temporal considers a worker dead."""
    open_timeout: float = 60.0
    """Time for which the catalog may be unavailable when a run begins, before the run gives up.

    For a run that no person started, it has the value of `step_timeout`.
    """
    step_timeout: float = 24 * 3600.0
    """Time for which a service may be unavailable in the middle of a run, and maximum duration of a scan."""
    wait_timeout: float = 24 * 3600.0
    """Time for which lost attempts are repeated, and maximum wait of a job for Spark."""
    max_rewrites: int = Field(default=5, ge=0)
    """Maximum number of rewrites of a run after conflicts with main."""
    max_rebases: int = Field(default=100, ge=0)
    """Maximum number of rebases of a run onto a newer main."""
    spark_queue: str = ""
    """Task queue of activities that run Spark; empty means the task queue of the run with `-spark` appended."""
    activity_timeout: float = 180.0
    """Maximum duration of one try of an activity on the catalog, before another worker tries."""
    registration_wait: float = 10.0
    """Time that a published run waits for its registrations, which continue without it."""
    merge_queue: bool = True
    """True if a run waits for the merge slot of a table after its second conflict; `bench/merge_queue.py` compares."""


class RunRequest(WireMessage):
    """Input of the workflow: a pipeline, the input to load, and options."""

    pipeline: Pipeline
    input: RunInput
    starter: str
    asked_by: str = ""
    """Person for whom a backfill started the run; empty if the starter requested it."""
    folder: str = ""
    """Working directory in which the run was started."""
    resume: Resume | None = None
    restore: Restore | None = None
    again: bool = False
    """True if an input that was published before may be published again."""
    publish: bool = True
    """True if the run publishes data that passes the audit. Otherwise it ends `checked`, and never keeps its data."""
    one_content_per_path: bool = False
    """True if the run refuses a file when main contains other content of its path."""
    loads_all_contents: bool = False
    """True if the pipeline of its landing zone says that each content of a path is loaded."""
    order: LoadOrder = LoadOrder()
    """Age of its rows, so that they do not replace younger ones."""
    target: str = ""
    """Branch that the run publishes to, if it is not main: a backfill collects its partitions there."""
    policy: Policy = Field(default_factory=Policy)
    search_attributes: bool = False
    """True if the server has Sluice's search attributes."""
    guarantee: str = ""
    """Guarantee of the publish, as a worker stated it before the start; empty if no worker did."""
    revision: int = Field(default=1, ge=1)
    """Revision of the workflow that the run follows to its end, on every worker.

    `start_run` names the newest. A request that names none follows the first, so that a later replay takes the same
    path.
    """
    signed_start: SignedStart | None = None
    """Signature of the person who started the run, if this person has a key."""
    lineage_parent: LineageParent | None = None
    """OpenLineage run that started this one, if it is known."""

    def start_statement(self, workflow_id: str) -> StartStatement:
        """Return the statement about the start of this run that its starter signs."""
        continued = self.resume or self.restore
        return StartStatement(
            workflow_id=workflow_id,
            pipeline_digest=self.pipeline.digest,
            input_digest=self.input.digest,
            continues=hashlib.sha256(continued.model_dump_json().encode()).hexdigest() if continued else "",
        )
