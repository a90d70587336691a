"""Messages of `StartPipeline`, which starts a run without a person and waits for its end."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.causes import Cause
from sluice.contracts.existing_rows import Resume
from sluice.contracts.run import Outcome
from sluice.contracts.run_request import RunRequest
from sluice.pipeline.loading_rules import Way

RUN_ENDED_SIGNAL = "run_ended"
"""Signal that informs a workflow that a run which it requested has ended."""


class PipelineText(WireMessage):
    """A pipeline file with its text, since a worker may not have the file."""

    name: str
    """Path of the file, as messages show it."""
    text: str
    folder: str
    """Working directory against which its relative paths are resolved."""


class StartPipelineInput(WireMessage):
    """Input of the workflow `StartPipeline`."""

    pipeline: PipelineText
    starter: str
    """Starter of the run, as reports name it: `schedule nightly`, `backfill rides-2018`, `arrivals of rides`."""
    asked_by: str = ""
    """Person who requested the run, whom four eyes exclude from its approvals; empty if there is none."""
    values: dict[str, str] = Field(default_factory=dict)
    """Values of the placeholders in the file."""
    files: list[str] | None = None
    """Files to load, instead of those that the pipeline's source lists."""
    expected: str = ""
    """Location in the lake of the list of these files as they were when chosen: a batch of a landing zone."""
    loads_overwritten: bool = False
    """True if these files may have other content than main has for their paths, because a person named them."""
    again: bool = False
    """True if an input that was published before may be published again."""
    way: Way | None = None
    """Way of starting the run. A pipeline that does not allow it is refused before the run. None in older histories."""
    in_order: bool = False
    """True if the starter keeps the order of partitions."""
    over_younger: bool = False
    """True if rows of this run may replace younger rows."""
    target: str = ""
    """Branch that the run publishes to, if it is not main."""
    resume: Resume | None = None
    """Rows of a quarantined branch to publish, instead of a write."""
    input_digest: str = ""
    """Identity of the input that these rows were loaded from."""
    key: str = ""
    """Name of this run in the requesting workflow: a partition, or a batch of files."""
    report_to: str = ""
    """Id of the workflow that gets the signal `run_ended`; empty for none."""
    since: str = ""
    """Time when the run was requested, in ISO 8601; empty if each start is a run of its own.

    A run that an earlier start of this workflow id began, and that ended after this time, is the requested run. It is
    not run twice.
    """


class PreparedRun(WireMessage):
    """Result of `prepare_run`: the request of the run, or the reason why it cannot be started."""

    workflow_id: str = ""
    request: RunRequest | None = None
    summary: str = ""
    problem: str = ""
    is_input_changed: bool = False
    """True if the problem is that a file was replaced, changed or removed."""


class FindRunEndInput(WireMessage):
    """Input of `find_run_end`, and result of `cancel_started_runs`: a run that is under way or has ended."""

    workflow_id: str
    run_id: str = ""
    """Run id; empty means the latest run of this workflow id."""


class StartedBy(WireMessage):
    """Input of `cancel_started_runs`: the workflow whose started runs are to be cancelled."""

    workflow_id: str
    since: str = ""
    """Time in ISO 8601. Runs that ended after it are returned, too; empty returns no ended run."""


class EndedRun(WireMessage):
    """End of a run that `StartPipeline` started, or the reason why it started none."""

    key: str = ""
    workflow_id: str = ""
    run_id: str = ""
    outcome: Outcome | Literal["refused"]
    """Outcome of the run. `refused` means that the pipeline or its input is not valid, so that no run was started."""
    cause: Cause | None = None
    reason: str = ""
    branch: str = ""
    """Quarantined branch."""
    rows_added: int = 0
    started_by: str = ""
    """Workflow that started the run and reports its end; empty for a run that a person started."""

    @property
    def is_done(self) -> bool:
        """True if main has the input now."""
        return self.outcome in ("published", "skipped") or self.cause in ("already_published", "nothing_to_do")


class ReportedStart(WireMessage):
    """A start that a program requested, as the API of the page returns it."""

    id: str
    """Workflow id of the start."""
    workflow_id: str = ""
    """Workflow id of the run; empty while there is none."""
    run_id: str = ""
    """Run id of the run; empty while there is none."""
    outcome: Outcome | Literal["refused"] | None = None
    """Outcome of the run, or `refused` if no run was started; None before the end."""
    reason: str = ""
    """Reason of the outcome, or the reason why there is no run yet."""


class RunEnd(WireMessage):
    """Result of `find_run_end`."""

    ended: EndedRun | None = None
    """End of the run; None while it is under way."""
    ended_at: str = ""
    """Time of the end, in ISO 8601; empty if Temporal no longer has it."""

    def is_after(self, since: str) -> bool:
        """Return True if the run ended later than a time in ISO 8601."""
        return bool(self.ended_at) and datetime.fromisoformat(self.ended_at) > datetime.fromisoformat(since)
