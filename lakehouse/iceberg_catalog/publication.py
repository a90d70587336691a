"""Publishing a branch: main of each table becomes what a hash holds, and the log records it, by one commit.

In an atomic catalog one commit does both, and there is nothing in between. Elsewhere the publication is written to the
log first, as pending. The next process that looks at main finishes what a crash left half done, or takes it back
(ADR 35).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from lakehouse.iceberg_catalog.branches import BranchLog, Made
from lakehouse.iceberg_catalog.commit_log import MAIN, CommitLog, LogCommit, LoggedVersion, is_other, now, pending_ref
from lakehouse.iceberg_catalog.log_table import RefMoves
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
        return made[0] if made else self.settle(head)

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
            if commit.parent != log.head(MAIN):
                self._put_after_main(head)
                continue
            progress = self._progress(log, commit)
            values = {*progress.values()}
            if "other" in values:
                return self._take_back(commit, progress)
            try:
                if values <= {"after"}:
                    self.branches.commit_once(log, _finishing(commit), ())
                    return publication(commit)
                # What the answer says is not believed: a server may commit table by table, and answer before it knows.
                self._move(log, commit, [name for name, each in progress.items() if each == "before"], values)
            except CommitConflict:
                continue
        raise ServiceUnavailable("others changed the tables each time")

    def _main_changes(self, changes: Changes) -> list[TableChange]:
        """Return the changes that make main of each table what a branch holds, if it still is as at its base.

        A table that the catalog does not have is created first, without a snapshot: readers see it empty for a moment.
        """
        tables, made = self.branches.tables, []
        for name, (before, after) in changes.items():
            target = tables.read_metadata(after.location) if after else None
            table = tables.load(name) or (tables.create(name, target) if target else self.branches.table(name))
            expected, snapshot = (version.snapshot_id if version else None for version in (before, after))
            made.append(move_main(table, expected, target, snapshot, tables.io))
        return made

    def _move(
        self, log: CommitLog, commit: LogCommit, names: Collection[str], progress: Collection[TableProgress]
    ) -> None:
        """Move main of tables: by one request, if the catalog takes it and none was moved yet, else each by its own.

        The request also requires that the publication is still pending: a late one fails once it was taken back.
        """
        changes = self._main_changes(_changes(log, commit, names))
        if {*progress} == {"before"} and self.branches.committer.guarantee == "checked":
            self.branches.commit_once(log, {pending_ref(commit.merged): (commit.hash, commit.hash)}, changes)
            return
        for change in changes:
            self.branches.committer.commit([change])

    def _put_after_main(self, head: str) -> None:
        """Write a pending publication again as the child of main as it is now: others published meanwhile."""

        def again(log: CommitLog) -> Made | None:
            pending = log.pending_of(head)
            if pending is None or pending.parent == log.head(MAIN):
                return None
            moved = pending.model_copy(update={"parent": log.head(MAIN)})
            return [moved], {pending_ref(head): (pending.hash, moved.hash)}, ()

        self.branches.update(again)

    def _progress(self, log: CommitLog, commit: LogCommit) -> dict[str, TableProgress]:
        before = log.tables(commit.parent)
        return {name: self._progress_of(name, before.get(name), after) for name, after in commit.tables.items()}

    def _progress_of(self, name: str, before: LoggedVersion | None, after: LoggedVersion | None) -> TableProgress:
        table = self.branches.tables.load(name)
        present = table.ref(MAIN) if table else None
        if present == (after.snapshot_id if after else None):
            return "after"
        if present == (before.snapshot_id if before else None):
            return "before"
        # Somebody may have published on top of it.
        on_top = table is not None and after is not None and table.has_ancestor(present, after.snapshot_id)
        return "after" if on_top else "other"

    def _take_back(self, commit: LogCommit, progress: Mapping[str, TableProgress]) -> Publication:
        """End a publication that cannot be finished: tables that it moved go back, while nobody else moved them."""
        log = self.branches.read()
        before, stuck = log.tables(commit.parent), []
        for name in [name for name, each in progress.items() if each == "after"]:
            table, earlier, moved = self.branches.table(name), before.get(name), commit.tables[name]
            target = self.branches.tables.read_metadata(earlier.location) if earlier else None
            snapshot, expected = (version.snapshot_id if version else None for version in (earlier, moved))
            try:
                self.branches.committer.commit([move_main(table, expected, target, snapshot, self.branches.tables.io)])
            except CommitConflict:
                stuck.append(name)
        self.branches.update(lambda log: _without_pending(log, commit.merged))
        others = [name for name, each in progress.items() if each == "other"]
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


def _finishing(commit: LogCommit) -> RefMoves:
    return {MAIN: (commit.parent, commit.hash), pending_ref(commit.merged): (commit.hash, None)}


def _without_pending(log: CommitLog, head: str) -> Made | None:
    pending = log.pending_of(head)
    return ([], {pending_ref(head): (pending.hash, None)}, ()) if pending else None
