"""What a job sees of a branch before it starts, and what it made of it when it has ended."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lakehouse.iceberg_catalog.branches import Made
from lakehouse.iceberg_catalog.commit_log import MAIN, CommitLog, LogCommit, LoggedVersion, is_other, now
from lakehouse.iceberg_catalog.job_catalog import (
    ShownTable,
    job_catalog_properties,
    read_job_catalog,
    write_job_catalog,
)
from lakehouse.iceberg_catalog.tables import CatalogTables
from lakehouse.iceberg_catalog.versions import logged_version

_HEAD = ".head"


@dataclass(frozen=True)
class JobCatalogs:
    """Writes and reads the catalogs of jobs. Needs the tables of the catalog, and where new tables are written."""

    tables: CatalogTables
    warehouse: str

    def prepare(
        self, log: CommitLog, spark_catalog: str, head: str, folder: Path | None, *, pinned: bool
    ) -> dict[str, str]:
        """Write the catalog of a job, with the tables of a hash in it; return the configuration of Spark.

        Args:
            pinned: whether the job reads the hash, and main as it was at its base under the names of `rows_on_main`.
        """
        assert folder, "a job has a folder"
        shown = [*self._shown(log.tables(head))]
        if pinned:
            base = log.fork_point(head)
            shown += self._shown(log.tables(base), f"@{MAIN}#{base}")
        write_job_catalog(folder, spark_catalog, shown, [*log.namespaces(head)], self.tables.io)
        (folder / f"{spark_catalog}{_HEAD}").write_text(head)
        properties = job_catalog_properties(folder, spark_catalog, self.warehouse)
        prefix = f"spark.sql.catalog.{spark_catalog}"
        return {f"{prefix}.{key}" if key else prefix: value for key, value in properties.items()}

    def collect(self, log: CommitLog, branch: str, spark_catalog: str, folder: Path) -> Made | None:
        """Return the commit of what a job made of the tables in its catalog; None if it changed nothing."""
        read = read_job_catalog(folder, spark_catalog)
        if read is None:
            return None
        locations, namespaces = read
        head, parent = (folder / f"{spark_catalog}{_HEAD}").read_text(), log.head(branch)
        before = log.tables(head)
        after = {name: self._version(location) for name, location in locations.items()}
        known = {*log.namespaces(head)} | {name.rpartition(".")[0] for name in before}
        commit = LogCommit(
            parent=parent,
            message="Written by a job",
            at=now(),
            tables={
                name: after.get(name)
                for name in sorted({*before, *after})
                if is_other(before.get(name), after.get(name))
            },
            namespaces={name: {} for name in sorted(namespaces - known)},
        )
        if not (commit.tables or commit.namespaces) or commit.tables.items() <= log.tables(parent).items():
            return None
        return [commit], {branch: (parent, commit.hash)}, ()

    def _shown(self, versions: Mapping[str, LoggedVersion], suffix: str = "") -> Iterator[ShownTable]:
        for name, version in versions.items():
            metadata = self.tables.read_metadata(version.location)
            yield ShownTable(name + suffix, version.location, version.snapshot_id, metadata)

    def _version(self, location: str) -> LoggedVersion | None:
        metadata = self.tables.read_metadata(location)
        return logged_version(metadata, location, metadata.current_snapshot_id)
