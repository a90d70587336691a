"""What a roll-back restores: which tables, to which hash of main, and by which checks they are audited."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sluice.contracts.write import TableChange
from sluice.errors import InvalidInput, InvalidPipeline
from sluice.pipeline.model import Pipeline
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write


@dataclass(frozen=True)
class PublishedCommit:
    """One commit on main, and the run that it published."""

    hash: str
    parent: str
    """Main before it."""
    run_id: str
    workflow_id: str
    tables: frozenset[str]


@dataclass(frozen=True)
class RollbackPlan:
    """Which runs a roll-back undoes, and what it restores."""

    runs: list[str]
    """The ids of the runs that are rolled back, the newest first."""
    tables: dict[str, str]
    """By table, the hash of main that holds it as it is to be."""


def plan_rollback(history: Sequence[PublishedCommit], run_id: str, *, with_later: bool) -> RollbackPlan:
    """Plan the roll-back of a published run.

    Each table of the run is restored to its version before the run. A later run that changed one of them built on it,
    and is rolled back too, with all its tables, since a run is published whole or not at all; and so on.

    Args:
        history: the commits on main, the newest first, at least back to the run's.

    Raises:
        InvalidPipeline: the run is not on main, or later runs built on it and `with_later` is not set.
    """
    index = next((index for index, each in enumerate(history) if each.run_id == run_id), None)
    if index is None:
        raise InvalidPipeline(f"main has no commit of run {run_id}")
    target = history[index]
    tables = dict.fromkeys(sorted(target.tables), target.parent)
    later: list[PublishedCommit] = []
    for each in reversed(history[:index]):
        if each.tables & tables.keys():
            later.append(each)
            for table in sorted(each.tables):
                tables.setdefault(table, each.parent)
    if later and not with_later:
        named = ", ".join(f"{each.workflow_id or each.hash[:12]} ({', '.join(sorted(each.tables))})" for each in later)
        raise InvalidPipeline(f"later runs built on it: {named}. To roll them back too, add --with-later")
    return RollbackPlan([each.run_id for each in reversed(later)] + [run_id], tables)


def check_unchanged_since_plan(table: str, unchanged: bool) -> None:
    """Make sure that main holds a table as it did when the roll-back was planned.

    Raises:
        InvalidInput: it does not.
    """
    if not unchanged:
        raise InvalidInput(f"main changed {table} since this roll-back was planned: look again")


def restored_change(rows: int | None, rows_before: int | None) -> TableChange:
    """Return what a roll-back does to a table.

    Args:
        rows: how many rows the table has afterwards; None where the roll-back drops it.
        rows_before: how many it has before; None where it is not there.
    """
    difference = (rows or 0) - (rows_before or 0)
    return TableChange(
        operation="drop" if rows is None else "restore",
        added_rows=max(0, difference),
        deleted_rows=max(0, -difference),
        total_rows=rows,
    )


def rollback_pipeline(earlier: Pipeline, tables: Collection[str], remaining: Collection[str]) -> Pipeline:
    """Return the pipeline of a roll-back: the checks of whole tables, for the tables that remain after it.

    Args:
        earlier: the pipeline of the run that is rolled back.
        tables: the tables that are restored or dropped.
    """
    restored = {}
    for name in tables:
        checks = earlier.tables[name].checks if name in earlier.tables and name in remaining else []
        restored[name] = Table(checks=[check for check in checks if check.scope == "table"])
    changed = earlier.model_copy(update={"write": Write(job="rollback"), "tables": restored})
    return Pipeline.model_validate(changed.model_dump(by_alias=True))
