"""What a branch must hold: a complete write of one attempt, or a rebase of one, and nothing else."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sluice.audit.bad_rows import quarantine_table
from sluice.contracts.existing_rows import ResumeBranchInput
from sluice.contracts.write import TableChange, VerifyWriteInput, WriteResult
from sluice.errors import InvalidInput, NothingWritten, UnexpectedWrite


@dataclass(frozen=True)
class WrittenTable:
    """What a branch holds of one table, beside what main held when the branch began."""

    name: str
    change: TableChange | None
    """None where the table was dropped."""
    foreign_snapshots: int = 0
    """How many of its new snapshots none of the expected attempts made."""
    same_rows: bool = True
    """Whether it has as many rows as before, as far as metadata can tell."""


def check_changed_tables(input: VerifyWriteInput, changed: Collection[str]) -> None:
    """Make sure that an attempt changed no table but those that its pipeline names.

    Raises:
        UnexpectedWrite: it did.
    """
    for name in changed:
        if name not in (*input.tables, *input.quarantined_rows):
            raise UnexpectedWrite(f"the job changed {name}, which the pipeline does not name under `tables`")


def check_write(input: VerifyWriteInput, tables: Sequence[WrittenTable]) -> dict[str, TableChange]:
    """Make sure that a write is complete, by this attempt alone, and nothing else; return what it changed.

    Raises:
        NothingWritten: a table that must have changed did not.
        UnexpectedWrite: the branch holds something else than this write.
    """
    changes: dict[str, TableChange] = {}
    for table in tables:
        if table.change is None:
            raise UnexpectedWrite(f"the job dropped {table.name}")
        if table.foreign_snapshots:
            raise UnexpectedWrite(f"{table.name} holds a snapshot that this attempt did not make")
        if input.write.traits.keeps_rows and not table.same_rows:
            raise UnexpectedWrite(f"{table.name} has other rows than before it was compacted")
        changes[table.name] = table.change
    _check_all_written(input, changes)
    _check_row_counts(input, changes)
    return changes


def _check_all_written(input: VerifyWriteInput, changes: dict[str, TableChange]) -> None:
    missing = [table for table in input.tables if table not in changes]
    if missing and (not input.write.traits.reads_tables or not changes):
        raise NothingWritten(
            f"the job ended well and wrote nothing to {', '.join(missing)}: "
            "no snapshot of this attempt is on its branch"
        )


def _check_row_counts(input: VerifyWriteInput, changes: dict[str, TableChange]) -> None:
    for table, rows in input.quarantined_rows.items():
        added = changes[table].added_rows if table in changes else 0
        if added != rows:
            raise UnexpectedWrite(f"{rows} bad rows were quarantined, and {table} got {added}")
    counted = input.job.rows_written
    if input.quarantined_rows or counted is None:
        return
    for table, change in changes.items():
        if counted != change.added_rows:
            raise UnexpectedWrite(
                f"the job counted {counted} rows for {table}, its snapshots {change.added_rows}: rows were lost"
            )


def check_rebased(
    branch: str, source: str, written: WriteResult, tables: Sequence[WrittenTable]
) -> dict[str, TableChange]:
    """Make sure that a rebased branch holds exactly what the branch `source` held; return what it changed.

    Raises:
        UnexpectedWrite: it holds something else.
    """
    changes: dict[str, TableChange] = {}
    for table in tables:
        before = written.tables.get(table.name)
        if before is None or table.change is None:
            raise UnexpectedWrite(f"{branch} changes {table.name}, and {source} did not")
        if table.foreign_snapshots:
            raise UnexpectedWrite(f"{table.name} holds a snapshot that this run did not make")
        if _net_rows(table.change) != _net_rows(before):
            raise UnexpectedWrite(
                f"{_net_rows(before)} rows of {table.name} were to be rebased, not {_net_rows(table.change)}"
            )
        changes[table.name] = table.change
    if changes.keys() != written.tables.keys():
        raise UnexpectedWrite(f"{branch} holds {sorted(changes)}, not {sorted(written.tables)}")
    return changes


def check_resumed_tables(input: ResumeBranchInput, changed: Collection[str]) -> None:
    """Make sure that a quarantined branch changes no table but those of its pipeline and their quarantine tables.

    Raises:
        UnexpectedWrite: it does.
    """
    named = {*input.tables, *map(quarantine_table, input.tables)}
    for name in changed:
        if name not in named:
            raise UnexpectedWrite(f"{input.resume.branch} changes {name}, which the pipeline does not name")


def check_something_changed(changed: Collection[object]) -> None:
    """Make sure that a branch changes a table.

    Raises:
        InvalidInput: it changes none.
    """
    if not changed:
        raise InvalidInput("nothing would change: main holds all of it already")


def _net_rows(change: TableChange) -> int:
    return change.added_rows - change.deleted_rows
