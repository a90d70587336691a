"""The port for catalogs: the operations that Sluice needs of a catalog with branches, in the domain's terms.

`lakehouse/nessie/` implements it, `lakehouse/open_catalog.py` chooses the implementation, and
`tests/component/catalog_contract/` states the behaviour required of every implementation (ADR 21).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.publishing.capabilities import CatalogCapabilities


@dataclass(frozen=True, eq=False)
class TableVersion:
    """One version of an Iceberg table: a metadata file and a snapshot.

    Both are needed, because Iceberg's own branches share one metadata file.
    """

    metadata_location: str
    """Path of the metadata file."""
    snapshot_id: int | None
    """Snapshot that readers of the branch see; None for a table without snapshots."""
    identity: str = ""
    """Identity of the table and its layout, where several metadata files may show the same version; else empty."""

    def __eq__(self, other: object) -> bool:
        """Return True if both are the same version."""
        if not isinstance(other, TableVersion):
            return NotImplemented
        if self.identity and other.identity:
            return (self.identity, self.snapshot_id) == (other.identity, other.snapshot_id)
        return (self.metadata_location, self.snapshot_id) == (other.metadata_location, other.snapshot_id)

    def __hash__(self) -> int:
        """Return a hash that is the same for equal versions."""
        return hash(self.snapshot_id)


@dataclass(frozen=True)
class TableDiff:
    """A table that differs between two hashes."""

    name: str
    """Name of the table, made from its key by `sluice.identifiers.joined_name`."""
    before: TableVersion | None
    """Version before; None if the table did not exist."""
    after: TableVersion | None
    """Version after; None if the table was dropped."""


@dataclass(frozen=True)
class NamespaceDiff:
    """A namespace that differs between two hashes."""

    elements: tuple[str, ...]
    """Key of the namespace."""
    before: Mapping[str, str] | None
    """Properties before; None if the namespace did not exist."""
    after: Mapping[str, str] | None
    """Properties after; None if the namespace was dropped."""


@dataclass(frozen=True)
class TableCommit:
    """New version of one table in a commit."""

    name: str
    version: TableVersion | None
    """Version to commit. None drops the table; its files stay."""
    schema_id: int = 0
    spec_id: int = 0
    sort_order_id: int = 0


@dataclass(frozen=True)
class CommitInfo:
    """One commit."""

    hash: str
    parent: str
    """Hash of the commit before it; empty for the first commit of all."""
    message: str
    committed_at: datetime
    properties: Mapping[str, str] = field(default_factory=dict)
    merged: str = ""
    """Hash of the branch that the commit merged, if the catalog records it as a parent; empty for other commits."""


@dataclass(frozen=True)
class BranchInfo:
    """A branch, with its newest commit."""

    name: str
    head: str
    committed_at: datetime
    """Time of the newest commit."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the newest commit."""


class BranchCatalog(Protocol):
    """A catalog with branches, as Sluice uses it.

    Every method raises `ServiceUnavailable` when the catalog does not answer, `BadEnvironment` when the catalog does
    not accept the identity of this process, and `CatalogRefused` when it refuses a request permanently.
    """

    @property
    def main(self) -> str:
        """Branch that readers read."""

    @property
    def capabilities(self) -> CatalogCapabilities:
        """Capabilities of this catalog."""

    def identity(self) -> str:
        """Return a unique identity of this catalog's content. It changes after a loss of all data."""

    def check_identity(self, expected: str) -> None:
        """Verify that the catalog has this identity.

        Raises:
            CatalogChanged: it is another catalog, or it lost its data.
        """

    def probe(self) -> str:
        """Test the catalog's guarantee for commits to several tables on scratch tables; return the result for people.

        The result is empty if there is nothing to test.

        Raises:
            CatalogRefused: the catalog breaks its guarantee.
        """

    def initialize_main(self) -> str:
        """Make main ready for branches and merges, by a first commit if it is empty; return its head."""

    def head(self, branch: str) -> str:
        """Return the head of a branch.

        Raises:
            NoSuchBranch: there is none of this name.
        """

    def find_head(self, branch: str) -> str | None:
        """Return the head of a branch, or None if there is none of this name."""

    def list_branches(self, prefix: str = "") -> list[BranchInfo]:
        """Return every branch whose name begins with `prefix`."""

    def create_branch(self, name: str, base: str) -> None:
        """Create a branch of main at the hash `base`. A repeat changes nothing.

        Raises:
            CatalogRefused: a branch of this name exists at another hash.
        """

    def create_orphan_branch(self, name: str) -> str:
        """Create a branch that shares no commit with main, if it does not exist; return its head."""

    def copy_branch(self, name: str, of: str, head: str) -> None:
        """Create the branch `name` at the hash `head` of the branch `of`. A repeat changes nothing.

        Raises:
            NoSuchBranch: the branch `of` does not exist, and was not copied before.
            CatalogRefused: a branch of this name exists at another hash.
        """

    def delete_branch(self, name: str) -> None:
        """Delete a branch, even if its head moves meanwhile. A missing branch is not an error.

        The deletion fences an attempt: every later commit to the branch fails.
        """

    def delete_branch_at(self, name: str, head: str) -> None:
        """Delete a branch only if it is still at the hash `head`. A missing branch is not an error."""

    def fork_point(self, branch: str) -> str:
        """Return the newest hash that a branch has in common with main.

        Raises:
            NoSuchBranch: the branch does not exist.
        """

    def table_version(self, branch: str, name: str, at: str | None = None) -> TableVersion | None:
        """Return the version of a table at a hash of a branch, by default its head; None if there is no such table."""

    def list_tables(self, branch: str, at: str) -> list[str]:
        """Return the sorted names of the tables at a hash of a branch."""

    def diff(self, base: str, branch: str, head: str) -> list[TableDiff]:
        """Return the tables that differ between the hash `base` and a branch at `head`.

        Namespaces are left out: see `diff_namespaces`. Other content, such as a view, is included so that it is
        noticed.

        Raises:
            NoSuchBranch: the branch does not exist.
        """

    def diff_namespaces(self, base: str, branch: str, head: str) -> list[NamespaceDiff]:
        """Return the namespaces whose existence or properties differ between the hash `base` and a branch at `head`.

        Raises:
            NoSuchBranch: the branch does not exist.
        """

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

        Without tables, the commit carries properties alone.

        Args:
            head: the hash at which the branch is expected, as far as these tables are concerned.
            create_namespaces_for: future tables; the commit creates their missing namespaces.

        Raises:
            NoSuchBranch: the branch does not exist: it was fenced.
            ServiceUnavailable: another commit changed one of the tables since `head`.
        """

    def find_conflicts(self, branch: str, head: str) -> list[str]:
        """Return the tables that main changed too, so that publishing `head` now would fail. Changes nothing.

        Raises:
            NoSuchBranch: the branch does not exist.
        """

    def publish(
        self, branch: BranchRef, head: str, author: str, message: str, properties: Mapping[str, str]
    ) -> Publication:
        """Merge exactly the hash `head` of a branch into main, by one commit with these properties.

        The merge succeeds only if each changed table on main is still as at the branch's base. A repeat changes nothing
        and returns the first publication.

        Raises:
            NoSuchBranch: the branch does not exist: it was fenced.
        """

    def find_publication(self, head: str, since: str) -> Publication | None:
        """Return the publication of the hash `head` after the hash `since` of main, or ever if `since` is empty."""

    def find_published(self, properties: Mapping[str, str], since: str = "") -> CommitInfo | None:
        """Return the newest commit on main that carries all of these properties, or None.

        Args:
            since: only commits after this hash of main count. The cost is then that of reading the history after it.
        """

    def list_published(self, properties: Mapping[str, str], after: datetime) -> Iterator[CommitInfo]:
        """Yield the commits on main after a time that carry all of these properties, newest first."""

    def history(self, branch: str) -> Iterator[CommitInfo]:
        """Yield the commits of a branch, newest first: its own, then those of main."""

    def spark_properties(
        self, spark_catalog: str, branch: str, at: str | None = None, folder: Path | None = None
    ) -> dict[str, str]:
        """Return the Spark configuration of a catalog named `spark_catalog` that is bound to a branch.

        Args:
            at: pin the catalog to this hash. The job can then read but not write.
            folder: the job's own folder. The catalog may store the job's view of the tables there.
        """

    def audited_catalog(self, spark_catalog: str, branch: str, head: str, folder: Path) -> tuple[str, dict[str, str]]:
        """Return the name and configuration of a Spark catalog that shows exactly the hash `head`.

        It may be the catalog that is bound to the branch, where a job that writes to the branch reads this hash.
        """

    def record_job(self, branch: str, spark_catalog: str, folder: Path) -> None:
        """Commit the changes of an ended job to a branch, however the job ended. A repeat changes nothing.

        Only needed for a catalog whose jobs do not write to it directly. The folder is that of `spark_properties`.

        Raises:
            NoSuchBranch: the branch does not exist: it was fenced.
        """

    def explain_absence(self, lines: Iterable[str]) -> str | None:
        """Return a description of the catalog's outage if the output of a job reports one, else None."""

    def explain_refused_write(self, lines: Iterable[str]) -> str | None:
        """Return a description of the write that the server refused if the output of a job reports one, else None."""
