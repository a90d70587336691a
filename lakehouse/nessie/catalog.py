"""The catalog: branches, merges and the places of tables, in Nessie.

References and contents go through PyNessie, the rest through `nessie_v2`.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import pynessie
from pynessie.error import NessieConflictException, NessieNotFoundException
from pynessie.model import Branch, ContentKey, IcebergTable

from lakehouse.nessie.errors import translate_nessie_errors
from lakehouse.nessie.operations import ROOT_NAMESPACE, put_namespace_operation
from lakehouse.nessie.rest_v2 import NessieRequestRefused, NessieRest
from sluice.errors import CatalogChanged, ServiceUnavailable

_FENCE_TRIES = 50
_PLACES = 1000
"""How many places of tables at a hash are remembered."""


class NoSuchBranch(Exception):
    """Raised when a branch that should be there is not."""


class ChangedKey:
    """One key that differs between two hashes."""

    def __init__(self, difference: dict[str, Any]) -> None:
        self.name: str = ".".join(difference["key"]["elements"])
        self.kind: str = (difference.get("to") or difference["from"])["type"]
        self.before: str | None = _metadata(difference.get("from"))
        """The Iceberg metadata file before, if there was one."""
        self.after: str | None = _metadata(difference.get("to"))
        """The Iceberg metadata file after, if there is one."""


class NessieCatalog:
    """Nessie, as Sluice uses it.

    Every method raises `ServiceUnavailable` when Nessie does not answer.
    """

    def __init__(self, uri: str, main: str = "main", token: str = "") -> None:
        self.uri = uri
        self.main = main
        self.v2 = NessieRest(uri, token)
        self._places: dict[tuple[str, str], str | None] = {}
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
        """The hash before all history, which is the same in every repository."""
        return str(self.v2.config()["noAncestorHash"])

    def identity(self) -> str:
        """Return what tells this repository from every other: when it was created."""
        with translate_nessie_errors(self.uri):
            return str(self.v2.config()["repositoryCreationTimestamp"])

    def check_identity(self, expected: str) -> None:
        """Make sure that the repository is the one of this identity.

        Raises:
            CatalogChanged: it is another, or it came back empty.
        """
        found = self.identity()
        if found != expected:
            raise CatalogChanged(
                f"Nessie at {self.uri} holds another repository than when the run began "
                f"(created {found}, then {expected}); nothing was merged"
            )

    def head(self, branch: str) -> str:
        """Return the hash that a branch is at.

        Raises:
            NoSuchBranch: it is not there.
        """
        with translate_nessie_errors(self.uri):
            try:
                return str(self._v1.get_reference(branch).hash_)
            except NessieNotFoundException as error:
                raise NoSuchBranch(branch) from error

    def find(self, branch: str) -> str | None:
        """Return the hash that a branch is at, or None if it is not there."""
        try:
            return self.head(branch)
        except NoSuchBranch:
            return None

    def exists(self, branch: str) -> bool:
        """Return whether there is such a branch."""
        return self.find(branch) is not None

    def branches(self, prefix: str = "") -> dict[str, str]:
        """Return the hash of every branch whose name begins with `prefix`, by name."""
        with translate_nessie_errors(self.uri):
            listed = self._v1.list_references(fetch_all=False).references
        return {ref.name: str(ref.hash_) for ref in listed if isinstance(ref, Branch) and ref.name.startswith(prefix)}

    def initialize_main(self) -> str:
        """Return the head of main, giving an empty main its first commit.

        A branch of an empty main shares no ancestor with it, and Nessie would refuse its merge.
        """
        with translate_nessie_errors(self.uri):
            head = self.head(self.main)
            if head != self._root:
                return head
            try:
                return self.v2.commit(
                    self.main, head, "Begin the lake", [put_namespace_operation([ROOT_NAMESPACE])], {}
                )
            except NessieRequestRefused as error:
                if error.status != 409:
                    raise
                return self.head(self.main)  # another run was first

    def forget(self) -> None:
        """Forget the places of tables, for measurements."""
        self._places.clear()

    def content(self, ref: str, name: str) -> Any:
        """Return a table's content on a branch as PyNessie has it, or None."""
        with translate_nessie_errors(self.uri):
            found = self._content(ref, name.split("."))
        return found if isinstance(found, IcebergTable) else None

    def bare_branch(self, name: str) -> str:
        """Return the head of a branch that has nothing of main, made from nothing if it is not there."""
        with translate_nessie_errors(self.uri):
            try:
                return self.head(name)
            except NoSuchBranch:
                self.v2.create_bare(name, self.main, self._root)
                return self.head(name)

    def commit(
        self,
        branch: str,
        head: str,
        message: str,
        operations: list[dict[str, Any]],
        properties: Mapping[str, str] | None = None,
    ) -> str:
        """Commit operations (see `lakehouse.operations`, `put_namespaces`) on a branch; return the new head.

        Raises:
            ServiceUnavailable: the branch is not at `head`, or another moved one of the keys.
            NoSuchBranch: it is gone.
        """
        with translate_nessie_errors(self.uri):
            try:
                return self.v2.commit(branch, head, message, operations, properties or {})
            except NessieRequestRefused as error:
                if error.status == 404:
                    raise NoSuchBranch(branch) from error
                if error.status == 409:
                    raise ServiceUnavailable(f"{branch} moved meanwhile") from error
                raise

    def create_branch(self, name: str, base: str) -> None:
        """Make a branch of main at `base`; one that is there at that hash already is as good."""
        with translate_nessie_errors(self.uri):
            try:
                self._v1.create_branch(name, self.main, base)
            except NessieConflictException:
                if self.head(name) != base:
                    raise

    def keep(self, name: str, head: str, of: str) -> None:
        """Make a branch at a hash of another branch; one that is there at that hash already is as good.

        Raises:
            NoSuchBranch: the other branch is gone, and this one was not made from it before.
        """
        with translate_nessie_errors(self.uri):
            try:
                self._v1.create_branch(name, of, head)
            except NessieConflictException:
                if self.head(name) != head:
                    raise
            except NessieNotFoundException:
                if self.head(name) != head:
                    raise

    def put_namespaces(self, ref: str, tables: Iterable[str]) -> list[dict[str, Any]]:
        """Return the operations that make the namespaces which tables need, where they are not on a branch.

        Not by PyNessie: it cannot read a namespace that somebody gave properties.
        """
        with translate_nessie_errors(self.uri):
            wanted = {tuple(table.split(".")[:end]) for table in tables for end in range(1, table.count(".") + 1)}
            return [
                put_namespace_operation(list(each))
                for each in sorted(wanted)
                if self.v2.content(ref, list(each)) is None
            ]

    def delete_branch(self, name: str) -> None:
        """Delete a branch for good, however often its head moves meanwhile. No branch is as good."""
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

    def delete_unused(self, name: str, head: str) -> None:
        """Delete a branch if nothing was committed on it since `head`."""
        with translate_nessie_errors(self.uri):
            try:
                self._v1.delete_branch(name, head)
            except (NessieNotFoundException, NessieConflictException):
                return

    def changes(self, base: str, branch: str, head: str) -> list[ChangedKey]:
        """Return what a branch at `head` changed since the hash `base`."""
        with translate_nessie_errors(self.uri):
            try:
                return [ChangedKey(each) for each in self.v2.differences(base, branch, head)]
            except NessieRequestRefused as error:
                if error.status == 404:
                    raise NoSuchBranch(branch) from error
                raise

    def table(self, ref: str, name: str, at: str | None = None) -> str | None:
        """Return the metadata file of a table on a branch, at a hash of it if given, or None."""
        known = (name, at or "")
        if at and known in self._places:
            return self._places[known]
        with translate_nessie_errors(self.uri):
            content = self.v2.content(ref, name.split("."), at or "")
        place = _metadata(content)
        if at:  # a hash never holds anything else
            if len(self._places) >= _PLACES:
                self._places.clear()
            self._places[known] = place
        return place

    def _content(self, ref: str, elements: list[str]) -> Any:
        try:
            return self._v1.get_content(ref, ContentKey(elements))
        except NessieNotFoundException:
            return None


def _metadata(content: dict[str, Any] | None) -> str | None:
    return content.get("metadataLocation") if content else None
