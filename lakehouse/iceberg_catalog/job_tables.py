"""Prepare a job's view of a branch before it starts, and collect its changes when it has ended."""

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyiceberg.exceptions import ValidationError

from lakehouse.iceberg_catalog.branches import LogChange
from lakehouse.iceberg_catalog.commit_log import CommitLog
from lakehouse.iceberg_catalog.job_catalog import (
    ShownTable,
    job_catalog_properties,
    read_job_catalog,
    write_job_catalog,
)
from lakehouse.iceberg_catalog.log_commits import MAIN, LogCommit, LoggedVersion, versions_differ
from lakehouse.iceberg_catalog.tables import CatalogTables
from lakehouse.iceberg_catalog.versions import in_newest_file, logged_version
from sluice.errors import CatalogRefused, NoSuchBranch, ServiceUnavailable

_HEAD = ".head"


@dataclass(frozen=True)
class JobCatalogs:
    """Writer and reader of the catalogs of jobs.

    Requires the tables of the catalog, and the location for new tables.
    """

    tables: CatalogTables
    warehouse: str

    def prepare(
        self, log: CommitLog, spark_catalog: str, head: str, folder: Path | None, *, pinned: bool
    ) -> dict[str, str]:
        """Write the catalog of a job with the tables of a hash; return the configuration of Spark.

        Args:
            pinned: True if the job only reads the hash. The catalog then also contains main at the base of the hash,
                under the names of `rows_on_main`.
        """
        assert folder, "a job has a folder"
        shown = [*self._shown(self._in_newest_files(log.tables(head)))]
        if pinned:
            base = log.fork_point(head)
            shown += self._shown(self._in_newest_files(log.tables(base)), f"@{MAIN}#{base}")
        write_job_catalog(folder, spark_catalog, shown, [*log.namespaces(head)], self.tables.io)
        (folder / f"{spark_catalog}{_HEAD}").write_text(head)
        properties = job_catalog_properties(folder, spark_catalog, self.warehouse)
        prefix = f"spark.sql.catalog.{spark_catalog}"
        return {f"{prefix}.{key}" if key else prefix: value for key, value in properties.items()}

    def collect(self, log: CommitLog, branch: str, spark_catalog: str, folder: Path) -> LogChange | None:
        """Return the commit of a job's changes to the tables in its catalog; None if it changed nothing.

        Raises:
            NoSuchBranch: the branch does not exist, or another branch has its name.
            CatalogRefused: the job's catalog cannot be read, or a table was replaced by another one.
            ServiceUnavailable: another commit changed a table on the branch meanwhile.
        """
        try:
            read = read_job_catalog(folder, spark_catalog)
            if read is None:
                return None
            locations, namespaces = read
            after = {name: self._version(location) for name, location in locations.items()}
        except (sqlite3.DatabaseError, OSError, ValueError, ValidationError) as error:
            # An error would quote the content of the file, which can be any file that the job named.
            reason = type(error).__name__
            raise CatalogRefused(f"the catalog of the job cannot be read ({reason}): run the pipeline again") from None
        head, parent = (folder / f"{spark_catalog}{_HEAD}").read_text(), log.head(branch)
        since, before = _commits_since(log, branch, head), log.tables(head)
        known = {*log.namespaces(head)} | {name.rpartition(".")[0] for name in before}
        commit = log.next_commit(
            branch,
            message="Written by a job",
            tables={
                name: after.get(name)
                for name in sorted({*before, *after})
                if versions_differ(before.get(name), after.get(name))
            },
            namespaces={name: {} for name in sorted(namespaces - known)},
        )
        if not (commit.tables or commit.namespaces) or any(_is_repeat(commit, each) for each in since):
            return None
        for name, version in commit.tables.items():
            earlier = before.get(name)
            if earlier and version and earlier.uuid != version.uuid:
                raise CatalogRefused(
                    f"the job replaced the table {name} of main by another one: "
                    "use CREATE OR REPLACE TABLE, not DROP TABLE, RENAME or register_table"
                )
        present = log.tables(parent)
        if moved := [name for name in commit.tables if versions_differ(present.get(name), before.get(name))]:
            raise ServiceUnavailable(f"another commit changed {', '.join(moved)} on {branch} meanwhile")
        return [commit], {branch: (parent, commit.hash)}, ()

    def _in_newest_files(self, versions: Mapping[str, LoggedVersion]) -> dict[str, LoggedVersion]:
        present = self.tables.load_all()
        return {name: in_newest_file(version, present.get(name)) for name, version in versions.items()}

    def _shown(self, versions: Mapping[str, LoggedVersion], suffix: str = "") -> Iterator[ShownTable]:
        for name, version in versions.items():
            metadata = self.tables.read_metadata(version.location)
            yield ShownTable(name + suffix, version.snapshot_id, metadata)

    def _version(self, location: str) -> LoggedVersion | None:
        metadata = self.tables.read_metadata(location)
        return logged_version(metadata, location, metadata.current_snapshot_id)


def _commits_since(log: CommitLog, branch: str, head: str) -> list[LogCommit]:
    """Return the commits of a branch after a hash.

    Raises:
        NoSuchBranch: the hash is not in its history: another branch has its name now.
    """
    since: list[LogCommit] = []
    for commit in log.ancestors(log.head(branch)):
        if commit.hash == head:
            return since
        since.append(commit)
    raise NoSuchBranch(f"the branch {branch} was replaced: its history lacks {head[:12]}")


def _is_repeat(commit: LogCommit, earlier: LogCommit) -> bool:
    """Return True if an earlier commit made the same changes to tables and namespaces."""
    return (commit.tables, commit.namespaces, commit.message) == (earlier.tables, earlier.namespaces, earlier.message)
