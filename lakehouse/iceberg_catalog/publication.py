"""Publishing a branch: main of each table becomes what a hash holds, and the log records it, by one commit.

In an atomic catalog one commit does both, and there is nothing in between. Elsewhere the publication is written to the
log first, as pending. The next process that looks at main finishes what a crash left half done, or takes it back
(ADR 35).
"""

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile
from typing import Literal

from lakehouse.iceberg_catalog.branches import BranchLog, Made
from lakehouse.iceberg_catalog.commit_log import MAIN, CommitLog, LogCommit, LoggedVersion, is_other, now, pending_ref
from lakehouse.iceberg_catalog.metadata_changes import move_main
from lakehouse.iceberg_catalog.transactions import CommitConflict, TableChange
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef
from sluice.errors import ServiceUnavailable, UnexpectedWrite
from sluice.identifiers import name_elements

Changes = dict[str, tuple[LoggedVersion | None, LoggedVersion | None]]
"""The versions before and after, by table."""
TableProgress = Literal["before", "after", "other"]
"""Whether main of a table is as before a publication, as after it, or moved by somebody else."""
_ABANDONED = timedelta(seconds=60)
"""After this time the process that began a publication is not waited for: another one settles it."""
_TAKEN_BACK = "sluice.taken-back"
"""The property of a pending publication that cannot be finished: a late process fails, or takes it back, too."""


@dataclass(frozen=True)
class Publisher:
    """Publishes branches. Needs the branches of the catalog."""

    branches: BranchLog

    def publish(
        self, branch: BranchRef, head: str, author: str, message: str, properties: Mapping[str, str]
    ) -> Publication:
        """Publish exactly the hash `head` of a branch, once, however often this is called for it."""
        made: list[Publication] = []

        def merge(log: CommitLog) -> Made | None:
            if earlier := log.publication_of(head, branch.base):
                made[:] = [publication(earlier)]
                return None
            if log.pending_of(head):
                made.clear()
                return None
            changes = log.changes(branch.base, head)
            if conflicts := conflicting_tables(log, changes):
                made[:] = [Publication(merged=False, conflicts=conflicts)]
                return None
            commit = _commit(log, branch, head, author, message, properties, changes)
            # The branch is named, too, so that a request that is late fails once the branch was deleted.
            fence = {branch.name: (log.head(branch.name), log.head(branch.name))}
            created = tuple(map(tuple, map(name_elements, commit.namespaces)))
            self.branches.tables.create_namespaces(created)
            if self.branches.committer.guarantee != "atomic":
                made.clear()
                return [commit], {**fence, pending_ref(head): (None, commit.hash)}, ()
            made[:] = [publication(commit)]
            return [commit], {**fence, MAIN: (commit.parent, commit.hash)}, self._main_changes(changes)

        self.branches.update(merge)
        settled = made[0] if made else self.settle(head)
        if not settled.merged and not settled.conflicts:
            raise ServiceUnavailable("another process took the publication back")
        return settled

    def settle_abandoned(self) -> None:
        """Finish, or take back, the publications that a crash left half done."""
        for commit in self.branches.read().pending():
            if commit.at < now() - _ABANDONED:
                self.settle(commit.merged)

    def settle(self, head: str) -> Publication:
        """Bring a pending publication to its end, from wherever it is; a repeat changes nothing.

        Raises:
            UnexpectedWrite: some tables are published, and main of the others was moved by somebody else meanwhile.
            ServiceUnavailable: the catalog did not answer, or others were faster each time.
        """
        for _ in range(20):
            log = self.branches.read()
            commit = log.pending_of(head)
            if commit is None:
                done = log.publication_of(head, "")
                return publication(done) if done else Publication(merged=False)
            progress = self._progress(log, commit)
            if _TAKEN_BACK in commit.properties or "other" in progress.values():
                return self._take_back(commit, progress)
            if commit.parent != log.head(MAIN):
                self._put_after_main(head)
                continue
            waiting = [name for name, each in progress.items() if each == "before"]
            # What a server answers to a commit of several tables proves nothing: it is looked at in the next round.
            with contextlib.suppress(CommitConflict):
                if waiting:
                    self._move(log, commit, waiting)
                else:
                    self._finish(log, commit)
        raise ServiceUnavailable("others changed the tables each time")

    def delete_branch(self, name: str, head: str | None = None) -> None:
        """Delete a branch, at a hash only if one is given. No publication of it is under way afterwards.

        One that is pending is brought to its end first: it cannot be told whether a request for it is still under way.
        """
        pending: list[str] = []

        def delete(log: CommitLog) -> Made | None:
            present = log.branches.get(name)
            pending.clear()
            if present is None or head not in (None, present):
                return None
            if self.branches.committer.guarantee == "atomic":
                return [], {name: (present, None)}, ()
            base = log.fork_point(present)
            hashes = [commit.hash for commit in takewhile(lambda each: each.hash != base, log.ancestors(present))]
            pending[:] = [hash for hash in hashes if log.pending_of(hash)]
            # That no publication began meanwhile is part of the commit.
            none_pending = {pending_ref(hash): (None, None) for hash in hashes}
            return None if pending else ([], {name: (present, None), **none_pending}, ())

        while True:
            self.branches.update(delete, removed=name)
            if not pending:
                return
            for hash in [*pending]:
                self.settle(hash)

    def _main_changes(self, changes: Changes) -> list[TableChange]:
        """Return the changes that make main of each table what a branch holds, if it still is as at its base.

        A table that the catalog does not have is created first, without a snapshot: readers see it empty for a moment.
        """
        tables, made = self.branches.tables, []
        for name, (before, after) in changes.items():
            target = tables.read_metadata(after.location) if after else None
            table = tables.load_or_create(name, target) if target else self.branches.table(name)
            expected, snapshot = (version.snapshot_id if version else None for version in (before, after))
            made.append(move_main(table, expected, target, snapshot, tables.io))
        return made

    def _move(self, log: CommitLog, commit: LogCommit, names: Collection[str]) -> None:
        """Move main of tables, by one request where there is one that requires the publication to be pending."""
        changes = self._main_changes(_changes(log, commit, names))
        if self.branches.committer.guarantee != "one by one":
            self.branches.commit_once(log, {pending_ref(commit.merged): (commit.hash, commit.hash)}, changes)
            return
        for change in changes:
            self.branches.committer.commit([change])

    def _finish(self, log: CommitLog, commit: LogCommit) -> None:
        """Move main of the log, when main of all tables is moved."""
        moves = {MAIN: (commit.parent, commit.hash), pending_ref(commit.merged): (commit.hash, None)}
        self.branches.commit_once(log, moves, ())

    def _put_after_main(self, head: str) -> None:
        """Write a pending publication again as the child of main as it is now: others published meanwhile."""

        def again(log: CommitLog) -> Made | None:
            pending = log.pending_of(head)
            if pending is None or pending.parent == log.head(MAIN):
                return None
            if any(
                is_other(log.tables(log.head(MAIN)).get(n), log.tables(pending.parent).get(n)) for n in pending.tables
            ):
                return None  # overtaken: it is taken back
            moved = pending.changed(parent=log.head(MAIN))
            return [moved], {pending_ref(head): (pending.hash, moved.hash)}, ()

        self.branches.update(again)

    def _progress(self, log: CommitLog, commit: LogCommit) -> dict[str, TableProgress]:
        before, on_main = log.tables(commit.parent), log.tables(log.head(MAIN))
        return {
            name: self._progress_of(name, before.get(name), after, is_other(on_main.get(name), before.get(name)))
            for name, after in commit.tables.items()
        }

    def _progress_of(
        self, name: str, before: LoggedVersion | None, after: LoggedVersion | None, overtaken: bool
    ) -> TableProgress:
        table = self.branches.tables.load(name)
        present = table.ref(MAIN) if table else None
        if present == (after.snapshot_id if after else None):
            return "after"
        if present == (before.snapshot_id if before else None) and not overtaken:
            return "before"
        # Somebody may have published on top of it.
        on_top = table is not None and after is not None and table.has_ancestor(present, after.snapshot_id)
        return "after" if on_top else "other"

    def _take_back(self, commit: LogCommit, progress: Mapping[str, TableProgress]) -> Publication:
        """End a publication that cannot be finished: tables that it moved go back, while nobody else moved them."""
        log = self.branches.update(lambda log: _marked(log, commit))
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
        self.branches.update(lambda log: _without_pending(log, commit.merged))
        others = [name for name, each in progress.items() if each == "other"] or sorted(commit.tables)
        if stuck:
            raise UnexpectedWrite(
                f"half published: main of {', '.join(stuck)} holds this run and has moved on, and main of "
                f"{', '.join(others)} was changed by another program during the publish. The catalog does not commit "
                "several tables as one. Roll the first back, or run the pipeline again"
            )
        return Publication(merged=False, conflicts=others)


def publication(commit: LogCommit) -> Publication:
    """Return what a commit on main published."""
    return Publication(merged=True, main_before=commit.parent, main_after=commit.hash)


def conflicting_tables(log: CommitLog, changes: Changes) -> list[str]:
    """Return the tables of a branch that main holds in another version than at the branch's base."""
    on_main = log.tables(log.head(MAIN))
    return [name for name, (before, _) in changes.items() if is_other(on_main.get(name), before)]


def _commit(
    log: CommitLog,
    branch: BranchRef,
    head: str,
    author: str,
    message: str,
    properties: Mapping[str, str],
    changes: Changes,
) -> LogCommit:
    created = log.namespaces(head).keys() - log.namespaces(branch.base).keys()
    return LogCommit(
        parent=log.head(MAIN),
        merged=head,
        author=author,
        message=message,
        at=now(),
        properties=dict(properties),
        tables={name: after for name, (_, after) in changes.items()},
        namespaces={name: {} for name in sorted(created)},
    )


def _changes(log: CommitLog, commit: LogCommit, names: Collection[str]) -> Changes:
    before = log.tables(commit.parent)
    return {name: (before.get(name), commit.tables[name]) for name in names}


def _marked(log: CommitLog, commit: LogCommit) -> Made | None:
    """Mark a pending publication as one to take back, so that no request for it succeeds from now on."""
    pending = log.pending_of(commit.merged)
    if pending is None or _TAKEN_BACK in pending.properties:
        return None
    marked = pending.changed(properties={**pending.properties, _TAKEN_BACK: "true"})
    return [marked], {pending_ref(commit.merged): (pending.hash, marked.hash)}, ()


def _without_pending(log: CommitLog, head: str) -> Made | None:
    pending = log.pending_of(head)
    return ([], {pending_ref(head): (pending.hash, None)}, ()) if pending else None
