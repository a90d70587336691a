"""Publish a branch by one commit that moves main of each table to a hash, and records it in the log.

In an atomic catalog one commit does both, without an intermediate state. In any other catalog the publication is first
written to the log as pending. If a crash leaves it half done, the next process that observes main finishes it or takes
it back (ADR 35).
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from lakehouse.iceberg_catalog.branches import BranchLog, LogChange
from lakehouse.iceberg_catalog.commit_log import CommitLog
from lakehouse.iceberg_catalog.log_commits import MAIN, LogCommit, LoggedVersion, now, pending_ref, versions_differ
from lakehouse.iceberg_catalog.metadata_changes import move_main
from lakehouse.iceberg_catalog.publication_commits import (
    TAKEN_BACK,
    Changes,
    Merge,
    as_half_published,
    changes_of,
    conflicting_tables,
    marked_as_taken_back,
    publication,
    publication_commit,
    refuse_half_published,
    without_pending,
)
from lakehouse.iceberg_catalog.transactions import CommitConflict, TableChange
from lakehouse.iceberg_catalog.versions import version_on_main
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.errors import CatalogRefused, ServiceUnavailable, Terminal, UnexpectedWrite
from sluice.identifiers import name_elements

TableProgress = Literal["before", "after", "other"]
"""State of main of a table: as before a publication, as after it, or moved by another program."""
_ABANDONED = timedelta(seconds=60)
"""Age after which a pending publication counts as abandoned, so that another process settles it."""
_TRIES = 20
"""Maximum number of rounds in which other processes may be faster."""
_log = logging.getLogger("sluice.catalog")


@dataclass(frozen=True)
class Publisher:
    """Publisher of branches.

    Requires the branches of the catalog.
    """

    branches: BranchLog

    def publish(
        self, branch: BranchRef, head: str, author: str, message: str, properties: Mapping[str, str]
    ) -> Publication:
        """Publish exactly the hash `head` of a branch. Repeated calls publish it once."""
        merge = Merge(branch, head, author, message, properties)
        settled = self.branches.decide(lambda log: self._request(log, merge)) or self.settle(head)
        if not settled.merged and not settled.conflicts:
            raise ServiceUnavailable("another process took the publication back")
        return settled

    def _request(self, log: CommitLog, merge: Merge) -> tuple[LogChange | None, Publication | None]:
        """Return the change of the log that publishes, or None, and the publication; None if it is pending."""
        branch, head = merge.branch, merge.head
        if earlier := log.publication_of(head, branch.base):
            return None, publication(earlier)
        if log.pending_of(head):
            return None, None
        refuse_half_published(log, head)
        present = log.head(branch.name)  # first: after a deletion of the branch, its commits may be missing
        changes = log.changes(branch.base, head)
        if conflicts := conflicting_tables(log, changes):
            return None, Publication(merged=False, conflicts=conflicts)
        commit = publication_commit(log, merge, changes)
        # The branch is named too, so that a late request fails after a deletion of the branch.
        fence = {branch.name: (present, present)}
        self.branches.tables.create_namespaces(tuple(map(tuple, map(name_elements, commit.namespaces))))
        if self.branches.committer.guarantee != "atomic":
            return ([commit], {**fence, pending_ref(head): (None, commit.hash)}, ()), None
        moves = {**fence, MAIN: (commit.parent, commit.hash)}
        return ([commit], moves, self._main_changes(changes)), publication(commit)

    def settle_abandoned(self) -> None:
        """Finish, or take back, the publications that a crash left half done.

        An error is only logged here, so that other runs continue. The run of the publication reports it.
        """
        for commit in self.branches.read().pending():
            if commit.at < now() - _ABANDONED:
                try:
                    self.settle(commit.merged)
                except (Terminal, FileNotFoundError) as error:
                    _log.warning("the publication of %s cannot be settled: %s", commit.merged[:12], error)

    def settle(self, head: str) -> Publication:
        """Bring a pending publication to its end from any state. A repeat changes nothing.

        Raises:
            UnexpectedWrite: some tables are published, and another program moved main of the others meanwhile.
            ServiceUnavailable: the catalog did not answer, or other processes were faster each time.
        """
        for _ in range(_TRIES):
            log = self.branches.read()
            commit = log.pending_of(head)
            if commit is None:
                done = log.publication_of(head, "")
                return publication(done) if done else Publication(merged=False)
            progress = self._progress(log, commit)
            if TAKEN_BACK in commit.properties or "other" in progress.values():
                return self._take_back(commit, progress)
            if commit.parent != log.head(MAIN):
                self._put_after_main(head)
                continue
            waiting = [name for name, each in progress.items() if each == "before"]
            # A server's answer to a commit of several tables proves nothing: the next round reads the tables.
            try:
                if waiting:
                    self._move(log, commit, waiting)
                else:
                    self._finish(commit)
            except CommitConflict:
                continue
            except (CatalogRefused, FileNotFoundError):
                return self._take_back(commit, progress)  # it can never be finished
        raise ServiceUnavailable("others changed the tables each time")

    def delete_branch(self, name: str, head: str | None = None) -> None:
        """Delete a branch, only at the given hash if there is one. Afterwards no publication of it is open.

        A pending publication is settled first, since it is unknown if a request for it is still on its way.

        Raises:
            ServiceUnavailable: publications of the branch began each time.
        """
        for _ in range(_TRIES):
            pending = self.branches.decide(lambda log: self._deletion(log, name, head))
            if not pending:
                return
            for hash in pending:
                self.settle(hash)
        raise ServiceUnavailable(f"runs began to publish {name} each time")

    def _deletion(self, log: CommitLog, name: str, head: str | None) -> tuple[LogChange | None, list[str]]:
        """Return the change of the log that deletes a branch, and the pending publications that come first."""
        present = log.branches.get(name)
        if present is None or head not in (None, present):
            return None, []
        if self.branches.committer.guarantee == "atomic":
            return ([], {name: (present, None)}, ()), []
        hashes = [commit.hash for commit in log.own_commits(present)]
        if pending := [hash for hash in hashes if log.pending_of(hash)]:
            return None, pending
        # The commit itself requires that no publication began meanwhile.
        none_pending = {pending_ref(hash): (None, None) for hash in hashes}
        return ([], {name: (present, None), **none_pending}, ()), []

    def _main_changes(self, changes: Changes) -> list[TableChange]:
        """Return the changes that bring main of each table to a branch's version, if it is still as at its base.

        A table that the catalog lacks is first created without a snapshot, so readers see it empty for a moment.
        """
        tables, made = self.branches.tables, []
        for name, (before, after) in changes.items():
            target = tables.read_metadata(after.location) if after else None
            table = tables.load_or_create(name, target) if target else self.branches.table(name)
            expected, snapshot = (version.snapshot_id if version else None for version in (before, after))
            if before and versions_differ(version_on_main(table), before):
                raise CommitConflict(f"{name} was changed by another program meanwhile")
            made.append(move_main(table, expected, target, snapshot, tables.io))
        return made

    def _move(self, log: CommitLog, commit: LogCommit, names: Collection[str]) -> None:
        """Move main of tables, if the publication is still pending.

        The request itself requires that. In a catalog that commits tables one by one, the log is read before each
        table.
        """
        changes = self._main_changes(changes_of(log, commit, names))
        if self.branches.committer.guarantee != "one by one":
            self.branches.commit_once({pending_ref(commit.merged): (commit.hash, commit.hash)}, changes)
            return
        for change in changes:
            if self.branches.read().pending_of(commit.merged) is None:
                return  # another process took it back
            self.branches.committer.commit([change])

    def _finish(self, commit: LogCommit) -> None:
        """Move main of the log after main of all tables was moved."""
        moves = {MAIN: (commit.parent, commit.hash), pending_ref(commit.merged): (commit.hash, None)}
        self.branches.commit_once(moves, ())

    def _put_after_main(self, head: str) -> None:
        """Rewrite a pending publication as the child of the present main, because others published meanwhile."""

        def again(log: CommitLog) -> LogChange | None:
            pending = log.pending_of(head)
            if pending is None or pending.parent == log.head(MAIN):
                return None
            on_main, before = log.tables(log.head(MAIN)), log.tables(pending.parent)
            moved_on = [name for name in pending.tables if versions_differ(on_main.get(name), before.get(name))]
            if any(versions_differ(on_main.get(name), pending.tables[name]) for name in moved_on):
                return None  # overtaken: the publication is taken back
            moved = pending.changed(parent=log.head(MAIN), number=log.commit(log.head(MAIN)).number + 1)
            return [moved], {pending_ref(head): (pending.hash, moved.hash)}, ()

        self.branches.update(again)

    def _progress(self, log: CommitLog, commit: LogCommit) -> dict[str, TableProgress]:
        before, on_main = log.tables(commit.parent), log.tables(log.head(MAIN))
        return {
            name: self._progress_of(name, before.get(name), after, versions_differ(on_main.get(name), before.get(name)))
            for name, after in commit.tables.items()
        }

    def _progress_of(
        self, name: str, before: LoggedVersion | None, after: LoggedVersion | None, overtaken: bool
    ) -> TableProgress:
        table = self.branches.tables.load(name)
        present = version_on_main(table)
        if not versions_differ(present, after):
            return "after"
        if not versions_differ(present, before) and not overtaken:
            return "before"
        if table is None or present is None or after is None or present.uuid != after.uuid:
            return "other"
        earlier = before.snapshot_id if before else None
        if table.has_ancestor(earlier, after.snapshot_id):
            # After a roll-back or a change of columns alone, the present state does not show that it was published.
            return "other"
        # The published snapshot is there, possibly below newer ones of another program.
        return "after" if table.has_ancestor(present.snapshot_id, after.snapshot_id) else "other"

    def _take_back(self, commit: LogCommit, progress: Mapping[str, TableProgress]) -> Publication:
        """End a publication that cannot be finished. Tables that it moved go back, unless others moved them since."""
        log = self.branches.update(lambda log: marked_as_taken_back(log, commit))
        if log.pending_of(commit.merged) is None:
            return self.settle(commit.merged)
        before, stuck = log.tables(commit.parent), []
        for name in [name for name, each in progress.items() if each == "after"]:
            table, earlier, moved = self.branches.table(name), before.get(name), commit.tables[name]
            target = self.branches.tables.read_metadata(earlier.location) if earlier else None
            snapshot, expected = (version.snapshot_id if version else None for version in (earlier, moved))
            try:
                self.branches.committer.commit([move_main(table, expected, target, snapshot, self.branches.tables.io)])
            except CommitConflict:
                if self._progress_of(name, earlier, moved, False) == "after":
                    stuck.append(name)
        others = [name for name, each in progress.items() if each == "other"] or sorted(commit.tables)
        if stuck:
            problem = (
                f"half published: main of {', '.join(stuck)} contains this run and newer commits, and main of "
                f"{', '.join(others)} was changed by another program during the publish. The catalog does not commit "
                "several tables as one. Compare these tables with the input by hand: Sluice does not repeat this run"
            )
            self.branches.update(lambda log: as_half_published(log, commit.merged, problem))
            raise UnexpectedWrite(problem)
        self.branches.update(lambda log: without_pending(log, commit.merged))
        return Publication(merged=False, conflicts=others)
