"""Changes of branches, expressed as changes of the commit log."""

from collections.abc import Collection, Mapping

from lakehouse.iceberg_catalog.branches import LogChange
from lakehouse.iceberg_catalog.commit_log import CommitLog
from lakehouse.iceberg_catalog.log_commits import ROOT_REF, LogCommit
from sluice.errors import CatalogRefused, NoSuchBranch
from sluice.identifiers import joined_name, namespaces_of


def create_at_root(log: CommitLog, name: str) -> LogChange | None:
    """Create a branch at the root of all history, if none of its name exists."""
    return None if name in log.branches else _create(log, name, log.head(ROOT_REF))


def create_on_main(log: CommitLog, name: str, base: str) -> LogChange | None:
    """Create a branch of main at a hash of it. A repeat changes nothing."""
    if log.commit(base).fork:  # the commits of another branch are deleted with it
        raise CatalogRefused(f"{base[:12]} is not a hash of main: copy the branch that contains it")
    return _create(log, name, base)


def copy(log: CommitLog, name: str, of: str, head: str) -> LogChange | None:
    """Create a branch at a hash of another branch. A repeat changes nothing."""
    if not log.contains(log.head(of), head):
        raise CatalogRefused(f"the branch {of} does not contain {head[:12]}")
    made = _create(log, name, head)
    # A process that deletes the other branch deletes its commits too, unless the log has a copy of the branch.
    fence = {of: (log.head(of), log.head(of))}
    return ((), {**fence, **made[1]}, ()) if made else None


def commit_on(log: CommitLog, branch: str, head: str, message: str, properties: Mapping[str, str]) -> LogCommit:
    """Begin a commit on a branch that still has the hash `head` in its history."""
    if not log.contains(log.head(branch), head):
        raise NoSuchBranch(f"the branch {branch} was replaced: its history lacks {head[:12]}")
    return log.next_commit(branch, message=message, properties=dict(properties))


def missing_namespaces(log: CommitLog, head: str, tables: Collection[str]) -> dict[str, dict[str, str] | None]:
    """Return the tables' namespaces that no commit up to a hash created and that contain no table at the hash."""
    held = {joined_name(each) for name in log.tables(head) for each in namespaces_of(name)} | {*log.namespaces(head)}
    wanted = {joined_name(each) for name in tables for each in namespaces_of(name)}
    return {name: {} for name in sorted(wanted - held)}


def _create(log: CommitLog, name: str, base: str) -> LogChange | None:
    if log.branches.get(name) == base:
        return None
    if name in log.branches:
        raise CatalogRefused(f"the branch {name} exists already, at another hash than {base[:12]}")
    return [], {name: (None, base)}, ()
