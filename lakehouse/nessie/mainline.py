"""Main: how it moves, by merges alone, and what its history says of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from lakehouse.nessie.catalog import NessieCatalog, NoSuchBranch
from lakehouse.nessie.errors import translate_nessie_errors
from lakehouse.nessie.rest_v2 import NessieRequestRefused
from sluice.contracts.activity_inputs import BranchRef, Publication
from sluice.errors import ServiceUnavailable
from sluice.publishing.certificate import RUN_ID, WORKFLOW_ID
from sluice.publishing.rollback import PublishedCommit


class Mainline:
    """Needs the catalog.

    Every method raises `ServiceUnavailable` when Nessie does not answer.
    """

    def __init__(self, catalog: NessieCatalog) -> None:
        self._catalog = catalog
        self.uri, self._main, self._v2 = catalog.uri, catalog.main, catalog.v2

    def merge(self, branch: BranchRef, head: str, author: str, message: str, said: Mapping[str, str]) -> Publication:
        """Merge exactly the hash `head` of a branch into main, by one commit.

        Merging what is merged already changes nothing and finds the first merge.

        Args:
            said: the properties of the merge commit.

        Raises:
            NoSuchBranch: the branch is gone; it was fenced.
        """
        meta = {
            "message": message,
            "authors": [author],
            "allProperties": {key: [value] for key, value in said.items()},
        }
        with translate_nessie_errors(self.uri):
            differences = self._v2.differences(branch.base, branch.name, head)
            expected = {tuple(each["key"]["elements"]): each["from"] for each in differences if each.get("from")}
            answer = self._try(branch.name, head, meta, expected)
        if answer["wasSuccessful"] and answer["wasApplied"]:
            return Publication(
                merged=True,
                main_before=answer["effectiveTargetHash"],
                main_after=answer["resultantTargetHash"],
            )
        return Publication(merged=False, conflicts=_conflicts(answer))

    def conflicts(self, branch: str, head: str) -> list[str]:
        """Return the keys that main changed too, so that a merge now would fail: a dry run of it."""
        with translate_nessie_errors(self.uri):
            return _conflicts(self._try(branch, head, {"message": "a dry run"}, {}, dry=True))

    def moved(self, tables: Iterable[str], since: str) -> list[str]:
        """Return those of some tables that main holds otherwise than at the hash `since`."""
        catalog = self._catalog
        return [name for name in tables if catalog.table(self._main, name) != catalog.table(self._main, name, since)]

    def fork_point(self, branch: str) -> str:
        """Return the newest hash that a branch has in common with main."""
        with translate_nessie_errors(self.uri):
            head = self._catalog.head(branch)
            return str(self._try(branch, head, {"message": "a dry run"}, {}, dry=True)["commonAncestor"])

    def _try(
        self, branch: str, head: str, meta: Any, expected: Mapping[tuple[str, ...], Any], dry: bool = False
    ) -> dict[str, Any]:
        try:
            seen = self._catalog.head(self._main)
            return self._v2.merge(self._main, seen, branch, head, meta, expected, dry)
        except NessieRequestRefused as error:
            if error.status == 404:
                raise NoSuchBranch(branch) from error
            if error.status == 409:  # a real conflict comes as an answer; this is a crowd at main
                raise ServiceUnavailable("main moved during the merge") from error
            raise

    def find_publication(self, head: str, since: str) -> Publication | None:
        """Return the merge that brought the hash `head` into main after the hash `since`, if there is one."""
        with translate_nessie_errors(self.uri):
            for commit in self._v2.history(self._main):
                parents = commit["parentCommitHashes"]
                if head in parents[1:]:
                    return Publication(merged=True, main_before=parents[0], main_after=commit["hash"])
                if commit["hash"] == since:
                    return None
        return None

    def publications(self, head: str, run_id: str) -> list[PublishedCommit]:
        """Return what main's commits published, the newest first, from a hash back to the commit of a run."""
        found: list[PublishedCommit] = []
        with translate_nessie_errors(self.uri):
            for commit in self._v2.history(f"{self._main}"):
                said = {key: values[0] for key, values in (commit.get("allProperties") or {}).items()}
                parents = commit["parentCommitHashes"]
                if not parents:
                    break
                keys = self._catalog.changes(parents[0], self._main, commit["hash"])
                tables = frozenset(key.name for key in keys if key.kind != "NAMESPACE")
                run = said.get(RUN_ID, "")
                found.append(PublishedCommit(commit["hash"], parents[0], run, said.get(WORKFLOW_ID, ""), tables))
                if run == run_id:
                    return found
        return found

    def published(self, properties: dict[str, str]) -> dict[str, str] | None:
        """Return the properties and the `hash` of the newest commit on main that carries all these, or None."""
        tests = [
            f"'{key}' in commit.properties && commit.properties['{key}'] == '{value}'"
            for key, value in properties.items()
        ]
        with translate_nessie_errors(self.uri):
            for commit in self._v2.history(self._main, filter=" && ".join(tests)):
                said = {key: values[0] for key, values in commit["allProperties"].items()}
                return {**said, "hash": commit["hash"]}
        return None


def _conflicts(answer: Mapping[str, Any]) -> list[str]:
    return [".".join(each["key"]["elements"]) for each in answer.get("details", ()) if each.get("conflict")]
