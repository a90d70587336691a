"""Checks before the branch of an attempt is opened, and so before Spark starts."""

from collections.abc import Mapping

from sluice.checks.base import Check, check_location
from sluice.contracts.write import OpenBranchInput
from sluice.identifiers import suggestion
from sluice.pipeline.table import column_problems
from sluice.publishing.bad_rows import with_quarantine_tables
from sluice.publishing.capabilities import CatalogCapabilities, missing_capabilities
from sluice.publishing.commit_properties import PIPELINE_DIGEST, WORKFLOW_ID

TypesByTable = Mapping[str, Mapping[str, str] | None]
"""By table, the Iceberg type of each column; None if main does not have the table."""


def published_before(pipeline: str, commit: str, workflow_id: str) -> str:
    """Return the message for an input that a commit on main already published."""
    return (
        f"this input was published by {pipeline} already: run {workflow_id or '?'}, "
        f"commit {commit[:12]} on main. To publish it again, add --again"
    )


def other_version(properties: Mapping[str, str], digest: str) -> str:
    """Return the addition to this message if the commit is of another version of the pipeline; empty if not.

    Args:
        properties: properties of the merge commit.
        digest: the digest of the pipeline now; empty if it is unknown.
    """
    if not digest or (properties.get(PIPELINE_DIGEST) or digest) == digest:
        return ""
    return (
        f". The pipeline, or a value of its placeholders, differs from that of run {properties.get(WORKFLOW_ID, '?')}: "
        "this alone does not load the same input again"
    )


def writable_tables(input: OpenBranchInput) -> list[str]:
    """Return the tables that a run may change: the pipeline's own, and their quarantine tables."""
    return with_quarantine_tables(input.tables)


def tables_to_read(input: OpenBranchInput, capabilities: CatalogCapabilities) -> list[str]:
    """Return the tables of main that have to be read to decide if an attempt can be opened."""
    checks = [check for table in input.tables.values() for check in table.checks]
    tables = [other.table for check in checks for other in check.references]
    if input.schema_is_fixed:
        tables += input.tables
    if not capabilities.new_tables:
        tables += writable_tables(input)
    return list(dict.fromkeys(tables))


def opening_problems(input: OpenBranchInput, types: TypesByTable, capabilities: CatalogCapabilities) -> list[str]:
    """Return the reasons why an attempt cannot be opened: missing capabilities, tables or columns.

    Args:
        types: the columns of the `tables_to_read`.
    """
    tables = writable_tables(input)
    created = [name for name in tables if types.get(name) is None]
    problems = missing_capabilities(
        capabilities, tables, created, attempts=input.attempts, allow_partial=input.allow_partial
    )
    for name, table in input.tables.items():
        columns = types.get(name) if input.schema_is_fixed else None
        problems += column_problems(name, table, columns) if columns is not None else []
        for check in table.checks:
            problems += [check_location(check) + why for why in _problems_of_other_tables(check, input, types)]
    return list(dict.fromkeys(problems))


def _problems_of_other_tables(check: Check, input: OpenBranchInput, types: TypesByTable) -> list[str]:
    """Return the other tables and columns that a check lacks, except those that the run may still create."""
    problems: list[str] = []
    for other in check.references:
        made_by_run = other.table in input.tables and other.ref == "branch"
        columns = types.get(other.table)
        if columns is None:
            problems += [] if made_by_run else [f"there is no table {other.table} on main"]
        elif not made_by_run or input.schema_is_fixed:
            missing = [name for name in other.columns if name not in columns]
            problems += [f"{other.table} has no column {name!r}{suggestion(name, columns)}" for name in missing]
    return problems
