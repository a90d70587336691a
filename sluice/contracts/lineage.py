"""Inputs of the activities that send OpenLineage events of a run (ADR 37)."""

from typing import Any, Literal

from pydantic import Field

from sluice.base_model import Model
from sluice.checks.base import Severity
from sluice.contracts.references import LineageParent, RunRef
from sluice.contracts.write import TableVersionRef

LineageEventType = Literal["START", "RUNNING", "COMPLETE", "FAIL", "ABORT"]
"""The OpenLineage event types that Sluice sends."""


class LineageCheck(Model):
    """One verdict, as an event carries it: without rows, and without values of rows."""

    table: str
    kind: str
    """The kind of the check, as `not_null`."""
    title: str
    """The kind with its columns or its name, as `not_null(id)`."""
    columns: list[str] = Field(default_factory=list)
    passed: bool
    """False where the check failed, warned, or could not be answered."""
    severity: Severity
    expected: str = ""
    observed: str = ""
    """What was observed; empty where that is a value of rows."""
    more: dict[str, Any] = Field(default_factory=dict)
    """Failed rows, and whether the check is waived, by the names that the event gives them."""


class LineageTable(Model):
    """A table that a run published."""

    name: str
    version: TableVersionRef
    rows: int
    """The rows that the run added."""
    bytes: int
    """The size of the data files that it added."""
    files: int
    """How many data files it added."""


class EmitLineageInput(Model):
    """Input of `emit_lineage`: one OpenLineage event, without what only the lake knows."""

    event: LineageEventType
    at: str
    """When it happened, in ISO 8601: the same in each try, so that a repeated event replaces the first."""
    run_ref: RunRef
    description: str = ""
    """What the pipeline file says of the pipeline."""
    parent: LineageParent | None = None
    scheduled_at: str = ""
    """When a schedule was to start the run, in ISO 8601; empty without a schedule."""
    sources: list[str] = Field(default_factory=list)
    """The paths of the source files, as the pipeline states them."""
    source_files: int | None = None
    """How many files the run loads; None where that is not known yet."""
    source_bytes: int | None = None
    sql: list[str] = Field(default_factory=list)
    """The SQL of the write: its transform, or its statements."""
    tables: list[str] = Field(default_factory=list)
    """The tables of the pipeline: they are no inputs, although checks read them."""
    read_tables: list[str] = Field(default_factory=list)
    """The tables that checks read, as they are called there."""
    base: str = ""
    """The hash of main at which they are read; empty where it is not known yet."""
    catalog_id: str | None = None
    published: list[LineageTable] = Field(default_factory=list)
    checks: list[LineageCheck] = Field(default_factory=list)
    tags: dict[str, str] = Field(default_factory=dict)
    """The outcome and what led to it, as run tags."""
    error: str = ""
    """Why the run failed."""
