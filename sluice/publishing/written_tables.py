"""Verify the content of a branch: a complete write of one attempt, or a rebase of one, and nothing else."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sluice.contracts.existing_rows import ResumeBranchInput
from sluice.contracts.references import RunRef
from sluice.contracts.table_changes import TableChange
from sluice.contracts.write import VerifyWriteInput, WriteResult
from sluice.errors import InvalidInput, NothingWritten, UnexpectedWrite
from sluice.identifiers import joined_name, namespaces_of
from sluice.pipeline.loading_order import is_scheduled_time, latest_of, replaces_later_time, replaces_other
from sluice.publishing.quarantine_tables import quarantine_table
from sluice.publishing.row_counts import deleted_row_counts, written_row_counts
from sluice.sizes import format_count


@dataclass(frozen=True)
class TableHistory:
    """The past of a table in its metadata on the branch, compared with main."""

    expired_snapshots: int = 0
    """Number of main's snapshots that are missing."""
    was_recreated: bool = False
    """True if it is another table with the same name."""
    was_set_back: bool = False
    """True if readers would see a snapshot from before the run, because of a roll-back or a replaced branch."""
    changed_refs: Sequence[str] = ()
    """Branches and tags inside the table that were created, moved or dropped."""
    unsafe_properties: Sequence[str] = ()
    """Properties that make Iceberg delete files that other branches need."""


@dataclass(frozen=True)
class LastStep:
    """Changes of a table's live files since a part of the run was verified."""

    added_rows: int = 0
    deleted_rows: int = 0
    appended_rows: int = 0
    """Number of rows in commits that only added files."""
    removed_base_files: int = 0
    """Number of main's files that it removed, or in which it deleted rows in place."""


@dataclass(frozen=True)
class WrittenTable:
    """One table on a branch, compared with main when the branch began."""

    name: str
    change: TableChange | None
    """Change of the table; None if the table was dropped."""
    foreign_snapshots: int = 0
    """Number of its new snapshots that none of the expected attempts made."""
    same_rows: bool = True
    """True if the table has as many rows as before, as far as metadata shows."""
    has_row_deletes: bool = True
    """True if rows were deleted in place, before or by this write. The counts of files include such rows."""
    history: TableHistory = field(default_factory=TableHistory)
    last_step: LastStep = field(default_factory=LastStep)
    replaced: Collection[tuple[str, str]] = ()
    """Pipelines and partitions of the runs that brought the removed files, as far as they are known."""


def check_changed_tables(input: VerifyWriteInput, changed: Collection[str]) -> None:
    """Check that an attempt changed only tables that its pipeline names.

    Raises:
        UnexpectedWrite: the attempt changed another table.
    """
    named = {*input.tables, *map(quarantine_table, input.quarantined_rows)}
    for name in changed:
        if name not in named:
            raise UnexpectedWrite(f"the job changed {name}, which the pipeline does not name under `tables`")


def check_changed_namespace(
    tables: Collection[str],
    elements: tuple[str, ...],
    before: Mapping[str, str] | None,
    after: Mapping[str, str] | None,
) -> None:
    """Check that an attempt changed no namespace, except to create those of its own tables that main lacks.

    Args:
        before: properties of the namespace; None if it did not exist.
        after: properties of the namespace; None if it was dropped.

    Raises:
        UnexpectedWrite: the attempt changed the namespace.
    """
    name = joined_name(elements)
    if after is None:
        raise UnexpectedWrite(f"the job dropped the namespace {name}")
    if before is not None:
        raise UnexpectedWrite(f"the job changed properties of the namespace {name}, which no audit covers")
    if elements not in {namespace for table in tables for namespace in namespaces_of(table)}:
        raise UnexpectedWrite(f"the job created the namespace {name}, in which the pipeline has no table")
    if after:
        raise UnexpectedWrite(f"the job gave the namespace {name} properties, which no audit covers")


def check_write(input: VerifyWriteInput, tables: Sequence[WrittenTable]) -> dict[str, TableChange]:
    """Check that a write is complete and by this attempt alone, and return its changes.

    Raises:
        NothingWritten: a table that must have changed did not.
        UnexpectedWrite: the branch contains something other than this write.
    """
    changes: dict[str, TableChange] = {}
    for table in tables:
        if table.change is None:
            raise UnexpectedWrite(f"the job dropped {table.name}")
        if table.foreign_snapshots:
            raise UnexpectedWrite(f"{table.name} contains a snapshot that this attempt did not make")
        check_history(table)
        if input.write.traits.keeps_rows and not table.same_rows:
            raise UnexpectedWrite(f"{table.name} has other rows than before it was compacted")
        if input.write.built_in and input.write.traits.replaces_partitions:
            _check_other_partitions(input.run_ref, table, over_younger=input.over_younger)
        rows = written_row_counts(table.change, input.write.traits, input.job.rows_merged)
        if rows is None and input.write.only_deletes and not table.has_row_deletes:
            rows = deleted_row_counts(table.change)
        changes[table.name] = table.change.model_copy(update={"rows": rows})
    _check_all_written(input, changes)
    _check_row_counts(input, changes)
    _check_quarantined_rows(input, tables)
    return changes


def _check_other_partitions(run_ref: RunRef, table: WrittenTable, *, over_younger: bool) -> None:
    """Check that a run removed no rows that the pipeline's other partitions or later scheduled times brought.

    Args:
        over_younger: True if it may remove rows of a later scheduled time.

    Raises:
        InvalidInput: it removed such rows.
    """
    if not run_ref.partition:
        return
    replaced = [partition for pipeline, partition in table.replaced if pipeline == run_ref.pipeline]
    is_time = is_scheduled_time(run_ref.partition)
    later = latest_of([each for each in replaced if is_time or is_scheduled_time(each)], run_ref.partition)
    if later and not over_younger:
        raise InvalidInput(replaces_later_time(table.name, run_ref.partition, later))
    others = [each for each in replaced if each != run_ref.partition and not is_scheduled_time(each)]
    if others and not is_time:
        raise InvalidInput(replaces_other(table.name, run_ref.partition, others))


def check_history(table: WrittenTable) -> None:
    """Check that a write kept the past, the branches and the safe properties of a table.

    Raises:
        UnexpectedWrite: it did not keep one of them.
    """
    name, history = table.name, table.history
    if history.was_recreated:
        raise UnexpectedWrite(
            f"the job dropped {name} and created it again, which loses its history: use CREATE OR REPLACE TABLE"
        )
    if history.expired_snapshots:
        raise UnexpectedWrite(
            f"the job expired {history.expired_snapshots} snapshots of {name} that main contains: their files are "
            "needed. The catalog's own garbage collection removes what no branch needs"
        )
    if history.was_set_back:
        raise UnexpectedWrite(
            f"the job rolled {name} back to a snapshot from before the run without a new snapshot: "
            "use `rollback` for published runs"
        )
    if history.changed_refs:
        raise UnexpectedWrite(
            f"the job changed branches or tags inside {name} ({', '.join(history.changed_refs)}), which are not audited"
        )
    if history.unsafe_properties:
        raise UnexpectedWrite(
            f"{name} has {', '.join(history.unsafe_properties)} on the branch: with them, Iceberg deletes files that "
            "main or another branch needs. Leave them out"
        )


def _check_all_written(input: VerifyWriteInput, changes: dict[str, TableChange]) -> None:
    missing = [table for table in input.tables if table not in changes]
    if missing and (not input.write.traits.reads_tables or not changes):
        raise NothingWritten(
            f"the job ended without an error and wrote nothing to {', '.join(missing)}: "
            "no snapshot of this attempt is on its branch"
        )


def _check_row_counts(input: VerifyWriteInput, changes: dict[str, TableChange]) -> None:
    counted = input.job.rows_written
    if input.write.traits.moves_quarantined_rows and not input.quarantined_rows:
        _check_requeued_rows(input, changes)
    if counted is None:
        return
    for table, change in changes.items():
        if counted != change.added_rows:
            raise UnexpectedWrite(
                f"the job counted {counted} rows for {table}, but its snapshots have {change.added_rows}: rows were "
                "lost"
            )


def _check_requeued_rows(input: VerifyWriteInput, changes: dict[str, TableChange]) -> None:
    """Check that as many rows entered a table as left its quarantine table. A merge may update some instead."""
    table, quarantine = input.tables
    removed, arrived = (_net_rows(changes[name]) if name in changes else 0 for name in (quarantine, table))
    if not 0 <= arrived <= -removed or (arrived < -removed and not input.write.carries_rows):
        raise UnexpectedWrite(f"{-removed} rows left {quarantine}, and {arrived} came into {table}")


def _check_quarantined_rows(input: VerifyWriteInput, tables: Sequence[WrittenTable]) -> None:
    """Check that the rows that left a table are the run's own, and that as many entered its quarantine table."""
    by_name = {table.name: table for table in tables}
    for name, rows in input.quarantined_rows.items():
        quarantine = quarantine_table(name)
        gained = by_name[quarantine].last_step if quarantine in by_name else LastStep()
        if (gained.added_rows, gained.deleted_rows) != (rows, 0):
            raise UnexpectedWrite(
                f"{rows} bad rows of {name} were quarantined, and {quarantine} got {gained.added_rows}"
            )
        step = by_name[name].last_step if name in by_name else LastStep()
        left = step.deleted_rows - step.added_rows + step.appended_rows
        if step.removed_base_files:
            raise UnexpectedWrite(f"the row quarantine removed rows of {name} that this run did not bring")
        if left != rows:
            raise UnexpectedWrite(f"{rows} bad rows of {name} were quarantined, and {left} left it")
        if step.appended_rows > (rows if input.write.carries_rows else 0):
            raise UnexpectedWrite(f"the row quarantine added {step.appended_rows} rows to {name}, but moved {rows}")


def check_rebased(
    branch: str, source: str, written: WriteResult, tables: Sequence[WrittenTable]
) -> dict[str, TableChange]:
    """Check that a rebased branch contains exactly the rows of the branch `source`, and return its changes.

    Raises:
        UnexpectedWrite: the branch contains something else.
    """
    changes: dict[str, TableChange] = {}
    for table in tables:
        before = written.tables.get(table.name)
        if before is None or table.change is None:
            raise UnexpectedWrite(f"{branch} changes {table.name}, and {source} did not")
        if table.foreign_snapshots:
            raise UnexpectedWrite(f"{table.name} contains a snapshot that this run did not make")
        check_history(table)
        if _net_rows(table.change) != _net_rows(before):
            raise UnexpectedWrite(
                f"the rebase of {table.name} has {_net_rows(table.change)} rows, and the write had {_net_rows(before)}"
            )
        changes[table.name] = table.change
    if changes.keys() != written.tables.keys():
        raise UnexpectedWrite(f"{branch} contains {sorted(changes)}, not {sorted(written.tables)}")
    return changes


def check_resumed_tables(input: ResumeBranchInput, changed: Collection[str]) -> None:
    """Check that a quarantined branch changes only tables of its pipeline and their quarantine tables.

    Raises:
        UnexpectedWrite: the branch changes another table.
    """
    named = {*input.tables, *map(quarantine_table, input.tables)}
    for name in changed:
        if name not in named:
            raise UnexpectedWrite(f"{input.resume.branch} changes {name}, which the pipeline does not name")


def check_something_changed(changed: Collection[object]) -> None:
    """Check that a branch changes at least one table.

    Raises:
        InvalidInput: the branch changes no table.
    """
    if not changed:
        raise InvalidInput("nothing would change: main contains all of it already")


def check_no_repeated_files(repeated: Mapping[str, Sequence[str]]) -> None:
    """Check that a run adds no file twice, and none that a table already lists. Their rows would be duplicated.

    Args:
        repeated: by table, the added files that the table would list more than once.

    Raises:
        UnexpectedWrite: there are such files.
    """
    for table, files in repeated.items():
        more = f" and {format_count(len(files) - 1, 'other file')}" if len(files) > 1 else ""
        raise UnexpectedWrite(f"{table} would list {files[0]}{more} more than once: its rows would count twice")


def _net_rows(change: TableChange) -> int:
    return change.added_rows - change.deleted_rows
