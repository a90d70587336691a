"""The checker on a REST catalog: it imports none of Sluice's code, and reads the catalog by PyIceberg alone.

Commits on main, and branches, are those of the commit log: the table `sluice.commits`, and its pages in files.
Readers see each table's main in the catalog. The log must agree with it whenever no publish is under way.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import StaticTable, Table

from tests.harness.checker import Checker, TableRows

_LOG = "sluice.commits"
_COMMIT, _COMMIT_HASH = "sluice.commit", "sluice.commit-hash"
_OF_SLUICE = ("main", "sluice/audits", "sluice/root")


class IcebergChecker(Checker):
    """A checker of a REST catalog."""

    def __init__(self, uri: str, column: str = "tag") -> None:
        self._catalog, self._column = RestCatalog("lake", uri=uri), column
        self._commits: dict[str, dict[str, Any]] = {}
        """The commits read from the log, by hash."""

    def head(self) -> str:
        """Return the head of main according to the log."""
        return self._heads()["main"]

    def branches(self) -> list[str]:
        """Return every branch except main and Sluice's own, including pending and half-done publications."""
        return [name for name in self._heads() if name not in _OF_SLUICE]

    def commits(self, since: str) -> Iterator[dict[str, Any]]:
        """Yield the commits on main after a hash, newest first, in Nessie's form."""
        head = self.head()
        while head != since:
            commit = self._commit(head)
            if not commit.get("parent"):
                return
            yield {
                "hash": head,
                "message": commit.get("message", ""),
                "parentCommitHashes": [each for each in (commit["parent"], commit.get("merged")) if each],
                "allProperties": {key: [value] for key, value in commit.get("properties", {}).items()},
            }
            head = commit["parent"]

    def table(self, name: str, at: str = "") -> TableRows | None:
        """Return a table as readers see it, or as the log has it at a hash of main."""
        if at:
            return self._at(name, at)
        try:
            table = self._catalog.load_table(name)
        except NoSuchTableError:
            return None
        snapshot = table.current_snapshot()
        return TableRows(table, snapshot.snapshot_id) if snapshot else None

    def _of_the_log(self, tables: Iterable[str]) -> Iterator[str]:
        """Compare main of each table, as readers see it, with the log."""
        head = self.head()
        for name in tables:
            logged, present = self.table(name, head), self.table(name)
            one, other = (each.snapshot if each else None for each in (logged, present))
            if one != other:
                yield f"main of {name} is at {other}, and the log says {one}"

    def _at(self, name: str, at: str) -> TableRows | None:
        while at and name not in self._commit(at).get("tables", {}):
            at = self._commit(at).get("parent", "")
        version = self._commit(at)["tables"][name] if at else None
        if version is None:
            return None
        return TableRows(StaticTable.from_metadata(version["location"]), version["snapshot_id"])

    def _commit(self, hash: str) -> dict[str, Any]:
        """Return the commit of a hash. The log's table has the head of each branch, a page has earlier commits."""
        if hash not in self._commits:
            self._heads()
        if hash not in self._commits:
            folder = Path(urlsplit(self._log().location()).path) / "commits"
            page = json.loads((folder / f"{hash}.json").read_text())
            self._commits |= {_hash(commit): commit for commit in page["commits"]}
        return self._commits[hash]

    def _heads(self) -> dict[str, str]:
        """Return the head of each branch."""
        log, hashes = self._log(), {}
        for snapshot in log.metadata.snapshots:
            assert snapshot.summary
            properties = snapshot.summary.additional_properties
            commit = json.loads(properties[_COMMIT])
            hashes[snapshot.snapshot_id] = _hash(commit)
            assert properties[_COMMIT_HASH] == _hash(commit)
            self._commits[_hash(commit)] = commit
        return {name: hashes[ref.snapshot_id] for name, ref in log.metadata.refs.items()}

    def _log(self) -> Table:
        log: Table = self._catalog.load_table(_LOG)
        return log


def _hash(commit: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(commit, sort_keys=True).encode()).hexdigest()
