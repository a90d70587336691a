"""Queries of the command line about quarantined branches, and their results."""

from typing import Any, Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.checks.verdicts import CheckResult
from sluice.contracts.lake_query import LakeQueryMessage
from sluice.contracts.table_changes import TableChange


class ListQuarantineInput(LakeQueryMessage):
    """Input of `list_quarantine`: list every quarantined branch, or the one of a run."""

    kind: Literal["list_quarantine"] = "list_quarantine"
    run: str | None = None
    """Branch, run id, workflow id or pipeline; refused if it matches several branches. None lists all."""
    sizes: bool = False
    """True to measure the data files that only the branch has, which requires reading its metadata."""


class QuarantineSummary(WireMessage):
    """A quarantined branch, as its last commit describes it."""

    branch: str
    run_id: str
    workflow_id: str
    pipeline: str
    cause: str
    reason: str
    expires: str
    """End of its retention, in ISO 8601."""
    installation: str
    verified: bool = False
    """True if the run verified that its write is complete. Only such a branch can be released or repaired."""
    problem: str = ""
    """Defect of its description that prevents showing or releasing all of it; empty if there is none."""
    target: str = ""
    """Branch that its run was to publish to, if it is not main: the branch of a backfill."""
    created: str = ""
    """Time of the quarantine, in ISO 8601; only the day if the time is not known."""
    head: str = ""
    """Hash of its newest commit, which contains this description."""
    quarantined_hash: str = ""
    """Hash with exactly the unpublished changes; empty if not recorded, or for a worker that does not state it."""
    tables: dict[str, int | None] = Field(default_factory=dict)
    """Net number of rows that its run verified, by table; None if it verified none."""


class QuarantineEntry(WireMessage):
    """A quarantined branch in a list."""

    summary: QuarantineSummary
    bytes: int | None = None
    """Size of the data files that only this branch has, in bytes; None unless requested."""


class ListQuarantineResult(WireMessage):
    """Quarantined branches, newest first."""

    quarantined: list[QuarantineEntry]


class DescribeQuarantineInput(LakeQueryMessage):
    """Input of `describe_quarantine`: describe one quarantined branch."""

    kind: Literal["describe_quarantine"] = "describe_quarantine"
    run: str
    rows: int = Field(default=10, ge=0)
    """Maximum number of bad rows to return for each verdict."""
    added_rows: int | None = Field(default=None, ge=0)
    """Maximum number of added rows to return for each table; None for the same number."""


class QuarantinedTable(WireMessage):
    """Changes of a quarantined branch in one table."""

    change: TableChange | None
    """Change of the table; None if it was dropped."""
    columns: list[str]
    """Added, dropped or changed columns, as `+ name type` and `- name type`."""
    bytes: int
    """Size of the data files that only this branch has, in bytes."""
    rows: list[dict[str, Any]]
    """Some of the added rows."""


class DescribeQuarantineResult(WireMessage):
    """Result of `describe_quarantine`: the reason for the quarantine, every verdict, and the changes."""

    summary: QuarantineSummary
    tables: dict[str, QuarantinedTable]
    checks: list[CheckResult]
