"""Query of the command line before a roll-back, and its result: the tables to restore, and their checks."""

from typing import Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.contracts.existing_rows import Restore
from sluice.contracts.lake_query import LakeQueryMessage
from sluice.contracts.table_changes import TableChange
from sluice.pipeline.model import Pipeline
from sluice.pipeline.table import Table
from sluice.roles import ShowRows


class PlanRollbackInput(LakeQueryMessage):
    """Input of `plan_rollback`: plan a run that restores the tables of a published run."""

    kind: Literal["plan_rollback"] = "plan_rollback"
    run: str
    """Run id, workflow id, commit of main, or a pipeline, which means its latest run on main."""
    with_later: bool = False
    """True to roll back later runs that changed the same tables, too."""
    despite_readers: bool = False
    """True to plan the roll-back even if checks of later runs read the data that it removes."""


class PublishedChecks(WireMessage):
    """Checks of whole tables under which a run published a version of a table."""

    workflow_id: str
    """Workflow id of the run."""
    table: Table
    """The table with its checks; without checks if no run up to the version had any."""
    is_of_version: bool = True
    """True if the run published this version. False if it published an older one, and runs without checks followed."""


class PlanRollbackResult(WireMessage):
    """Result of `plan_rollback`: the tables that a roll-back restores."""

    restore: Restore
    remaining: list[str]
    """Tables that exist after the roll-back. The others are dropped."""
    pipeline: str
    """Name of the run's pipeline."""
    workflow_id: str
    recorded: Pipeline | None = None
    """Checks of whole tables and approval of the run's pipeline, if the run's commit on main has them."""
    older: dict[str, PublishedChecks] = Field(default_factory=dict)
    """Checks for the restored version of each remaining table, if main records them: those of the last run with checks
    up to that version."""
    readers: list[str] = Field(default_factory=list)
    """Later runs whose checks read the restored tables, each as a sentence."""
    show_rows: ShowRows = "all"
    """People who may see rows of later runs that are rolled back too, according to the pipelines of these runs."""
    changes: dict[str, TableChange] = Field(default_factory=dict)
    """Change of the rows, by table."""
