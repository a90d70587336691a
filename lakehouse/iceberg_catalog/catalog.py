"""The port for catalogs, implemented by any Iceberg catalog with a commit log in one of its tables (ADR 35)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from lakehouse.catalog import BranchInfo, CommitInfo, NamespaceDiff, TableCommit, TableDiff, TableVersion
from lakehouse.iceberg_catalog.branch_changes import commit_on, copy, create_at_root, create_on_main, missing_namespaces
from lakehouse.iceberg_catalog.branches import BranchLog, LogChange
from lakehouse.iceberg_catalog.capabilities import capabilities_of
from lakehouse.iceberg_catalog.commit_log import CommitLog, NoSuchCommit
from lakehouse.iceberg_catalog.errors import explain_absence, translate_catalog_errors
from lakehouse.iceberg_catalog.job_tables import JobCatalogs
from lakehouse.iceberg_catalog.log_commits import MAIN, versions_differ
from lakehouse.iceberg_catalog.probe import probe_commits
from lakehouse.iceberg_catalog.publication import Publisher
from lakehouse.iceberg_catalog.publication_commits import conflicting_tables, publication, refuse_half_published
from lakehouse.iceberg_catalog.versions import committed_version, table_version
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.errors import CatalogChanged, NoSuchBranch, ServiceUnavailable
from sluice.identifiers import name_elements


class IcebergCatalog:
    """An Iceberg catalog as an implementation of the port `lakehouse.catalog.BranchCatalog`."""

    main = MAIN

    def __init__(self, branches: BranchLog, jobs: JobCatalogs) -> None:
        self._branches, self._jobs = branches, jobs
        self._publisher = Publisher(branches)
        self.capabilities = capabilities_of(branches.committer.guarantee)

    def identity(self) -> str:
        """Return the UUID of the table that stores the commit log."""
        with translate_catalog_errors():
            return self._branches.identity()

    def check_identity(self, expected: str) -> None:
        """Verify that the commit log has this UUID."""
        present = self.identity()
        if present != expected:
            raise CatalogChanged(
                f"the catalog has another commit log than when the run began ({present}, not {expected}); "
                "nothing was merged"
            )

    def probe(self) -> str:
        """Commit to two scratch tables, validly and with a wrong requirement; return the result for people."""
        with translate_catalog_errors():
            self._branches.identity()
            return probe_commits(self._branches.tables, self._branches.committer)

    def initialize_main(self) -> str:
        """Record the tables of main; return its head."""
        with translate_catalog_errors():
            self._publisher.settle_abandoned()
            return self._branches.begin().head(MAIN)

    def head(self, branch: str) -> str:
        """Return the head of a branch. That of main includes changes by other programs."""
        with translate_catalog_errors():
            if branch == MAIN:
                self._publisher.settle_abandoned()
            log = self._branches.observe_main() if branch == MAIN else self._branches.read()
            return log.head(branch)

    def find_head(self, branch: str) -> str | None:
        """Return the head of a branch, or None if there is none of this name."""
        try:
            return self.head(branch)
        except NoSuchBranch:
            return None

    def list_branches(self, prefix: str = "") -> list[BranchInfo]:
        """Return every branch whose name begins with `prefix`."""
        with translate_catalog_errors():
            return self._branches.read().branch_infos(prefix)

    def create_branch(self, name: str, base: str) -> None:
        """Create a branch of main at the hash `base`. A repeat changes nothing."""
        with translate_catalog_errors():
            self._branches.update(lambda log: create_on_main(log, name, base))

    def create_orphan_branch(self, name: str) -> str:
        """Create a branch at the root of all history, if it does not exist; return its head."""
        with translate_catalog_errors():
            return self._branches.update(lambda log: create_at_root(log, name)).head(name)

    def copy_branch(self, name: str, of: str, head: str) -> None:
        """Create the branch `name` at the hash `head` of the branch `of`. A repeat changes nothing."""
        with translate_catalog_errors():
            self._branches.update(lambda log: copy(log, name, of, head))

    def delete_branch(self, name: str) -> None:
        """Delete a branch. A missing branch is not an error. An open publish of it fails."""
        with translate_catalog_errors():
            self._publisher.delete_branch(name)

    def delete_branch_at(self, name: str, head: str) -> None:
        """Delete a branch only if it is still at the hash `head`. A missing branch is not an error."""
        with translate_catalog_errors():
            self._publisher.delete_branch(name, head)

    def fork_point(self, branch: str) -> str:
        """Return the newest hash that a branch has in common with main."""
        with self._reading(branch) as log:
            return log.fork_point(log.head(branch))

    def table_version(self, branch: str, name: str, at: str | None = None) -> TableVersion | None:
        """Return the version of a table at a hash of a branch, by default its head; None if there is no such table."""
        with self._reading(branch) as log:
            log = self._branches.observe_main() if branch == MAIN and at is None else log  # noqa: PLW2901
            if branch not in log.branches:
                return None
            version = log.tables(at or log.head(branch)).get(name)
            return table_version(self._branches.in_catalog(name, version) if branch == MAIN else version)

    def list_tables(self, branch: str, at: str) -> list[str]:
        """Return the sorted names of the tables at a hash of a branch."""
        with self._reading(branch) as log:
            return sorted(log.tables(at))

    def diff(self, base: str, branch: str, head: str) -> list[TableDiff]:
        """Return the tables that differ between the hash `base` and a branch at `head`.

        Versions before the change come with the table's newest metadata file. Jobs begin from that file, and it alone
        contains changes by others outside of main since the version was recorded.
        """
        with self._reading(branch) as log:
            log.head(branch)
            changes = log.changes(base, head)
            bases = {name: self._branches.in_catalog(name, before) for name, (before, _) in changes.items()}
            return [TableDiff(name, table_version(bases[name]), table_version(b)) for name, (_, b) in changes.items()]

    def diff_namespaces(self, base: str, branch: str, head: str) -> list[NamespaceDiff]:
        """Return the namespaces that differ between the hash `base` and a branch at `head`."""
        with self._reading(branch) as log:
            log.head(branch)
            before, after = log.namespaces(base), log.namespaces(head)
            names = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
            return [NamespaceDiff(tuple(name_elements(name)), before.get(name), after.get(name)) for name in names]

    def commit_tables(
        self,
        branch: str,
        head: str,
        message: str,
        tables: Sequence[TableCommit] = (),
        properties: Mapping[str, str] | None = None,
        create_namespaces_for: Collection[str] = (),
    ) -> str:
        """Commit new versions of tables on a branch, all or none; return the new head.

        Only the log changes. The metadata files of the versions exist already, and the catalog's tables stay.
        """
        committed: list[str] = []
        needed = [*create_namespaces_for, *(table.name for table in tables if table.version)]

        def commit(log: CommitLog) -> LogChange | None:
            if committed and log.contains(log.head(branch), committed[0]):
                return None  # it was committed, although the catalog's answer was an error
            begun = commit_on(log, branch, head, message, properties or {})
            held, expected = log.tables(begun.parent), log.tables(head)
            if any(versions_differ(held.get(table.name), expected.get(table.name)) for table in tables):
                raise ServiceUnavailable(f"{branch} moved meanwhile")
            versions = {table.name: committed_version(self._branches.tables, table) for table in tables}
            namespaces = missing_namespaces(log, begun.parent, needed)
            made = begun.changed(tables=versions, namespaces=namespaces)
            committed[:] = [made.hash]
            return [made], {branch: (made.parent, made.hash)}, ()

        with translate_catalog_errors():
            self._branches.update(commit)
            return committed[0]

    def find_conflicts(self, branch: str, head: str) -> list[str]:
        """Return the tables that main changed too, so that publishing `head` now would fail."""
        with translate_catalog_errors():
            log = self._branches.observe_main()
            log.head(branch)
            refuse_half_published(log, head)
            return conflicting_tables(log, log.changes(log.fork_point(head), head))

    def publish(
        self, branch: BranchRef, head: str, author: str, message: str, properties: Mapping[str, str]
    ) -> Publication:
        """Move main of each table to its snapshot at the hash `head`, by one commit."""
        with translate_catalog_errors():
            self._branches.observe_main()
            return self._publisher.publish(branch, head, author, message, properties)

    def find_publication(self, head: str, since: str) -> Publication | None:
        """Return the publication of the hash `head` after the hash `since` of main, or ever if `since` is empty."""
        with translate_catalog_errors():
            commit = self._branches.read().publication_of(head, since)
            return publication(commit) if commit else None

    def find_published(self, properties: Mapping[str, str], since: str = "") -> CommitInfo | None:
        """Return the newest commit on main, after `since` if given, that carries all of these properties, or None."""
        for commit in self.history(MAIN):
            if commit.hash == since:
                return None
            if properties.items() <= commit.properties.items():
                return commit
        return None

    def list_published(self, properties: Mapping[str, str], after: datetime) -> Iterator[CommitInfo]:
        """Yield the commits on main after a time that carry all of these properties, newest first."""
        for commit in self.history(MAIN):
            if commit.committed_at <= after:
                return
            if properties.items() <= commit.properties.items():
                yield commit

    def history(self, branch: str) -> Iterator[CommitInfo]:
        """Yield the commits of a branch, newest first."""
        with self._reading(branch) as log:
            for commit in log.ancestors(log.head(branch)):
                if commit.parent:
                    yield commit.info()

    def spark_properties(
        self, spark_catalog: str, branch: str, at: str | None = None, folder: Path | None = None
    ) -> dict[str, str]:
        """Return the Spark configuration of a catalog in the job's folder that contains the tables of a branch."""
        with self._reading(branch) as log:
            return self._jobs.prepare(log, spark_catalog, at or log.head(branch), folder, pinned=at is not None)

    def audited_catalog(self, spark_catalog: str, branch: str, head: str, folder: Path) -> tuple[str, dict[str, str]]:
        """Return a second catalog in the job's folder, with every table at the hash."""
        name = f"{spark_catalog}_audited"
        return name, self.spark_properties(name, branch, head, folder)

    def record_job(self, branch: str, spark_catalog: str, folder: Path) -> None:
        """Commit to a branch the changes that an ended job made to the tables in the catalog of its folder."""
        with translate_catalog_errors():
            self._branches.update(lambda log: self._jobs.collect(log, branch, spark_catalog, folder))

    @contextmanager
    def _reading(self, branch: str) -> Iterator[CommitLog]:
        """Read the log for a branch, whose commits are deleted with it.

        Raises:
            NoSuchBranch: it was deleted meanwhile.
        """
        with translate_catalog_errors():
            log = self._branches.read()
            try:
                yield log
            except NoSuchCommit as error:
                present = self._branches.read().branches.get(branch)
                if branch == MAIN or (present is not None and present == log.branches.get(branch)):
                    raise
                raise NoSuchBranch(f"the branch {branch} does not exist") from error

    def explain_absence(self, lines: Iterable[str]) -> str | None:
        """Return a description of the catalog's outage during a job, if the job's output reports one, or None."""
        return explain_absence(lines)

    def explain_refused_write(self, lines: Iterable[str]) -> str | None:
        """Return None: a job reaches no catalog except its own."""
        return None
