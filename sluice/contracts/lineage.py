"""Inputs of the activities that send OpenLineage events of a run (ADR 36)."""

from typing import Any, Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.checks.base import Severity
from sluice.contracts.references import LineageParent, RunRef
from sluice.contracts.write import TableVersionRef

LineageEventType = Literal["START", "RUNNING", "COMPLETE", "FAIL", "ABORT"]
"""OpenLineage event types that Sluice sends."""


class LineageCheck(WireMessage):
    """One verdict of an event, without rows and without values of rows."""

    table: str
    kind: str
    """Kind of the check, as `not_null`."""
    title: str
    """Kind with the columns or the name of the check, as `not_null(id)`."""
    columns: list[str] = Field(default_factory=list)
    passed: bool
    """False if the check failed, warned, or could not be answered."""
    severity: Severity
    expected: str = ""
    observed: str = ""
    """Observed result; empty if it is a value of rows."""
    more: dict[str, Any] = Field(default_factory=dict)
    """Failed rows, and the waived state of the check, by the names that the event uses."""


class LineageTable(WireMessage):
    """A table that a run published."""

    name: str
    version: TableVersionRef
    rows: int
    """Number of rows that the run added."""
    bytes: int
    """Size of the data files that the run added, in bytes."""
    files: int
    """Number of data files that the run added."""


class EmitLineageInput(WireMessage):
    """Input of `emit_lineage`: one OpenLineage event, without data that only the lake has."""

    event: LineageEventType
    at: str
    """Time of the event, in ISO 8601. It is the same in each try, so that a repeated event replaces the first."""
    run_ref: RunRef
    description: str = ""
    """Description of the pipeline in its file."""
    parent: LineageParent | None = None
    scheduled_at: str = ""
    """Scheduled time of the run, in ISO 8601; empty without a schedule."""
    sources: list[str] = Field(default_factory=list)
    """Paths of the source files, as the pipeline states them."""
    source_files: int | None = None
    """Number of files that the run loads; None if it is not known yet."""
    source_bytes: int | None = None
    sql: list[str] = Field(default_factory=list)
    """SQL of the write: its transform, or its statements."""
    tables: list[str] = Field(default_factory=list)
    """Tables of the pipeline. They are not inputs, although checks read them."""
    read_tables: list[str] = Field(default_factory=list)
    """Tables that checks read, by the names in the checks."""
    base: str = ""
    """Hash of main at which checks read these tables; empty if it is not known yet."""
    catalog_id: str | None = None
    published: list[LineageTable] = Field(default_factory=list)
    checks: list[LineageCheck] = Field(default_factory=list)
    tags: dict[str, str] = Field(default_factory=dict)
    """Outcome of the run and the circumstances that led to it, as run tags."""
    error: str = ""
    """Reason why the run failed."""
