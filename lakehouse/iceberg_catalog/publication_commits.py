"""Commits and references of the log for publications that are done, pending, or ended half done."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lakehouse.iceberg_catalog.branches import LogChange
from lakehouse.iceberg_catalog.commit_log import CommitLog
from lakehouse.iceberg_catalog.log_commits import MAIN, LogCommit, LoggedVersion, half_ref, pending_ref, versions_differ
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.errors import UnexpectedWrite

Changes = dict[str, tuple[LoggedVersion | None, LoggedVersion | None]]
"""Versions before and after, by table."""
_HALF = "sluice.half-published"
"""Property of a publication that ended half done, with a description of what happened."""
TAKEN_BACK = "sluice.taken-back"
"""Property of a pending publication that cannot be finished. A late process fails, or takes it back too."""


def publication(commit: LogCommit) -> Publication:
    """Return the publication that a commit on main represents."""
    return Publication(merged=True, main_before=commit.parent, main_after=commit.hash)


def conflicting_tables(log: CommitLog, changes: Changes) -> list[str]:
    """Return the changed tables of a branch whose version on main is no longer that at the branch's base."""
    on_main = log.tables(log.head(MAIN))
    return [name for name, (before, _) in changes.items() if versions_differ(on_main.get(name), before)]


@dataclass(frozen=True)
class Merge:
    """Request to publish exactly the hash `head` of a branch, with the author, message and properties of its commit."""

    branch: BranchRef
    head: str
    author: str
    message: str
    properties: Mapping[str, str]


def publication_commit(log: CommitLog, merge: Merge, changes: Changes) -> LogCommit:
    """Return the commit on main that publishes a hash of a branch.

    Args:
        changes: changes of the branch, from its base to the hash.
    """
    created = log.namespaces(merge.head).keys() - log.namespaces(merge.branch.base).keys()
    return log.next_commit(
        MAIN,
        merged=merge.head,
        author=merge.author,
        message=merge.message,
        properties=dict(merge.properties),
        tables={name: after for name, (_, after) in changes.items()},
        namespaces={name: {} for name in sorted(created)},
    )


def changes_of(log: CommitLog, commit: LogCommit, names: Collection[str]) -> Changes:
    before = log.tables(commit.parent)
    return {name: (before.get(name), commit.tables[name]) for name in names}


def marked_as_taken_back(log: CommitLog, commit: LogCommit) -> LogChange | None:
    """Mark a pending publication to be taken back, so that no request for it succeeds from now on."""
    pending = log.pending_of(commit.merged)
    if pending is None or TAKEN_BACK in pending.properties:
        return None
    marked = pending.changed(properties={**pending.properties, TAKEN_BACK: "true"})
    return [marked], {pending_ref(commit.merged): (pending.hash, marked.hash)}, ()


def refuse_half_published(log: CommitLog, head: str) -> None:
    """Verify that a hash was not half published, since a repeat would add rows a second time.

    Raises:
        UnexpectedWrite: the hash was half published.
    """
    half = log.half_of(head)
    if half is not None:
        raise UnexpectedWrite(half.properties.get(_HALF, "half published"))


def as_half_published(log: CommitLog, head: str, problem: str) -> LogChange | None:
    """Record that a pending publication ended half done."""
    pending = log.pending_of(head)
    if pending is None:
        return None
    half = pending.changed(properties={**pending.properties, _HALF: problem})
    return [half], {pending_ref(head): (pending.hash, None), half_ref(head): (None, half.hash)}, ()


def without_pending(log: CommitLog, head: str) -> LogChange | None:
    pending = log.pending_of(head)
    return ([], {pending_ref(head): (pending.hash, None)}, ()) if pending else None
