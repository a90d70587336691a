"""The messages of `StartPipeline`, which starts a run without a person, and waits for its end."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from sluice.base_model import Model
from sluice.contracts.existing_rows import Resume
from sluice.contracts.run import Cause, Outcome, RunRequest
from sluice.pipeline.loading_rules import Way

RUN_ENDED_SIGNAL = "run_ended"
"""The signal by which a workflow is told that a run which it asked for has ended."""


class PipelineText(Model):
    """A pipeline file: its text goes along, since a worker may not have the file."""

    name: str
    """Its path, as messages call it."""
    text: str
    folder: str
    """The working directory against which its relative paths are resolved."""


class StartPipelineInput(Model):
    """Input of the workflow `StartPipeline`."""

    pipeline: PipelineText
    starter: str
    """What started it, as reports name it: `schedule nightly`, `campaign rides-2018`, `arrivals of rides`."""
    asked_by: str = ""
    """The person who asked for it, whom four eyes exclude from its approvals; empty where there is none."""
    values: dict[str, str] = Field(default_factory=dict)
    """The values of the placeholders in the file."""
    files: list[str] | None = None
    """The files to load, instead of those that the pipeline's source lists."""
    expected: str = ""
    """Where the lake lists these files as they were when they were chosen: a batch of a landing zone."""
    loads_overwritten: bool = False
    """Whether these files may hold other content than main has of their paths: a person named them."""
    again: bool = False
    """Whether an input that was published before may be published again."""
    way: Way | None = None
    """How the run is started: what is refused for it is refused before the run. None in histories from before."""
    in_order: bool = False
    """Whether what starts it keeps the order of partitions."""
    over_younger: bool = False
    """Whether its rows may take the place of younger ones."""
    target: str = ""
    """The branch that the run publishes to, where that is not main."""
    resume: Resume | None = None
    """Publish rows that a quarantined branch holds, instead of writing."""
    input_digest: str = ""
    """The identity of what these rows were loaded from."""
    key: str = ""
    """What the requesting workflow calls this run: a partition, or a batch of files."""
    report_to: str = ""
    """The id of the workflow that gets the signal `run_ended`; empty for none."""
    since: str = ""
    """When the run was asked for, in ISO 8601. A run that an earlier start of this workflow id began, and that ended
    later, is the one that is asked for: it is not run twice. Empty where each start is a run of its own."""


class PreparedRun(Model):
    """Result of `prepare_run`: what the run is started with, or why it cannot be started."""

    workflow_id: str = ""
    request: RunRequest | None = None
    summary: str = ""
    problem: str = ""
    is_input_changed: bool = False
    """Whether the problem is that a file was replaced, changed or removed."""


class FindRunEndInput(Model):
    """Input of `find_run_end`, and result of `cancel_started_runs`: a run that is under way or has ended."""

    workflow_id: str
    run_id: str = ""
    """Empty means the latest run of this workflow id."""


class StartedBy(Model):
    """Input of `cancel_started_runs`: the runs of a workflow that started some."""

    workflow_id: str
    since: str = ""
    """Those that ended after this time, in ISO 8601, are returned, too; empty for none of them."""


class EndedRun(Model):
    """How a run that was started by `StartPipeline` ended, or why none was started."""

    key: str = ""
    workflow_id: str = ""
    run_id: str = ""
    outcome: Outcome | Literal["refused"]
    """`refused`: the pipeline or its input is not valid, so that no run was started."""
    cause: Cause | None = None
    reason: str = ""
    branch: str = ""
    """The quarantined branch."""
    rows_added: int = 0
    started_by: str = ""
    """The workflow that started the run, and reports its end; empty for a run that a person started."""

    @property
    def is_done(self) -> bool:
        """Whether main holds the input now."""
        return self.outcome in ("published", "skipped") or self.cause in ("already_published", "nothing_to_do")


class RunEnd(Model):
    """Result of `find_run_end`."""

    ended: EndedRun | None = None
    """How the run ended; None while it is under way."""
    ended_at: str = ""
    """When, in ISO 8601; empty where Temporal no longer has it."""

    def is_after(self, since: str) -> bool:
        """Return whether the run has ended, and later than at a time in ISO 8601."""
        return bool(self.ended_at) and datetime.fromisoformat(self.ended_at) > datetime.fromisoformat(since)
