"""The catalogue: branches, merges and the places of tables, in Nessie.

References and contents go through PyNessie, the rest through `nessie_v2`.
"""

from typing import Any

import pynessie
from pynessie.error import NessieConflictException, NessieNotFoundException
from pynessie.model import Branch, ContentKey, IcebergTable

from lakehouse.failures import nessie_failures
from lakehouse.nessie_v2 import NessieV2, RefusedByNessie
from sluice.errors import CatalogueChanged, ServiceUnavailable
from sluice.orders import Publication

_ROOT_NAMESPACE = "sluice"
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


class Catalogue:
    """Nessie, as Sluice uses it.

    Every method raises `ServiceUnavailable` when Nessie does not answer.
    """

    def __init__(self, uri: str, main: str = "main") -> None:
        self.uri = uri
        self.main = main
        self._v2 = NessieV2(uri)
        self._places: dict[tuple[str, str], str | None] = {}
        self._v1 = pynessie.init(
            config_dict={
                "endpoint": uri.removesuffix("v2") + "v1",
                "verify": True,
                "default_branch": main,
                "auth": {"type": "none", "timeout": 30},
            }
        )

    def identity(self) -> str:
        """Return what tells this repository from every other: when it was created."""
        with nessie_failures(self.uri):
            return str(self._v2.config()["repositoryCreationTimestamp"])

    def check_identity(self, expected: str) -> None:
        """Make sure that the repository is the one of this identity.

        Raises:
            CatalogueChanged: it is another, or it came back empty.
        """
        found = self.identity()
        if found != expected:
            raise CatalogueChanged(
                f"Nessie at {self.uri} holds another repository than when the run began "
                f"(created {found}, then {expected}); nothing was merged"
            )

    def head(self, branch: str) -> str:
        """Return the hash that a branch is at.

        Raises:
            NoSuchBranch: it is not there.
        """
        with nessie_failures(self.uri):
            try:
                return str(self._v1.get_reference(branch).hash_)
            except NessieNotFoundException as error:
                raise NoSuchBranch(branch) from error

    def branches(self, prefix: str = "") -> dict[str, str]:
        """Return the hash of every branch whose name begins with `prefix`, by name."""
        with nessie_failures(self.uri):
            listed = self._v1.list_references(fetch_all=False).references
        return {ref.name: str(ref.hash_) for ref in listed if isinstance(ref, Branch) and ref.name.startswith(prefix)}

    def main_head(self) -> str:
        """Return the head of main, giving an empty main its first commit.

        A branch of an empty main shares no ancestor with it, and Nessie would refuse its merge.
        """
        with nessie_failures(self.uri):
            head = self.head(self.main)
            if head != self._v2.config()["noAncestorHash"]:
                return head
            try:
                return self._v2.commit(self.main, head, "Begin the lake", [_namespace([_ROOT_NAMESPACE])])
            except RefusedByNessie as error:
                if error.status != 409:
                    raise
                return self.head(self.main)  # another run was first

    def forget(self) -> None:
        """Forget the places of tables, for measurements."""
        self._places.clear()

    def bare_branch(self, name: str) -> str:
        """Return the head of a branch that has nothing of main, made from nothing if it is not there."""
        with nessie_failures(self.uri):
            try:
                return self.head(name)
            except NoSuchBranch:
                self._v2.create_bare(name, self.main, self._v2.config()["noAncestorHash"])
                return self.head(name)

    def content(self, ref: str, name: str) -> Any:
        """Return a table's content on a branch as PyNessie has it, or None."""
        with nessie_failures(self.uri):
            found = self._content(ref, name.split("."))
        return found if isinstance(found, IcebergTable) else None

    def put_table(
        self, branch: str, head: str, name: str, place: str, snapshot: int, content: str | None
    ) -> tuple[str, str]:
        """Move a table on a branch to another metadata file; return the new head and the content's id.

        Args:
            content: the id of the table's content, if it is there already.

        Raises:
            ServiceUnavailable: the branch is not at `head`, or another moved the table.
        """
        elements = name.split(".")
        table = {"type": "ICEBERG_TABLE", "metadataLocation": place, "snapshotId": snapshot}
        table |= {"schemaId": 0, "specId": 0, "sortOrderId": 0, **({"id": content} if content else {})}
        operations = [{"type": "PUT", "key": {"elements": elements}, "content": table}]
        if not content:
            operations.insert(0, _namespace(elements[:-1]))
        with nessie_failures(self.uri):
            try:
                after = self._v2.commit(branch, head, f"Update {name}", operations)
            except RefusedByNessie as error:
                if error.status == 409:
                    raise ServiceUnavailable(f"{branch} moved meanwhile") from error
                raise
            return after, str(self._content(branch, elements).id)

    def create_branch(self, name: str, base: str) -> None:
        """Make a branch of main at `base`; one that is there at that hash already is as good."""
        with nessie_failures(self.uri):
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
        with nessie_failures(self.uri):
            try:
                self._v1.create_branch(name, of, head)
            except NessieConflictException:
                if self.head(name) != head:
                    raise
            except NessieNotFoundException:
                if self.head(name) != head:
                    raise

    def add_namespaces(self, branch: str, tables: list[str]) -> None:
        """Make the namespaces that tables need, where they are not there."""
        with nessie_failures(self.uri):
            wanted = {tuple(table.split(".")[:end]) for table in tables for end in range(1, table.count(".") + 1)}
            missing = [list(each) for each in sorted(wanted) if self._content(branch, list(each)) is None]
            if missing:
                self._v2.commit(branch, self.head(branch), "Add namespaces", [_namespace(each) for each in missing])

    def delete_branch(self, name: str) -> None:
        """Delete a branch for good, however often its head moves meanwhile. No branch is as good."""
        with nessie_failures(self.uri):
            for _ in range(_FENCE_TRIES):
                try:
                    self._v1.delete_branch(name, self.head(name))
                    return
                except (NoSuchBranch, NessieNotFoundException):
                    return
                except NessieConflictException:
                    continue
            self._v1.delete_branch(name, self.head(name))

    def changes(self, base: str, branch: str, head: str) -> list[ChangedKey]:
        """Return what a branch at `head` changed since the hash `base`."""
        with nessie_failures(self.uri):
            try:
                return [ChangedKey(each) for each in self._v2.differences(base, branch, head)]
            except RefusedByNessie as error:
                if error.status == 404:
                    raise NoSuchBranch(branch) from error
                raise

    def table(self, ref: str, name: str, at: str | None = None) -> str | None:
        """Return the metadata file of a table on a branch, at a hash of it if given, or None."""
        known = (name, at or "")
        if at and known in self._places:
            return self._places[known]
        with nessie_failures(self.uri):
            content = self._v2.content(ref, name.split("."), at or "")
        place = _metadata(content)
        if at:  # a hash never holds anything else
            if len(self._places) >= _PLACES:
                self._places.clear()
            self._places[known] = place
        return place

    def merge(self, branch: str, head: str, author: str, message: str, properties: dict[str, str]) -> Publication:
        """Merge exactly the hash `head` of a branch into main, by one commit.

        Merging what is merged already changes nothing and finds the first merge.

        Raises:
            NoSuchBranch: the branch is gone; it was fenced.
        """
        meta = {
            "message": message,
            "authors": [author],
            "allProperties": {key: [value] for key, value in properties.items()},
        }
        with nessie_failures(self.uri):
            try:
                answer = self._v2.merge(self.main, self.head(self.main), branch, head, meta)
            except RefusedByNessie as error:
                if error.status == 404:
                    raise NoSuchBranch(branch) from error
                if error.status == 409:  # a real conflict comes as an answer; this is a crowd at main
                    raise ServiceUnavailable("main moved during the merge") from error
                raise
        if answer["wasSuccessful"] and answer["wasApplied"]:
            return Publication(
                merged=True,
                main_before=answer["effectiveTargetHash"],
                main_after=answer["resultantTargetHash"],
            )
        keys = [".".join(each["key"]["elements"]) for each in answer.get("details", ()) if each.get("conflict")]
        return Publication(merged=False, conflicts=keys)

    def publication_of(self, head: str, since: str) -> Publication | None:
        """Return the merge that brought the hash `head` into main after the hash `since`, if there is one."""
        with nessie_failures(self.uri):
            for commit in self._v2.history(self.main):
                parents = commit["parentCommitHashes"]
                if head in parents[1:]:
                    return Publication(merged=True, main_before=parents[0], main_after=commit["hash"])
                if commit["hash"] == since:
                    return None
        return None

    def fork_point(self, branch: str) -> str:
        """Return the newest hash that a branch has in common with main."""
        with nessie_failures(self.uri):
            ours = (commit["hash"] for commit in self._v2.history(branch))
            mains = {commit["hash"] for commit in self._v2.history(self.main)}
            return str(next(each for each in ours if each in mains))

    def published(self, properties: dict[str, str]) -> dict[str, str] | None:
        """Return the properties and the `hash` of the newest commit on main that carries all these, or None."""
        tests = [
            f"'{key}' in commit.properties && commit.properties['{key}'] == '{value}'"
            for key, value in properties.items()
        ]
        with nessie_failures(self.uri):
            for commit in self._v2.history(self.main, filter=" && ".join(tests)):
                said = {key: values[0] for key, values in commit["allProperties"].items()}
                return {**said, "hash": commit["hash"]}
        return None

    def _content(self, ref: str, elements: list[str], at: str | None = None) -> Any:
        try:
            return self._v1.get_content(ref, ContentKey(elements), at)
        except NessieNotFoundException:
            return None


def _namespace(elements: list[str]) -> dict[str, Any]:
    content = {"type": "NAMESPACE", "elements": elements, "properties": {}}
    return {"type": "PUT", "key": {"elements": elements}, "content": content}


def _metadata(content: dict[str, Any] | None) -> str | None:
    return content.get("metadataLocation") if content else None
