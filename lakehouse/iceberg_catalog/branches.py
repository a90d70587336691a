"""The commit log, brought up to date with what other programs did to the tables.

Programs that know nothing of Sluice change tables, too. `BranchLog.observe_main` records what they changed as a commit
of its own, so that each hash of main stands for exact snapshots.
"""

import random
import time
from collections.abc import Callable, Sequence

from pyiceberg.catalog import Catalog

from lakehouse.iceberg_catalog.commit_log import CommitLog
from lakehouse.iceberg_catalog.log_commits import MAIN, ROOT_REF, LogCommit, LoggedVersion, is_other
from lakehouse.iceberg_catalog.log_table import CommitLogTable, RefMoves
from lakehouse.iceberg_catalog.tables import CatalogTables
from lakehouse.iceberg_catalog.transactions import CatalogTable, CommitConflict, Committer, TableChange
from lakehouse.iceberg_catalog.versions import in_newest_file, version_on_main
from sluice.errors import ServiceUnavailable

_TRIES = 40
_MOST_SECONDS = 0.4
_FIRST = "Begin the lake"
_BY_OTHERS = "Changed by another program"

Made = tuple[Sequence[LogCommit], RefMoves, Sequence[TableChange]]
"""The commits that a change adds to the log, the branches that it moves, and the changes of tables with it."""
LogUpdate = Callable[[CommitLog], Made | None]
"""Returns what to do to the log as it is now; None for nothing."""


class BranchLog:
    """Reads and changes branches of a catalog. Needs a PyIceberg catalog, and what commits to it."""

    def __init__(self, catalog: Catalog, committer: Committer) -> None:
        self.tables, self.committer = CatalogTables(catalog), committer
        self._log = CommitLogTable(self.tables, committer)

    def read(self) -> CommitLog:
        """Return the log as it is now."""
        return self._log.read()[1]

    def identity(self) -> str:
        """Return the UUID of the log's table, which a catalog that lost its data does not have."""
        return self._log.read()[0].uuid

    def update(self, make: LogUpdate) -> CommitLog:
        """Change the log, and tables with it; repeat from the log as it then is where another process was faster.

        Raises:
            ServiceUnavailable: others were faster each time.
        """
        for number in range(_TRIES):
            table, log = self._log.read()
            made = make(log)
            if made is None:
                return log
            commits, moves, changes = made
            try:
                self.committer.commit([*changes, self._log.change(table, log, commits, moves)])
            except CommitConflict:
                time.sleep(random.uniform(0, min(_MOST_SECONDS, 0.02 * 2**number)))
                continue
            after = self.read()
            self._log.delete_pages(log, after, moves)
            return after
        raise ServiceUnavailable("others changed the commit log or the tables each time")

    def commit_once(self, moves: RefMoves, changes: Sequence[TableChange]) -> None:
        """Change tables, and move branches of the log, by one request in which the log is the last.

        Raises:
            CommitConflict: the log or a table was changed meanwhile.
        """
        table, log = self._log.read()
        self.committer.commit([*changes, self._log.change(table, log, (), moves)])

    def observe_main(self) -> CommitLog:
        """Record what others changed on main since its head; return the log, in which the head is up to date."""

        def record(log: CommitLog) -> Made | None:
            head = log.head(MAIN)
            moved = self._moved(log, head)
            if not moved:
                return None
            message = _FIRST if head == log.head(ROOT_REF) else _BY_OTHERS
            commit = log.next_commit(MAIN, message=message, tables=moved)
            return [commit], {MAIN: (head, commit.hash)}, ()

        return self.update(record)

    def begin(self) -> CommitLog:
        """Give main its first commit, if it has none: a branch of an empty main would share nothing with it."""
        log = self.observe_main()
        root = log.head(ROOT_REF)
        if log.head(MAIN) != root:
            return log

        def record(log: CommitLog) -> Made | None:
            if log.head(MAIN) != root:
                return None
            commit = log.next_commit(MAIN, message=_FIRST)
            return [commit], {MAIN: (root, commit.hash)}, ()

        return self.update(record)

    def _moved(self, log: CommitLog, head: str) -> dict[str, LoggedVersion | None]:
        """Return the versions of the tables that main holds otherwise than its head says."""
        recorded, tables = log.tables(head), self.tables.load_all()
        # A publication may have become pending, and have moved a table, since the log was read.
        pending = {name for each in (log, self.read()) for commit in each.pending() for name in commit.tables}
        present = {name: version_on_main(table) for name, table in tables.items()}
        moved = {name: present.get(name) for name in present.keys() | recorded.keys() if name not in pending}
        return {name: version for name, version in moved.items() if is_other(recorded.get(name), version)}

    def in_catalog(self, name: str, version: LoggedVersion | None) -> LoggedVersion | None:
        """Return a version in the metadata file that the catalog points to, if readers see the same there."""
        return in_newest_file(version, self.tables.load(name)) if version else None

    def table(self, name: str) -> CatalogTable:
        """Return a table of the catalog as it is now.

        Raises:
            ServiceUnavailable: it was dropped meanwhile; the next look at main will show it.
        """
        table = self.tables.load(name)
        if table is None:
            raise ServiceUnavailable(f"the table {name} was dropped meanwhile")
        return table
