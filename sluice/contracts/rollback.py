"""What the command line asks before a roll-back, and the answer: which tables are restored, and by which checks."""

from typing import Literal

from pydantic import Field

from sluice.base_model import Model
from sluice.contracts.existing_rows import Restore
from sluice.contracts.write import TableChange
from sluice.pipeline.model import Pipeline
from sluice.pipeline.table import Table


class PlanRollbackInput(Model):
    """What `plan_rollback` plans: a run that restores the tables of a published run."""

    kind: Literal["plan_rollback"] = "plan_rollback"
    run: str
    """A run or workflow id, a commit of main, or a pipeline, which means its latest run that main holds."""
    with_later: bool = False
    """Whether later runs that changed the same tables are rolled back, too."""
    despite_readers: bool = False
    """Whether to plan it although later runs read, by their checks, what it takes back."""


class PublishedChecks(Model):
    """The checks of whole tables under which a run published a version of a table."""

    workflow_id: str
    """The run, by its workflow id."""
    table: Table
    """Without checks where no run up to the version had any."""
    is_of_version: bool = True
    """Whether the run published the version itself, and not an earlier one, before runs without checks."""


class PlanRollbackResult(Model):
    """What a roll-back restores."""

    restore: Restore
    remaining: list[str]
    """The tables that exist after the roll-back; the others are dropped."""
    pipeline: str
    """The name of the run's pipeline."""
    workflow_id: str
    recorded: Pipeline | None = None
    """The checks of whole tables and the approval of the run's pipeline, if the run's commit on main has them."""
    older: dict[str, PublishedChecks] = Field(default_factory=dict)
    """By table that remains, the checks of the last run up to its version that had any, where main records them."""
    readers: list[str] = Field(default_factory=list)
    """The later runs whose checks read the tables that are restored, each as a sentence."""
    changes: dict[str, TableChange] = Field(default_factory=dict)
    """By table, what becomes of its rows."""
