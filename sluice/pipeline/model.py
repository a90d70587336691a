"""Model of a pipeline: its write, its tables with their checks, its approval and its publication."""

import hashlib
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PrivateAttr, field_validator, model_validator

from sluice.base_model import StrictModel
from sluice.durations import Duration
from sluice.identifiers import branch_name, pipeline_name, table_name
from sluice.pipeline.arrival import Arrival, with_source_of_arrival
from sluice.pipeline.limits import MAX_CHECKS
from sluice.pipeline.loading_order import start_problem, with_order_of_arrival
from sluice.pipeline.publish_options import PublishOptions
from sluice.pipeline.schedule import Schedule
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from sluice.pipeline.source import format_of
from sluice.pipeline.table import Table
from sluice.pipeline.target_names import target_names
from sluice.pipeline.write import INGEST, Write
from sluice.pipeline.write_modes import WRITE_MODES
from sluice.roles import ShowRows

OnFailure = Literal["quarantine", "discard"]


class Approval(StrictModel):
    """Approvals that a run needs before its merge."""

    required: int = Field(default=1, ge=1, le=100)
    """Number of different people who must approve."""
    four_eyes: bool = False
    """True if the person who started the run may not decide about it."""
    timeout: Duration = 24 * 3600.0
    """Time to decide, in seconds. Without enough approvals by then, the run is not published."""


class Pipeline(StrictModel):
    """A complete and valid pipeline."""

    name: Annotated[str, AfterValidator(pipeline_name)]
    description: str = ""
    branch: Annotated[str, AfterValidator(branch_name)] | None = None
    """Label in the branch names of its runs; by default the name of the pipeline."""
    write: Write
    tables: dict[Annotated[str, AfterValidator(table_name)], Table] = Field(min_length=1)
    approval: Approval | None = None
    publish: PublishOptions = PublishOptions()
    on_failure: OnFailure = "quarantine"
    keep: Duration = 14 * 86400.0
    """Retention of a quarantined branch, in seconds."""
    after_publish: Annotated[list[str], AfterValidator(target_names)] = Field(default_factory=list)
    """Names of the installation's targets that register its publications."""
    schedule: Schedule | None = None
    """Times at which it starts without a person. `deploy` applies them. They are not part of the identity of a run."""
    arrival: Arrival | None = None
    """The landing zone whose files start its runs, once `deploy` has applied the pipeline file."""
    show_values: bool = False
    """True if reasons may quote values of rows. Reasons go to Slack, into commits and into lists of runs."""
    show_rows: ShowRows = "all"
    """People who see rows of its runs on the page: failing rows, and the rows of a diff."""
    _scope: LoadScope = PrivateAttr(default=NO_SCOPE)

    @model_validator(mode="before")
    @classmethod
    def _source_of_arrival(cls, pipeline: object) -> object:
        return with_order_of_arrival(with_source_of_arrival(pipeline)) if isinstance(pipeline, dict) else pipeline

    @field_validator("tables", mode="before")
    @classmethod
    def _bare_tables(cls, tables: object) -> object:
        if isinstance(tables, list):
            return {str(name): {} for name in tables}
        if isinstance(tables, dict):
            return {name: {} if table is None else table for name, table in tables.items()}
        return tables

    @field_validator("approval", mode="before")
    @classmethod
    def _auto(cls, approval: object) -> object:
        return None if approval == "auto" else approval

    @model_validator(mode="after")
    def _one_target(self) -> "Pipeline":
        if self.write.built_in and not self.write.traits.reads_tables and len(self.tables) != 1:
            raise ValueError(
                f"the job {INGEST!r} writes one table, and {len(self.tables)} are named: write a pipeline "
                "file for each, or a program of yours that writes all"
            )
        return self

    @model_validator(mode="after")
    def _loads_what_arrives(self) -> "Pipeline":
        if self.arrival is None:
            return self
        if self.schedule is not None:
            raise ValueError(
                "schedule: files that arrive start the runs of a pipeline with an `arrival`, and a scheduled run would "
                "load files that are still written: remove `schedule`; `arrival.look` says how often files are listed"
            )
        if not self.write.built_in:
            raise ValueError(
                f"arrival: use the job {INGEST!r}, which loads the files of a batch; a program of yours may read others"
            )
        source = self.write.source
        if source and not source.format and not any(map(format_of, source.paths)):
            raise ValueError(
                "arrival: the path does not show the format of the files that will arrive: set write.source.format"
            )
        if self.write.loaded_files == "reload":
            raise ValueError(
                f"arrival: with `mode: {self.write.mode}` each batch would replace the one before; use append "
                "or merge, or state `loaded: skip` in write.source"
            )
        return self

    @model_validator(mode="after")
    def _keeps_order(self) -> "Pipeline":
        if problem := start_problem(self.write, self.tables, self.schedule, self.arrival):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _rows_are_known(self) -> "Pipeline":
        quarantining = [name for name, table in self.tables.items() if table.on_bad_rows == "quarantine"]
        if quarantining and not self.write.knows_its_rows:
            modes = [mode for mode, each in WRITE_MODES.items() if each.knows_its_rows and each.is_for_pipelines]
            what = f"`mode: {self.write.mode}`" if self.write.built_in else "a program of yours"
            raise ValueError(
                f"on_bad_rows: quarantine (of {quarantining[0]}) needs to know which rows the run brings, and {what} "
                f"does not show that: use it with {', '.join(modes)}, or leave it out, so that a bad row stops the run"
            )
        return self

    @model_validator(mode="after")
    def _not_too_many_checks(self) -> "Pipeline":
        checks = sum(len(table.checks) for table in self.tables.values())
        if checks > MAX_CHECKS:
            raise ValueError(f"{checks:,} checks are too many for one pipeline: the limit is {MAX_CHECKS:,}")
        return self

    @property
    def scope(self) -> LoadScope:
        """The partition and the scheduled time whose placeholders decide what the pipeline writes.

        A copy of the pipeline keeps the scope; its JSON does not contain it. The input of a run carries it on.
        """
        return self._scope

    def with_scope(self, scope: LoadScope) -> "Pipeline":
        """Return a copy of this pipeline with a scope of its loads."""
        scoped = self.model_copy()
        scoped._scope = scope
        return scoped

    @property
    def label(self) -> str:
        """Label in the branch names of its runs."""
        return self.branch or self.name

    @property
    def digest(self) -> str:
        """The SHA-256 of the pipeline's content, in hexadecimal."""
        starts = {"schedule": True, "arrival": True}  # a run does the same, however it was started
        positions = {"tables": {"__all__": {"checks": {"__all__": {"at"}}}}}
        text = self.model_dump_json(by_alias=True, exclude={**positions, **starts})
        return hashlib.sha256(text.encode()).hexdigest()
