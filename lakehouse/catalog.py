"""The port for catalogs: what Sluice needs of a catalog that has branches, in the domain's terms.

`lakehouse/nessie/` implements it, `lakehouse/open_catalog.py` chooses the implementation, and
`tests/component/test_catalog_contract.py` states what every implementation must do (ADR 21).
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

    Both count: Iceberg's own branches share one metadata file.
    """

    metadata_location: str
    """The path of the metadata file."""
    snapshot_id: int | None
    """The snapshot that readers of the branch see; None for a table without one."""
    identity: str = ""
    """What readers see beside the snapshot, where several metadata files show the same; else empty."""

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same version."""
        if not isinstance(other, TableVersion):
            return NotImplemented
        if self.identity and other.identity:
            return (self.identity, self.snapshot_id) == (other.identity, other.snapshot_id)
        return (self.metadata_location, self.snapshot_id) == (other.metadata_location, other.snapshot_id)

    def __hash__(self) -> int:
        """Return what equal versions share."""
        return hash(self.snapshot_id)


@dataclass(frozen=True)
class TableDiff:
    """A table that differs between two hashes."""

    name: str
    """Its name, which `sluice.identifiers.joined_name` makes of its key."""
    before: TableVersion | None
    """None where there was no such table."""
    after: TableVersion | None
    """None where the table was dropped."""


@dataclass(frozen=True)
class NamespaceDiff:
    """A namespace that differs between two hashes."""

    elements: tuple[str, ...]
    """Its key."""
    before: Mapping[str, str] | None
    """Its properties; None where there was no such namespace."""
    after: Mapping[str, str] | None
    """Its properties; None where it was dropped."""


@dataclass(frozen=True)
class TableCommit:
    """What a commit makes of one table."""

    name: str
    version: TableVersion | None
    """None drops the table; its files stay."""
    schema_id: int = 0
    spec_id: int = 0
    sort_order_id: int = 0


@dataclass(frozen=True)
class CommitInfo:
    """One commit."""

    hash: str
    parent: str
    """The hash before it; empty for the first commit of all."""
    message: str
    committed_at: datetime
    properties: Mapping[str, str] = field(default_factory=dict)
    merged: str = ""
    """The hash of a branch that it merged, where the catalog records it as a parent; empty for other commits."""


@dataclass(frozen=True)
class BranchInfo:
    """A branch, with its newest commit."""

    name: str
    head: str
    committed_at: datetime
    """When the newest commit was made."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """The properties of the newest commit."""


class BranchCatalog(Protocol):
    """A catalog with branches, as Sluice uses it.

    Every method raises `ServiceUnavailable` when the catalog does not answer, `BadEnvironment` when it does not
    accept the identity of this process, and `CatalogRefused` when it refuses a request for good.
    """

    @property
    def main(self) -> str:
        """The branch that readers read."""

    @property
    def capabilities(self) -> CatalogCapabilities:
        """What this catalog can do."""

    def identity(self) -> str:
        """Return what distinguishes this catalog's content from every other's, also after a loss of all data."""

    def check_identity(self, expected: str) -> None:
        """Make sure that the catalog is the one of this identity.

        Raises:
            CatalogChanged: it is another one, or it lost its data.
        """

    def probe(self) -> str:
        """Try on scratch tables what the catalog declares of commits to several; return what holds.

        It is empty where nothing needs to be tried.

        Raises:
            CatalogRefused: it does not do what it declares.
        """

    def initialize_main(self) -> str:
        """Make sure that main can be branched and merged into, by a first commit if it is empty; return its head."""

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
            CatalogRefused: there is a branch of this name at another hash.
        """

    def create_orphan_branch(self, name: str) -> str:
        """Create a branch that shares nothing with main, if it does not exist; return its head."""

    def copy_branch(self, name: str, of: str, head: str) -> None:
        """Create the branch `name` at the hash `head` of the branch `of`. A repeat changes nothing.

        Raises:
            NoSuchBranch: the branch `of` is gone, and it was not copied before.
            CatalogRefused: there is a branch of this name at another hash.
        """

    def delete_branch(self, name: str) -> None:
        """Delete a branch, however often its head moves meanwhile; it may be gone already.

        This is what fences an attempt: each later commit to the branch fails.
        """

    def delete_branch_at(self, name: str, head: str) -> None:
        """Delete a branch only if it is still at the hash `head`; it may be gone already."""

    def fork_point(self, branch: str) -> str:
        """Return the newest hash that a branch has in common with main.

        Raises:
            NoSuchBranch: the branch is gone.
        """

    def table_version(self, branch: str, name: str, at: str | None = None) -> TableVersion | None:
        """Return the version of a table on a branch, at a hash of it if given, or None if it is not there."""

    def list_tables(self, branch: str, at: str) -> list[str]:
        """Return the names of the tables of a branch at a hash of it, in order."""

    def diff(self, base: str, branch: str, head: str) -> list[TableDiff]:
        """Return the tables that differ between the hash `base` and a branch at `head`.

        Namespaces are left out: see `diff_namespaces`. What is neither table nor namespace, such as a view, is in, so
        that it is noticed.

        Raises:
            NoSuchBranch: the branch is gone.
        """

    def diff_namespaces(self, base: str, branch: str, head: str) -> list[NamespaceDiff]:
        """Return the namespaces that differ between the hash `base` and a branch at `head`, by their properties too.

        Raises:
            NoSuchBranch: the branch is gone.
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

        Without tables, it is a commit of properties alone.

        Args:
            head: the hash that the branch is expected at, as far as these tables are concerned.
            create_namespaces_for: tables to come, whose namespaces the commit creates where they are missing.

        Raises:
            NoSuchBranch: the branch is gone: it was fenced.
            ServiceUnavailable: another commit changed one of the tables since `head`.
        """

    def find_conflicts(self, branch: str, head: str) -> list[str]:
        """Return the tables that main changed too, so that publishing `head` now would fail. Changes nothing.

        Raises:
            NoSuchBranch: the branch is gone.
        """

    def publish(
        self, branch: BranchRef, head: str, author: str, message: str, properties: Mapping[str, str]
    ) -> Publication:
        """Merge exactly the hash `head` of a branch into main, by one commit with these properties.

        It succeeds only if main holds each changed table as it was at the branch's base. A repeat changes nothing and
        returns the first publication.

        Raises:
            NoSuchBranch: the branch is gone: it was fenced.
        """

    def find_publication(self, head: str, since: str) -> Publication | None:
        """Return the publication of the hash `head` after the hash `since` of main; the empty hash means ever."""

    def find_published(self, properties: Mapping[str, str], since: str = "") -> CommitInfo | None:
        """Return the newest commit on main that carries all of these properties, or None.

        Args:
            since: only commits after this hash of main; the cost is then that of the history after it.
        """

    def list_published(self, properties: Mapping[str, str], after: datetime) -> Iterator[CommitInfo]:
        """Yield the commits on main that carry all of these properties and were made after a time, the newest first."""

    def history(self, branch: str) -> Iterator[CommitInfo]:
        """Yield the commits of a branch, the newest first; the branch's own come before those of main."""

    def spark_properties(
        self, spark_catalog: str, branch: str, at: str | None = None, folder: Path | None = None
    ) -> dict[str, str]:
        """Return the Spark configuration of a catalog named `spark_catalog` that is bound to a branch.

        Args:
            at: pin it to this hash: then the job can read, and cannot write.
            folder: the job's own, in which the catalog may keep what the job sees.
        """

    def audited_catalog(self, spark_catalog: str, branch: str, head: str, folder: Path) -> tuple[str, dict[str, str]]:
        """Return the name of a Spark catalog in which a job that writes on a branch reads exactly the hash `head`.

        With it comes its configuration; it may be the catalog that is bound to the branch.
        """

    def record_job(self, branch: str, spark_catalog: str, folder: Path) -> None:
        """Commit to a branch what a job wrote that has ended, however it ended. A repeat changes nothing.

        Only for a catalog whose jobs do not write to it directly; the folder is that of `spark_properties`.

        Raises:
            NoSuchBranch: the branch is gone: it was fenced.
        """

    def explain_absence(self, lines: Iterable[str]) -> str | None:
        """Return how the catalog was away while a job ran, if lines of the job's output tell so, or None."""

    def explain_refused_write(self, lines: Iterable[str]) -> str | None:
        """Return what the server refused a job, if lines of the job's output tell so, or None."""
