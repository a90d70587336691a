"""Bring rows that exist already onto the branch of an attempt: of a kept branch, or of main as it was."""

from collections.abc import Iterator
from dataclasses import dataclass

from temporalio import activity

from activities.attempt_branch import AttemptBranch
from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog, TableCommit, TableVersion
from lakehouse.iceberg.commit import table_commit
from lakehouse.iceberg.rebase import CannotRebase, RebaseOptions, rebase_tables
from lakehouse.iceberg.table_state import TableState, load_table
from sluice.audit.bad_rows import quarantine_table
from sluice.contracts.activity_inputs import BranchRef, RebaseResult, Restore, ResumeInput, TableChange, WriteResult
from sluice.errors import InvalidInput, UnexpectedWrite
from sluice.publishing.certificate import marks


@dataclass(frozen=True)
class ResumeBranchActivity:
    """Needs the catalog, the properties by which Iceberg reads the lake, and whose runs these are."""

    catalog: BranchCatalog
    io: dict[str, str]
    installation: str

    @activity.defn(name="resume_branch")
    def resume_branch(self, input: ResumeInput) -> RebaseResult:
        """Take over what a kept branch holds onto main as it is now."""
        with as_application_error():
            assert input.resume
            resume, identity, attempt = input.resume, self._identity(input), self._attempt(input)
            changed = self.catalog.diff(resume.base, resume.branch, resume.head)
            expected = {*input.tables, *map(quarantine_table, input.tables)}
            for key in changed:
                if key.name not in expected:
                    raise UnexpectedWrite(f"{resume.branch} changes {key.name}, which the pipeline does not name")
            try:
                by = RebaseOptions(input.write.rebases, divided=True, marks=marks(input.run_ref))
                tables = rebase_tables(self.catalog, self.io, changed, attempt.base, by)
            except CannotRebase as why:
                raise InvalidInput(
                    f"main changed since {resume.branch} was written, and {why}: run the pipeline again"
                ) from why
            commits = [table.commit for table in tables]
            return self._committed(input, identity, attempt, commits, f"Resume {resume.branch}")

    @activity.defn(name="restore_tables")
    def restore_tables(self, input: ResumeInput) -> RebaseResult:
        """Point tables at the metadata that they had at an earlier hash of main."""
        with as_application_error():
            assert input.restore
            identity, attempt = self._identity(input), self._attempt(input)
            commits = list(self._restored(input.restore, attempt.base))
            message = f"Roll back {', '.join(input.restore.runs)}"[:500]
            return self._committed(input, identity, attempt, commits, message)

    def _attempt(self, input: ResumeInput) -> AttemptBranch:
        return AttemptBranch(self.catalog, self.installation, input.run_ref.branch)

    def _identity(self, input: ResumeInput) -> str:
        if input.catalog_id:
            self.catalog.check_identity(input.catalog_id)
        return self.catalog.identity()

    def _committed(
        self, input: ResumeInput, identity: str, attempt: AttemptBranch, commits: list[TableCommit], message: str
    ) -> RebaseResult:
        """Make the branch with all changes in one commit, unless an earlier try did; read it back."""
        attempt.create(input.run_ref, message, lambda: commits)
        timeout = self.catalog.capabilities.commit_timeout
        branch = BranchRef(name=input.run_ref.branch, base=attempt.base, catalog_id=identity, commit_timeout=timeout)
        head = self.catalog.head(branch.name)
        tables = {
            diff.name: self._change(diff.after, diff.before, restored=bool(input.restore))
            for diff in self.catalog.diff(branch.base, branch.name, head)
        }
        if not tables:
            raise InvalidInput("nothing would change: main holds all of it already")
        return RebaseResult(branch=branch, write_result=WriteResult(head=head, tables=tables))

    def _change(self, after: TableVersion | None, before: TableVersion | None, *, restored: bool) -> TableChange:
        if after and not restored:
            return TableState.load(after, before, self.io).change()
        now, then = self._rows(after), self._rows(before)
        return TableChange(
            operation="restore" if after else "drop",
            added_rows=max(0, now - then),
            deleted_rows=max(0, then - now),
            total_rows=now if after else None,
        )

    def _rows(self, version: TableVersion | None) -> int:
        return (TableState.load(version, None, self.io).change().total_rows or 0) if version else 0

    def _restored(self, restore: Restore, base: str) -> Iterator[TableCommit]:
        main = self.catalog.main
        for name, at in restore.tables.items():
            if self.catalog.table_version(main, name, base) != self.catalog.table_version(
                main, name, restore.main_head
            ):
                raise InvalidInput(f"main changed {name} since this roll-back was planned: look again")
            version = self.catalog.table_version(main, name, at)
            if version is None:
                yield TableCommit(name, None)
            else:
                yield table_commit(name, version.metadata_location, load_table(version, self.io).metadata)
