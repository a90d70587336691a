"""Read back from the branch what an attempt did: the exit code of a job proves nothing."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.table_state import TableState
from sluice.contracts.activity_inputs import TableChange, VerifyWriteInput, WriteResult
from sluice.errors import NothingWritten, UnexpectedWrite


@dataclass(frozen=True)
class VerifyWriteActivity:
    """Needs the catalog and the properties by which Iceberg reads the lake."""

    catalog: BranchCatalog
    io: dict[str, str]

    @activity.defn(name="verify_write")
    def verify_write(self, input: VerifyWriteInput) -> WriteResult:
        """Find the write complete, by this attempt alone, and nothing else; pin the hash that holds it."""
        with as_application_error():
            branch = input.branch
            head = self.catalog.head(branch.name)
            changed = self.catalog.diff(branch.base, branch.name, head)
            changes: dict[str, TableChange] = {}
            for key in changed:
                if key.name not in (*input.tables, *input.quarantined_rows):
                    raise UnexpectedWrite(
                        f"the job changed {key.name}, which the pipeline does not name under `tables`"
                    )
                if key.after is None:
                    raise UnexpectedWrite(f"the job dropped {key.name}")
                state = TableState.load(key.after, key.before, self.io)
                since = self.catalog.table_version(branch.name, key.name, input.since) if input.since else key.before
                if TableState.load(key.after, since, self.io).unmarked(input.run_ref.run_id, [input.run_ref.attempt]):
                    raise UnexpectedWrite(f"{key.name} holds a snapshot that this attempt did not make")
                changes[key.name] = state.change()
                if input.write.traits.keeps_rows and not state.same_rows:
                    raise UnexpectedWrite(f"{key.name} has other rows than before it was compacted")
            self._check_complete(input, changes)
            return WriteResult(head=head, tables=changes, conflicts=self.catalog.find_conflicts(branch.name, head))

    def _check_complete(self, input: VerifyWriteInput, changes: dict[str, TableChange]) -> None:
        missing = [table for table in input.tables if table not in changes]
        if missing and (not input.write.traits.reads_tables or not changes):
            raise NothingWritten(
                f"the job ended well and wrote nothing to {', '.join(missing)}: "
                "no snapshot of this attempt is on its branch"
            )
        for table, rows in input.quarantined_rows.items():
            moved = changes[table].added_rows if table in changes else 0
            if moved != rows:
                raise UnexpectedWrite(f"{rows} bad rows were set apart, and {table} got {moved}")
        stated = input.job.rows_written
        for table, change in changes.items() if not input.quarantined_rows else ():
            if stated is not None and stated != change.added_rows:
                raise UnexpectedWrite(
                    f"the job counted {stated} rows for {table}, its snapshots {change.added_rows}: rows were lost"
                )
