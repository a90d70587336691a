"""The port for catalogs, implemented by Nessie.

References go through PyNessie, everything else through the client in `rest_v2`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pynessie
from pynessie.error import NessieConflictException, NessieNotFoundException

from lakehouse.catalog import BranchInfo, CommitInfo, NamespaceDiff, TableCommit, TableDiff, TableVersion
from lakehouse.nessie.capabilities import CAPABILITIES
from lakehouse.nessie.descriptions import branch_info, commit_info
from lakehouse.nessie.errors import NessieRequestRefused, translate_nessie_errors
from lakehouse.nessie.filters import named_with_prefix
from lakehouse.nessie.merge import conflicting_keys, dry_run, find_commit, find_merge, list_commits, merge
from lakehouse.nessie.operations import (
    ROOT_NAMESPACE,
    is_namespace,
    namespace_diff,
    no_change_operation,
    put_namespace_operation,
    table_diff,
    table_operation,
    table_version,
)
from lakehouse.nessie.rest_v2 import NessieRest
from lakehouse.nessie.spark import explain_absence, explain_refused_write, spark_properties
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.errors import CatalogChanged, NoSuchBranch, ServiceUnavailable
from sluice.identifiers import name_elements, namespaces_of

_FENCE_TRIES = 50


class NessieCatalog:
    """Nessie as an implementation of the port `lakehouse.catalog.BranchCatalog`."""

    def __init__(
        self, uri: str, main: str = "main", token: str = "", writer_token: Callable[[], str] = lambda: ""
    ) -> None:
        self.uri = uri
        self.main = main
        self.capabilities = CAPABILITIES
        self._writer_token = writer_token
        self._rest = NessieRest(uri, token)
        self._v1 = pynessie.init(
            config_dict={
                "endpoint": uri.removesuffix("v2") + "v1",
                "verify": True,
                "default_branch": main,
                "auth": {"timeout": 30, **({"type": "bearer", "token": token} if token else {"type": "none"})},
            }
        )

    @cached_property
    def _root(self) -> str:
        """Hash before all history, which is the same in every repository."""
        return str(self._rest.config()["noAncestorHash"])

    def identity(self) -> str:
        """Return the creation time of the repository."""
        with translate_nessie_errors(self.uri):
            return str(self._rest.config()["repositoryCreationTimestamp"])

    def check_identity(self, expected: str) -> None:
        """Verify that the repository has this creation time."""
        created = self.identity()
        if created != expected:
            raise CatalogChanged(
                f"Nessie at {self.uri} has another repository than when the run began "
                f"(created {created}, not {expected}); nothing was merged"
            )

    def probe(self) -> str:
        """Return an empty text: a merge is one commit of Nessie, however many tables it changes."""
        return ""

    def initialize_main(self) -> str:
        """Give an empty main its first commit; return its head.

        A branch of an empty main would share no ancestor with it, and Nessie would refuse to merge it.
        """
        with translate_nessie_errors(self.uri):
            head = self.head(self.main)
            if head != self._root:
                return head
            begin = [put_namespace_operation([ROOT_NAMESPACE])]
            try:
                return self._rest.commit(self.main, head, "Begin the lake", begin, {})
            except NessieRequestRefused as error:
                if error.status != 409:
                    raise
                return self.head(self.main)  # another run was first

    def head(self, branch: str) -> str:
        """Return the head of a branch."""
        with translate_nessie_errors(self.uri):
            try:
                return str(self._v1.get_reference(branch).hash_)
            except NessieNotFoundException as error:
                raise NoSuchBranch(f"the branch {branch} does not exist") from error

    def find_head(self, branch: str) -> str | None:
        """Return the head of a branch, or None if there is none of this name."""
        try:
            return self.head(branch)
        except NoSuchBranch:
            return None

    def list_branches(self, prefix: str = "") -> list[BranchInfo]:
        """Return every branch whose name begins with `prefix`."""
        with translate_nessie_errors(self.uri):
            references = self._rest.references(named_with_prefix(prefix) if prefix else "")
            return [branch_info(each) for each in references if each["type"] == "BRANCH"]

    def create_branch(self, name: str, base: str) -> None:
        """Create a branch of main at the hash `base`. A repeat changes nothing."""
        with translate_nessie_errors(self.uri):
            try:
                self._v1.create_branch(name, self.main, base)
            except NessieConflictException:
                if self.head(name) != base:
                    raise

    def create_orphan_branch(self, name: str) -> str:
        """Create a branch at the root of all history, if it does not exist; return its head."""
        with translate_nessie_errors(self.uri):
            try:
                return self.head(name)
            except NoSuchBranch:
                self._rest.create_orphan(name, self.main, self._root)
                return self.head(name)

    def copy_branch(self, name: str, of: str, head: str) -> None:
        """Create the branch `name` at the hash `head` of the branch `of`. A repeat changes nothing."""
        with translate_nessie_errors(self.uri):
            try:
                self._v1.create_branch(name, of, head)
            except (NessieConflictException, NessieNotFoundException):
                if self.head(name) != head:
                    raise

    def delete_branch(self, name: str) -> None:
        """Delete a branch, even if its head moves meanwhile. A missing branch is not an error."""
        with translate_nessie_errors(self.uri):
            for _ in range(_FENCE_TRIES):
                try:
                    self._v1.delete_branch(name, self.head(name))
                    return
                except (NoSuchBranch, NessieNotFoundException):
                    return
                except NessieConflictException:
                    continue
            self._v1.delete_branch(name, self.head(name))

    def delete_branch_at(self, name: str, head: str) -> None:
        """Delete a branch only if it is still at the hash `head`. A missing branch is not an error."""
        with translate_nessie_errors(self.uri), suppress(NessieNotFoundException, NessieConflictException):
            self._v1.delete_branch(name, head)

    def fork_point(self, branch: str) -> str:
        """Return the newest hash that a branch has in common with main."""
        with translate_nessie_errors(self.uri):
            return str(dry_run(self._rest, self._main_and_head(), branch, self.head(branch))["commonAncestor"])

    def table_version(self, branch: str, name: str, at: str | None = None) -> TableVersion | None:
        """Return the version of a table at a hash of a branch, by default its head; None if there is no such table."""
        with translate_nessie_errors(self.uri):
            return table_version(self._rest.content(branch, name_elements(name), at or ""))

    def list_tables(self, branch: str, at: str) -> list[str]:
        """Return the sorted names of the tables at a hash of a branch."""
        with translate_nessie_errors(self.uri):
            return sorted(self._rest.tables(branch, at))

    def diff(self, base: str, branch: str, head: str) -> list[TableDiff]:
        """Return the tables that differ between the hash `base` and a branch at `head`."""
        return [table_diff(each) for each in self._differences(base, branch, head) if not is_namespace(each)]

    def diff_namespaces(self, base: str, branch: str, head: str) -> list[NamespaceDiff]:
        """Return the namespaces that differ between the hash `base` and a branch at `head`."""
        return [namespace_diff(each) for each in self._differences(base, branch, head) if is_namespace(each)]

    def commit_tables(
        self,
        branch: str,
        head: str,
        message: str,
        tables: Sequence[TableCommit] = (),
        properties: Mapping[str, str] | None = None,
        create_namespaces_for: Collection[str] = (),
    ) -> str:
        """Commit new versions of tables on a branch, all or none; return the new head."""
        with translate_nessie_errors(self.uri):
            contents = {each.name: self._rest.content(branch, name_elements(each.name), head) for each in tables}
            created = [table.name for table in tables if table.version and contents[table.name] is None]
            operations = self._missing_namespaces(branch, head, [*create_namespaces_for, *created])
            operations += [table_operation(table, (contents[table.name] or {}).get("id")) for table in tables]
            try:
                return self._rest.commit(branch, head, message, operations or [no_change_operation()], properties or {})
            except NessieRequestRefused as error:
                if error.status == 404:
                    raise NoSuchBranch(f"the branch {branch} does not exist") from error
                if error.status == 409:
                    raise ServiceUnavailable(f"{branch} moved meanwhile") from error
                raise

    def find_conflicts(self, branch: str, head: str) -> list[str]:
        """Return the tables that main changed too, so that publishing `head` now would fail. Found by a dry run."""
        with translate_nessie_errors(self.uri):
            return conflicting_keys(dry_run(self._rest, self._main_and_head(), branch, head))

    def publish(
        self, branch: BranchRef, head: str, author: str, message: str, properties: Mapping[str, str]
    ) -> Publication:
        """Merge exactly the hash `head` of a branch into main, by one commit with these properties."""
        meta = {
            "message": message,
            "authors": [author],
            "allProperties": {key: [value] for key, value in properties.items()},
        }
        with translate_nessie_errors(self.uri):
            publication = merge(self._rest, self._main_and_head(), branch, head, meta)
        if publication and publication.merged:
            return publication
        # An earlier request of this publish may have merged it. This request then has nothing to merge, or conflicts
        # with the tables of the first.
        publication = self.find_publication(head, branch.base) or publication
        if publication is None:
            raise ServiceUnavailable("Nessie merged nothing, and the history of main does not say why")
        return publication

    def find_publication(self, head: str, since: str) -> Publication | None:
        """Return the merge that brought the hash `head` into main after the hash `since`, or None."""
        with translate_nessie_errors(self.uri):
            return find_merge(self._rest, self.main, head, since)

    def find_published(self, properties: Mapping[str, str], since: str = "") -> CommitInfo | None:
        """Return the newest commit on main, after `since` if given, that carries all of these properties, or None."""
        with translate_nessie_errors(self.uri):
            return find_commit(self._rest, self.main, properties, since)

    def list_published(self, properties: Mapping[str, str], after: datetime) -> Iterator[CommitInfo]:
        """Yield the commits on main after a time that carry all of these properties, newest first."""
        with translate_nessie_errors(self.uri):
            yield from list_commits(self._rest, self.main, properties, after)

    def history(self, branch: str) -> Iterator[CommitInfo]:
        """Yield the commits of a branch, newest first."""
        with translate_nessie_errors(self.uri):
            for commit in self._rest.history(branch):
                yield commit_info(commit)

    def spark_properties(
        self, spark_catalog: str, branch: str, at: str | None = None, folder: Path | None = None
    ) -> dict[str, str]:
        """Return the Spark configuration of a catalog that is bound to a branch, with the identity of a writer."""
        return spark_properties(spark_catalog, self.uri, branch, at, self._writer_token())

    def audited_catalog(self, spark_catalog: str, branch: str, head: str, folder: Path) -> tuple[str, dict[str, str]]:
        """Return the catalog of the branch: only this job writes on the branch."""
        return spark_catalog, {}

    def record_job(self, branch: str, spark_catalog: str, folder: Path) -> None:
        """Do nothing: a job commits to the branch itself."""

    def explain_absence(self, lines: Iterable[str]) -> str | None:
        """Return a description of Nessie's outage if the output of a job reports one, else None."""
        return explain_absence(lines)

    def explain_refused_write(self, lines: Iterable[str]) -> str | None:
        """Return a description of the write that Nessie refused if the output of a job reports one, else None."""
        return explain_refused_write(lines)

    def _differences(self, base: str, branch: str, head: str) -> list[dict[str, Any]]:
        with translate_nessie_errors(self.uri):
            try:
                return list(self._rest.differences(base, branch, head))
            except NessieRequestRefused as error:
                if error.status == 404:
                    raise NoSuchBranch(f"the branch {branch} does not exist") from error
                raise

    def _main_and_head(self) -> tuple[str, str]:
        return self.main, self.head(self.main)

    def _missing_namespaces(self, branch: str, head: str, tables: Iterable[str]) -> list[dict[str, Any]]:
        """Return the operations that create the missing namespaces of tables on a branch.

        PyNessie is not used here: it cannot read a namespace with properties.
        """
        names = map(list, sorted({namespace for table in tables for namespace in namespaces_of(table)}))
        return [put_namespace_operation(each) for each in names if self._rest.content(branch, each, head) is None]
