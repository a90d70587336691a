"""The checker on a REST catalog: it knows nothing of Sluice's code, and reads the catalog by PyIceberg alone.

Commits on main, and branches, are those of the commit log in the table `sluice.commits`. What readers see is main of
each table in the catalog; the log must say the same of it, as soon as nobody publishes.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import StaticTable, Table

from tests.harness.checker import Checker, TableRows

_LOG = "sluice.commits"
_COMMIT = "sluice.commit"
_OF_SLUICE = ("main", "sluice/audits", "sluice/root")


class IcebergChecker(Checker):
    """Reads a REST catalog at an address."""

    def __init__(self, uri: str, column: str = "tag") -> None:
        self._catalog, self._column = RestCatalog("lake", uri=uri), column

    def head(self) -> str:
        """Return where main is, as the log says."""
        return self._heads()["main"]

    def branches(self) -> list[str]:
        """Return every branch but main and those that Sluice always has; publications that are pending or half, too."""
        return [name for name in self._heads() if name not in _OF_SLUICE]

    def commits(self, since: str) -> Iterator[dict[str, Any]]:
        """Yield the commits on main after a hash, the newest first, as Nessie shows them."""
        commits, head = self._commits(), self.head()
        while head != since:
            commit = commits[head]
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
        """Return a table as readers see it, or as the log says that it was at a hash of main."""
        if at:
            return self._at(name, at)
        try:
            table = self._catalog.load_table(name)
        except NoSuchTableError:
            return None
        snapshot = table.current_snapshot()
        return TableRows(table, snapshot.snapshot_id) if snapshot else None

    def problems(
        self,
        since: str,
        published: Mapping[str, Iterable[str]],
        tables: Iterable[str],
        removing: Collection[str] = (),
    ) -> list[str]:
        """Return everything that does not hold; main of each table must be what the log says, too."""
        tables = list(tables)
        return [*super().problems(since, published, tables, removing), *self._of_the_log(tables)]

    def _of_the_log(self, tables: Iterable[str]) -> Iterator[str]:
        head = self.head()
        for name in tables:
            logged, present = self.table(name, head), self.table(name)
            one, other = (each.snapshot if each else None for each in (logged, present))
            if one != other:
                yield f"main of {name} is at {other}, and the log says {one}"

    def _at(self, name: str, at: str) -> TableRows | None:
        commits = self._commits()
        while at and name not in commits[at].get("tables", {}):
            at = commits[at].get("parent", "")
        version = commits[at]["tables"][name] if at else None
        if version is None:
            return None
        return TableRows(StaticTable.from_metadata(version["location"]), version["snapshot_id"])

    def _commits(self) -> dict[str, dict[str, Any]]:
        """Return the commits of the log by their hashes."""
        commits: list[dict[str, Any]] = []
        for snapshot in self._log().metadata.snapshots:
            assert snapshot.summary
            commits.append(json.loads(snapshot.summary.additional_properties[_COMMIT]))
        return {_hash(commit): commit for commit in commits}

    def _heads(self) -> dict[str, str]:
        log = self._log()
        hashes = {
            snapshot.snapshot_id: _hash(json.loads(snapshot.summary.additional_properties[_COMMIT]))
            for snapshot in log.metadata.snapshots
            if snapshot.summary
        }
        return {name: hashes[ref.snapshot_id] for name, ref in log.metadata.refs.items()}

    def _log(self) -> Table:
        log: Table = self._catalog.load_table(_LOG)
        return log


def _hash(commit: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(commit, sort_keys=True).encode()).hexdigest()
