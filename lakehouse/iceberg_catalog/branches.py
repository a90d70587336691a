"""The commit log, kept up to date with changes that other programs make to the tables.

Programs that do not know Sluice change tables too. `BranchLog.observe_main` records their changes as a separate commit,
so that each hash of main stands for exact snapshots.
"""

import random
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from pyiceberg.catalog import Catalog

from lakehouse.iceberg_catalog.commit_log import CommitLog
from lakehouse.iceberg_catalog.log_commits import MAIN, ROOT_REF, LogCommit, LoggedVersion, versions_differ
from lakehouse.iceberg_catalog.log_table import CommitLogTable, RefMoves
from lakehouse.iceberg_catalog.tables import CatalogTables
from lakehouse.iceberg_catalog.transactions import CatalogTable, CommitConflict, Committer, TableChange
from lakehouse.iceberg_catalog.versions import in_newest_file, version_on_main
from sluice.errors import ServiceUnavailable

_TRIES = 40
_MOST_SECONDS = 0.4
_FIRST = "Begin the lake"
_BY_OTHERS = "Changed by another program"

LogChange = tuple[Sequence[LogCommit], RefMoves, Sequence[TableChange]]
"""New commits of the log, moves of its branches, and the table changes committed with them."""
LogUpdate = Callable[[CommitLog], LogChange | None]
"""Function that returns the change for the present log, or None for no change."""
_T = TypeVar("_T")


class BranchLog:
    """Reader and writer of a catalog's branches.

    Requires a PyIceberg catalog and its committer.
    """

    def __init__(self, catalog: Catalog, committer: Committer) -> None:
        self.tables, self.committer = CatalogTables(catalog), committer
        self._log = CommitLogTable(self.tables, committer)

    def read(self) -> CommitLog:
        """Return the present log."""
        return self._log.read()[1]

    def identity(self) -> str:
        """Return the UUID of the log's table. After a loss of data, the catalog has another one."""
        return self._log.read()[0].uuid

    def update(self, make: LogUpdate) -> CommitLog:
        """Change the log, and tables with it; return the log after the change. See `decide`."""
        return self._change(lambda log: (make(log), None))[0]

    def decide(self, decision: Callable[[CommitLog], tuple[LogChange | None, _T]]) -> _T:
        """Change the log, and tables with it; return the result of the decision.

        If another process was faster, the decision is made again from the new log.

        Args:
            decision: returns the change for the present log, or None for no change, and a result.

        Raises:
            ServiceUnavailable: other processes were faster each time.
        """
        return self._change(decision)[1]

    def _change(self, decision: Callable[[CommitLog], tuple[LogChange | None, _T]]) -> tuple[CommitLog, _T]:
        for number in range(_TRIES):
            table, log = self._log.read()
            made, result = decision(log)
            if made is None:
                return log, result
            commits, moves, changes = made
            try:
                self.committer.commit([*changes, self._log.change(table, log, commits, moves)])
            except CommitConflict:
                time.sleep(random.uniform(0, min(_MOST_SECONDS, 0.02 * 2**number)))
                continue
            after = self.read()
            self._log.delete_pages(log, after, moves)
            return after, result
        raise ServiceUnavailable("others changed the commit log or the tables each time")

    def commit_once(self, moves: RefMoves, changes: Sequence[TableChange]) -> None:
        """Change tables and move branches of the log, by one request with the log last.

        Raises:
            CommitConflict: the log or a table was changed meanwhile.
        """
        table, log = self._log.read()
        self.committer.commit([*changes, self._log.change(table, log, (), moves)])

    def observe_main(self) -> CommitLog:
        """Record the changes that other programs made to main since its head; return the updated log."""

        def record(log: CommitLog) -> LogChange | None:
            head = log.head(MAIN)
            moved = self._moved(log, head)
            if not moved:
                return None
            message = _FIRST if head == log.head(ROOT_REF) else _BY_OTHERS
            commit = log.next_commit(MAIN, message=message, tables=moved)
            return [commit], {MAIN: (head, commit.hash)}, ()

        return self.update(record)

    def begin(self) -> CommitLog:
        """Give main its first commit if it has none. A branch of an empty main would share no commit with it."""
        log = self.observe_main()
        root = log.head(ROOT_REF)
        if log.head(MAIN) != root:
            return log

        def record(log: CommitLog) -> LogChange | None:
            if log.head(MAIN) != root:
                return None
            commit = log.next_commit(MAIN, message=_FIRST)
            return [commit], {MAIN: (root, commit.hash)}, ()

        return self.update(record)

    def _moved(self, log: CommitLog, head: str) -> dict[str, LoggedVersion | None]:
        """Return the versions of the tables on main that differ from those recorded at its head."""
        recorded, tables = log.tables(head), self.tables.load_all()
        # Since the log was read, a publication may have become pending and moved a table.
        pending = {name for each in (log, self.read()) for commit in each.pending() for name in commit.tables}
        present = {name: version_on_main(table) for name, table in tables.items()}
        moved = {name: present.get(name) for name in present.keys() | recorded.keys() if name not in pending}
        return {name: version for name, version in moved.items() if versions_differ(recorded.get(name), version)}

    def in_catalog(self, name: str, version: LoggedVersion | None) -> LoggedVersion | None:
        """Return a version with the metadata file that the catalog points to, if readers see the same in it."""
        return in_newest_file(version, self.tables.load(name)) if version else None

    def table(self, name: str) -> CatalogTable:
        """Return the present state of a table in the catalog.

        Raises:
            ServiceUnavailable: it was dropped meanwhile. The next observation of main records that.
        """
        table = self.tables.load(name)
        if table is None:
            raise ServiceUnavailable(f"the table {name} was dropped meanwhile")
        return table
