"""Publishing a branch: main of each table becomes what a hash holds, and the log records it, by one commit."""

from lakehouse.iceberg_catalog.branches import BranchLog
from lakehouse.iceberg_catalog.commit_log import MAIN, CommitLog, LogCommit, LoggedVersion, is_other
from lakehouse.iceberg_catalog.metadata_changes import move_main
from lakehouse.iceberg_catalog.transactions import TableChange
from sluice.contracts.publish import Publication

Changes = dict[str, tuple[LoggedVersion | None, LoggedVersion | None]]
"""The versions before and after, by table."""


def publication(commit: LogCommit) -> Publication:
    """Return what a commit on main published."""
    return Publication(merged=True, main_before=commit.parent, main_after=commit.hash)


def conflicting_tables(log: CommitLog, changes: Changes) -> list[str]:
    """Return the tables of a branch that main holds in another version than at the branch's base."""
    on_main = log.tables(log.head(MAIN))
    return [name for name, (before, _) in changes.items() if is_other(on_main.get(name), before)]


def main_changes(branches: BranchLog, changes: Changes) -> list[TableChange]:
    """Return the changes that make main of each table what a branch holds, if it still is as at the branch's base.

    A table that the catalog does not have is created first, without a snapshot: readers see it empty for a moment.
    """
    tables, made = branches.tables, []
    for name, (before, after) in changes.items():
        target = tables.read_metadata(after.location) if after else None
        table = tables.load(name) or (tables.create(name, target) if target else branches.table(name))
        expected, snapshot = (version.snapshot_id if version else None for version in (before, after))
        made.append(move_main(table, expected, target, snapshot, tables.io))
    return made
